#include "base/check.h"

#include <string.h>

static const char *const verdicts[] = {
#define CB_VERDICT_NAME(name, text) text,
    CB_VERDICT_TABLE(CB_VERDICT_NAME)
#undef CB_VERDICT_NAME
};

const char *cb_verdict_name(cb_verdict verdict)
{
    return (unsigned)verdict <= CB_VERDICT_OK ? verdicts[verdict] : "unknown verdict";
}

int cb__verdict_named(const char *name)
{
    for (int i = 0; i <= CB_VERDICT_OK; i++)
        if (strcmp(verdicts[i], name) == 0)
            return i;
    return -1;
}

cb_verdict cb__verdict_worse(cb_verdict a, cb_verdict b)
{
    return a < b ? a : b;
}

const char *cb__check_status_name(cb__check_status status)
{
    static const char *const names[] = {"pass", "fail", "skip"};
    return names[status];
}
