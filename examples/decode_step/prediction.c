#include "prediction.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "record/envelope.h"

#define WITHIN 0.03 /* what is asked of cold parts */
#define EQUAL 1e-9  /* sums of the same figures in another order */

/* ---- reading ---- */

static cb_status need_interval(const cb__json *object, const char *key, const char *what,
                               cb__interval *out, cb_error *err)
{
    const cb__json *x = cb__json_get(object, key);
    cb_status status = cb__json_need_real(x, "lo", &out->lo, err);
    if (status == CB_OK)
        status = cb__json_need_real(x, "mid", &out->mid, err);
    if (status == CB_OK)
        status = cb__json_need_real(x, "hi", &out->hi, err);
    if (status == CB_OK)
        status = cb__json_need_real(x, "coverage", &out->coverage, err);
    if (status == CB_OK && !(out->lo > 0 && out->lo <= out->mid && out->mid <= out->hi))
        status = cb_error_set(err, CB_USAGE, "not an interval");
    return status == CB_OK ? CB_OK : cb_error_prefix(err, "%s: %s", what, key);
}

static cb_status need_name(const cb__json *object, const char *key, const char *what, char *to,
                           size_t size, cb_error *err)
{
    const char *text = NULL;
    cb_status status = cb__json_need_text(object, key, &text, err);
    if (status != CB_OK)
        return cb_error_prefix(err, "%s", what);
    if ((size_t)snprintf(to, size, "%s", text) >= size)
        return cb_error_set(err, CB_USAGE, "%s: %s is longer than %zu bytes", what, key, size - 1);
    return CB_OK;
}

static cb_status need_kind(const cb__json *record, const char *kind, const char *what,
                           cb_error *err)
{
    const char *is = cb__json_text(cb__json_get(record, "kind"), "?");
    if (strcmp(is, kind) != 0)
        return cb_error_set(err, CB_USAGE, "%s: a record of kind '%.40s', not '%s'", what, is,
                            kind);
    if (!cb__json_truth(cb__json_get(record, "complete"), false))
        return cb_error_set(err, CB_USAGE, "%s: the record is incomplete", what);
    return CB_OK;
}

/* Wrong and impossible figures are added to nothing. */
static cb_status need_verdict(const cb__json *result, const char *what, cb_verdict *worst,
                              cb_error *err)
{
    const char *name = cb__json_text(cb__json_get(result, "verdict"), "");
    int verdict = cb__verdict_named(name);
    if (verdict < 0)
        return cb_error_set(err, CB_USAGE, "%s: no verdict of name '%.40s'", what, name);
    if (verdict <= CB_VERDICT_IMPOSSIBLE)
        return cb_error_set(err, CB_WRONG, "%s is %s: it predicts nothing", what, name);
    *worst = cb__verdict_worse(*worst, (cb_verdict)verdict);
    return CB_OK;
}

/* {"rows": 4096, "cols": 4096} as "4096x4096". */
static void shape_text(const cb__json *result, char text[64])
{
    void *iter = NULL;
    const char *key;
    const cb__json *value;
    size_t used = 0;
    text[0] = '\0';
    while (cb__json_next(cb__json_get(result, "shape"), &iter, &key, &value) && used < 40)
        used += (size_t)snprintf(text + used, 64 - used, "%s%" PRId64, used ? "x" : "",
                                 cb__json_i64(value, 0));
}

/* ---- the step ---- */

static cb_status read_part(const cb__json *json, const char *what, predicted_part *out,
                           cb_error *err)
{
    cb_status status = need_name(json, "names", what, out->names, sizeof out->names, err);
    shape_text(json, out->shape);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "count", 1, LAUNCHES_MAX, &out->count, err);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "bytes_read", 1, INT64_MAX / LAUNCHES_MAX,
                                   &out->bytes_read, err);
    return status == CB_OK ? need_interval(json, "alone_ns", what, &out->alone_ns, err) : status;
}

static cb_status read_parts(const cb__json *list, const char *what, prediction *out, cb_error *err)
{
    size_t n = cb__json_size(list);
    if (n < 1 || n > PARTS_MAX)
        return cb_error_set(err, CB_USAGE, "%s: a step has 1 to %d parts, not %zu", what, PARTS_MAX,
                            n);
    cb_status status = CB_OK;
    for (size_t i = 0; i < n && status == CB_OK; i++)
        status = read_part(cb__json_at(list, i), what, &out->parts[i], err);
    out->nparts = (int)n;
    return status;
}

