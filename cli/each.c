/* `--device cuda:all`: a verb once for every device, as if each had been asked for by its number.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "device/device.h"

static struct {
    char device[32]; /* in work; "": one device was asked for, and nothing here is of use */
    int which, n;
    cb__buf json, csv;
    int records, tables;
} all;

const char *cb__each_device(void)
{
    return *all.device ? all.device : NULL;
}

cb_status cb__each_refuses(const char *option, cb_error *err)
{
    if (!*all.device || all.n == 1)
        return CB_OK;
    return cb_error_set(err, CB_USAGE, "%s is for one device, and %d were asked for", option,
                        all.n);
}

/* ---- what they put out ---- */

bool cb__each_gathers(const cb__common_options *options)
{
    return *all.device && options->device == all.device;
}

void cb__each_heading(cb__buf *table)
{
    if (all.n > 1 || !all.tables)
        cb__buf_printf(table, "%s%s (%d of %d)\n", all.tables ? "\n" : "", all.device,
                       all.which + 1, all.n);
    all.tables++;
}

static void gather_csv(const cb__buf *csv)
{
    const char *line = cb__buf_text(csv);
    for (int i = 0; *line; i++) {
        int length = (int)strcspn(line, "\n");
        if (i > 0)
            cb__buf_printf(&all.csv, "%s,%.*s\n", all.device, length, line);
        else if (all.csv.size == 0)
            cb__buf_printf(&all.csv, "device,%.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    all.csv.failed |= csv->failed;
}

void cb__each_gather(const cb__buf *json, const cb__buf *csv)
{
    if (json && (json->size || json->failed)) {
        cb__buf_puts(&all.json, all.records++ ? ",\n" : "[\n");
        cb__buf_puts(&all.json, cb__buf_text(json));
        all.json.failed |= json->failed;
    }
    if (csv)
        gather_csv(csv);
}

/* ---- the devices ---- */

/* "cuda:all": its backend, where that can count; NULL: some device, or none. */
static const cb__backend *all_of(const char *device)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    bool is = device && cb__backend_find(device, &backend, &script, NULL) == CB_OK &&
              strcmp(script, "all") == 0 && backend->count;
    return is ? backend : NULL;
}

bool cb__each_wanted(const cb__common_options *options)
{
    return !*all.device && all_of(options->device);
}

/* What is worst counts: a wrong row before a device that failed before one that is not there before
 * an open question. */
static int worse(int a, int b)
{
    static const int order[] = {0, 4, 3, 5, 1, 2};
    int rank[2] = {6, 6};
    for (int i = 0; i < 6; i++) {
        rank[0] = order[i] == a ? i : rank[0];
        rank[1] = order[i] == b ? i : rank[1];
    }
    return rank[1] > rank[0] ? b : a;
}

static int run_each(const cb__verb *verb, const char *name, int argc, char **argv)
{
    int status = 0;
    for (all.which = 0; all.which < all.n; all.which++) {
        snprintf(all.device, sizeof all.device, "%.16s:%d", name, all.which);
        int code = verb->run(argc, argv);
        status = worse(status, code);
        if (code == 2 || cb__stop) /* the same would be said of the others */
            break;
    }
    all.device[0] = '\0';
    return status;
}

int cb__each_run(const cb__verb *verb, const cb__common_options *options, int argc, char **argv)
{
    cb_error err = CB_ERROR_INIT;
    cb__outputs outputs = {0};
    const cb__buf nothing = CB__BUF_INIT;
    const cb__backend *backend = all_of(options->device);
    cb_status status = backend->count(&all.n, &err);
    if (status != CB_OK)
        cb_error_prefix(&err, "device '%s'", options->device);
    else
        status = cb__outputs_open(options, &outputs, &err);
    if (status != CB_OK)
        return cb__cli_fail(&err);
    int code = run_each(verb, backend->name, argc, argv);
    if (all.records)
        cb__buf_puts(&all.json, "]\n");
    if (cb__outputs_write(&outputs, &all.json, &all.csv, &nothing, &err) != CB_OK)
        code = cb__cli_fail(&err);
    cb__buf_fini(&all.json);
    cb__buf_fini(&all.csv);
    return code;
}
