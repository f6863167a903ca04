#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cb_model *cb__model_new(void)
{
    return calloc(1, sizeof(cb_model));
}

void cb_model_free(cb_model *model)
{
    if (!model)
        return;
    cb__arena_fini(&model->arena);
    free(model);
}

const char *cb_resident_name(cb_resident resident)
{
    static const char *const names[] = {"no", "maybe", "yes"};
    return (unsigned)resident <= CB_RESIDENT_YES ? names[resident] : "unknown answer";
}

void cb__series_name(const cb__series *series, char text[48])
{
    if (series->kind == CB__LATENCY)
        snprintf(text, 48, "%s/%lld", series->what, (long long)series->page_bytes);
    else if (!*series->placement || strcmp(series->placement, "compact") == 0)
        snprintf(text, 48, "%s/%d", series->what, series->workers);
    else
        snprintf(text, 48, "%s/%d/%s", series->what, series->workers, series->placement);
}