static cb_status read_step(const cb__json *record, const char *what, prediction *out, cb_error *err)
{
    cb_verdict verdict = CB_VERDICT_OK;
    cb_status status = need_kind(record, "decode_step", what, err);
    if (status != CB_OK)
        return status;
    const cb__json *device = cb__json_get(record, "device");
    const cb__json *result = cb__json_at(cb__json_get(record, "results"), 0);
    status = need_verdict(result, what, &verdict, err);
    if (status == CB_OK)
        status = need_name(device, "name", what, out->device, sizeof out->device, err);
    if (status == CB_OK)
        status = need_name(device, "identity", what, out->identity, sizeof out->identity, err);
    if (status == CB_OK)
        status = need_name(result, "model", what, out->model, sizeof out->model, err);
    if (status == CB_OK)
        status = need_name(result, "variant", what, out->variant, sizeof out->variant, err);
    if (status == CB_OK)
        status = cb__json_need_i64(result, "launches", 1, LAUNCHES_MAX, &out->launches, err);
    if (status == CB_OK)
        status = cb__json_need_i64(result, "bytes_read", 1, INT64_MAX, &out->bytes_read, err);
    if (status == CB_OK)
        status = need_interval(result, "time_ns", what, &out->time_ns, err);
    if (status == CB_OK)
        status = need_interval(result, "over_alone", what, &out->over_alone, err);
    return status == CB_OK ? read_parts(cb__json_get(result, "parts"), what, out, err) : status;
}

/* ---- the parts ---- */

static bool is_row(const cb__json *result, const prediction *p, const char *shape,
                   cb__cache_state cache)
{
    char its[64];
    shape_text(result, its);
    return strcmp(its, shape) == 0 &&
           !strcmp(cb__json_text(cb__json_get(result, "variant"), ""), p->variant) &&
           !strcmp(cb__json_text(cb__json_get(result, "submit"), ""), "batched") &&
           !strcmp(cb__json_text(cb__json_get(result, "cache"), ""), cb__cache_name(cache));
}

static cb_status find_row(const cb__json *record, const char *what, const prediction *p,
                          const char *shape, cb__cache_state cache, const cb__json **out,
                          cb_error *err)
{
    const cb__json *results = cb__json_get(record, "results");
    for (size_t i = 0; i < cb__json_size(results); i++) {
        *out = cb__json_at(results, i);
        if (is_row(*out, p, shape, cache))
            return CB_OK;
    }
    return cb_error_set(err, CB_USAGE, "%s has no row of %s %s, %s, batched", what, p->variant,
                        shape, cb__cache_name(cache));
}

/* Takes in one more record's figure; `before` of them are in it. */
static void widen(cb__interval *all, cb__interval one, int before)
{
    if (before == 0) {
        *all = one;
        return;
    }
    all->lo = fmin(all->lo, one.lo);
    all->hi = fmax(all->hi, one.hi);
    all->mid = (all->mid * before + one.mid) / (before + 1);
    all->coverage = fmin(all->coverage, one.coverage);
}

static cb_status add_row(const cb__json *record, const char *what, prediction *p, int which,
                         cb__cache_state cache, double first_ns[2], cb_error *err)
{
    predicted_part *part = &p->parts[which];
    const cb__json *row = NULL;
    cb__interval ns;
    int64_t bytes = 0;
    char row_name[320];
    cb_status status = find_row(record, what, p, part->shape, cache, &row, err);
    snprintf(row_name, sizeof row_name, "%.200s: %s %s", what, part->shape, cb__cache_name(cache));
    if (status == CB_OK)
        status = need_verdict(row, row_name, &part->verdict[cache], err);
    if (status == CB_OK)
        status = need_interval(row, "time_ns", row_name, &ns, err);
    if (status == CB_OK)
        status = cb__json_need_i64(row, "bytes_read", 1, INT64_MAX, &bytes, err);
    if (status == CB_OK && bytes != part->bytes_read)
        status = cb_error_set(err, CB_WRONG, "%s reads %" PRId64 " bytes, in the step %" PRId64,
                              row_name, bytes, part->bytes_read);
    if (status != CB_OK)
        return status;
    if (p->nrecords == 0)
        first_ns[cache] = ns.mid;
    widen(&part->ns[cache], ns, p->nrecords);
    part->drift[cache] = ns.mid / first_ns[cache] - 1;
    return CB_OK;
}

static cb_status add_record(const cb__json *record, const char *what, prediction *p,
                            double first_ns[][2], cb_error *err)
{
    char identity[64];
    cb_status status = need_kind(record, "run", what, err);
    if (status == CB_OK)
        status = need_name(cb__json_get(record, "device"), "identity", what, identity,
                           sizeof identity, err);
    if (status == CB_OK && strcmp(identity, p->identity) != 0)
        status = cb_error_set(err, CB_USAGE, "%s is of device %s, the step of %s", what, identity,
                              p->identity);
    for (int i = 0; i < p->nparts && status == CB_OK; i++)
        for (int cache = CB__COLD; cache <= CB__WARM && status == CB_OK; cache++)
            status = add_row(record, what, p, i, (cb__cache_state)cache, first_ns[i], err);
    p->nrecords++;
    return status;
}

/* ---- sums ---- */

/* Counted twice, independently: by the launches of the batch, and by parts. */
static cb_status check_sums(const prediction *p, cb_error *err)
{
    int64_t launches = 0, bytes = 0;
    for (int i = 0; i < p->nparts; i++) {
        launches += p->parts[i].count;
        bytes += p->parts[i].count * p->parts[i].bytes_read;
    }
    if (launches != p->launches)
        return cb_error_set(err, CB_WRONG, "the parts are %" PRId64 " launches, the step %" PRId64,
                            launches, p->launches);
    if (bytes != p->bytes_read)
        return cb_error_set(err, CB_WRONG, "the parts read %" PRId64 " bytes, the step %" PRId64,
                            bytes, p->bytes_read);
    return CB_OK;
}

static void add_up(prediction *p)
{
    for (int cache = CB__COLD; cache <= CB__WARM; cache++) {
        cb__interval *sum = &p->sum_ns[cache];
        *sum = (cb__interval){0, 0, 0, 1};
        for (int i = 0; i < p->nparts; i++) {
            cb__interval ns = p->parts[i].ns[cache];
            double count = (double)p->parts[i].count;
            sum->lo += count * ns.lo;
            sum->mid += count * ns.mid;
            sum->hi += count * ns.hi;
            sum->coverage = fmin(sum->coverage, ns.coverage);
        }
        p->error[cache] =
            (cb__interval){sum->lo / p->time_ns.hi - 1, sum->mid / p->time_ns.mid - 1,
                           sum->hi / p->time_ns.lo - 1, fmin(sum->coverage, p->time_ns.coverage)};
    }
}

cb_status prediction_make(const cb__json *whole, const cb__json *const *parts,
                          const char *const *names, int nparts, prediction *out, cb_error *err)
{
    double first_ns[PARTS_MAX][2];
    *out = (prediction){0};
    for (int i = 0; i < PARTS_MAX; i++)
        out->parts[i].verdict[0] = out->parts[i].verdict[1] = CB_VERDICT_OK;
    cb_status status = read_step(whole, names[0], out, err);
    if (status == CB_OK)
        status = check_sums(out, err);
    for (int i = 0; i < nparts && status == CB_OK; i++)
        status = add_record(parts[i], names[i + 1], out, first_ns, err);
    if (status == CB_OK)
        add_up(out);
    return status;
}

bool prediction_undecided(const prediction *p)
{
    cb_verdict worst = CB_VERDICT_OK;
    for (int i = 0; i < p->nparts; i++)
        for (int cache = CB__COLD; cache <= CB__WARM; cache++)
            worst = cb__verdict_worse(worst, p->parts[i].verdict[cache]);
    return worst == CB_VERDICT_CONTAMINATED || worst == CB_VERDICT_UNSTABLE ||
           worst == CB_VERDICT_UNKNOWN;
}

/* ---- what is told ---- */

static void put_us(cb__interval ns, cb__buf *out)
{
    char text[64];
    snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", ns.mid * 1e-3, ns.lo * 1e-3, ns.hi * 1e-3);
    cb__buf_printf(out, " %-24s", text);
}

static void put_percent(cb__interval x, cb__buf *out)
{
    cb__buf_printf(out, "%+.2f %% [%+.2f, %+.2f]", 100 * x.mid, 100 * x.lo, 100 * x.hi);
}

static void part_row(const prediction *p, const predicted_part *part, cb__buf *out)
{
    double cold = (double)part->count * part->ns[CB__COLD].mid;
    cb__buf_printf(out, "%-10s %-11s %5" PRId64, part->names, part->shape, part->count);
    put_us(part->ns[CB__COLD], out);
    put_us(part->ns[CB__WARM], out);
    put_us(part->alone_ns, out);
    cb__buf_printf(out, " %5.1f %%", 100 * cold / p->sum_ns[CB__COLD].mid);
    if (p->nrecords > 1)
        cb__buf_printf(out, "  %+.2f %+.2f %%", 100 * part->drift[CB__COLD],
                       100 * part->drift[CB__WARM]);
    for (int cache = CB__COLD; cache <= CB__WARM; cache++)
        if (part->verdict[cache] != CB_VERDICT_OK)
            cb__buf_printf(out, "  %s: %s", cb__cache_name((cb__cache_state)cache),
                           cb_verdict_name(part->verdict[cache]));
    cb__buf_puts(out, "\n");
}

static void sums(const prediction *p, cb__buf *out)
{
    cb__interval alone = {0, 0, 0, 1};
    for (int i = 0; i < p->nparts; i++) {
        double count = (double)p->parts[i].count;
        alone.lo += count * p->parts[i].alone_ns.lo;
        alone.mid += count * p->parts[i].alone_ns.mid;
        alone.hi += count * p->parts[i].alone_ns.hi;
    }
    cb__buf_printf(out, "%-10s %-11s %5" PRId64, "sum", "", p->launches);
    put_us(p->sum_ns[CB__COLD], out);
    put_us(p->sum_ns[CB__WARM], out);
    put_us(alone, out);
    cb__buf_puts(out, "\n");
}

void prediction_text(const prediction *p, cb__buf *out)
{
    double cold = fabs(p->error[CB__COLD].mid), warm = fabs(p->error[CB__WARM].mid);
    cb__buf_printf(out,
                   "decode step of %s on %s: %" PRId64 " launches, %.3f GB\n%s\nparts as measured "
                   "by %d run%s; us a launch, batched\n",
                   p->model, p->device, p->launches, (double)p->bytes_read * 1e-9, p->variant,
                   p->nrecords, p->nrecords > 1 ? "s" : "");
    cb__buf_printf(out, "%-10s %-11s %5s %-24s %-24s %-24s %7s%s\n", "part", "shape", "count",
                   "cold", "warm", "the step's own, alone", "of cold",
                   p->nrecords > 1 ? "  drift cold, warm" : "");
    for (int i = 0; i < p->nparts; i++)
        part_row(p, &p->parts[i], out);
    sums(p, out);
    cb__buf_puts(out, "step, measured               ");
    put_us(p->time_ns, out);
    cb__buf_puts(out, "\npredicted by cold parts       ");
    put_percent(p->error[CB__COLD], out);
    cb__buf_printf(out, "   %s 3 %%", cold <= WITHIN ? "within" : "NOT within");
    cb__buf_puts(out, "\npredicted by warm parts       ");
    put_percent(p->error[CB__WARM], out);
    cb__buf_printf(out, "   %s", warm > cold + EQUAL ? "worse" : "NOT worse");
    cb__interval own = {1 / p->over_alone.hi - 1, 1 / p->over_alone.mid - 1,
                        1 / p->over_alone.lo - 1, p->over_alone.coverage};
    cb__buf_puts(out, "\nby its own matrices, alone    ");
    put_percent(own, out);
    cb__buf_puts(out, "   same process, same blocks\n");
}

void prediction_put(const prediction *p, cb__json_writer *w)
{
    cb__json_put_text(w, "model", p->model);
    cb__json_put_text(w, "variant", p->variant);
    cb__json_put_text(w, "device_name", p->device);
    cb__json_put_text(w, "identity", p->identity);
    cb__json_put_int(w, "launches", p->launches);
    cb__json_put_int(w, "bytes_read", p->bytes_read);
    cb__json_put_int(w, "records", p->nrecords);
    cb__put_interval(w, "step_ns", p->time_ns);
    cb__put_interval(w, "over_alone", p->over_alone);
    cb__put_interval(w, "cold_ns", p->sum_ns[CB__COLD]);
    cb__put_interval(w, "warm_ns", p->sum_ns[CB__WARM]);
    cb__put_interval(w, "cold_error", p->error[CB__COLD]);
    cb__put_interval(w, "warm_error", p->error[CB__WARM]);
    cb__json_key(w, "parts");
    cb__json_array(w);
    for (int i = 0; i < p->nparts; i++) {
        const predicted_part *part = &p->parts[i];
        cb__json_object(w);
        cb__json_put_text(w, "names", part->names);
        cb__json_put_text(w, "shape", part->shape);
        cb__json_put_int(w, "count", part->count);
        cb__put_interval(w, "cold_ns", part->ns[CB__COLD]);
        cb__put_interval(w, "warm_ns", part->ns[CB__WARM]);
        cb__put_interval(w, "alone_ns", part->alone_ns);
        cb__json_put_real(w, "cold_drift", part->drift[CB__COLD]);
        cb__json_put_real(w, "warm_drift", part->drift[CB__WARM]);
        cb__json_put_text(w, "cold_verdict", cb_verdict_name(part->verdict[CB__COLD]));
        cb__json_put_text(w, "warm_verdict", cb_verdict_name(part->verdict[CB__WARM]));
        cb__json_end(w);
    }
    cb__json_end(w);
}
