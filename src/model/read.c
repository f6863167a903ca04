/* The file's reader: strict and total. Whatever it lets through, every query may rely on: intervals
 * in order, sizes that rise, knees of curves that are there. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "model/file.h"
#include "model/members.h"
#include "stats/knees.h"

enum {
    ROWS_MAX = 1024,
    POINTS_MAX = CB__SERIES_MAX * CB__SERIES_POINTS_MAX,
    WORKERS_MAX = 65536,
    INSTANCES_MAX = 65536,
    SWEEPS_MAX = 1000
};

#define LEVEL_BYTES_MAX (INT64_C(1) << 46) /* times INSTANCES_MAX stays below 2^63 */

static const char *const mixes[] = {"read", "read_l1", "write", "write_nt", "copy", "copy_nt"};
enum { NMIXES = sizeof mixes / sizeof *mixes };

/* ---- rows ---- */

typedef cb_status row_reader(cb_model *m, const cb__json *row, void *to, cb_error *err);

/* An array of objects into an array of the model's arena. */
static cb_status read_rows(cb_model *m, const cb__json *object, const char *key, size_t max,
                           size_t bytes, row_reader *read, void **rows, int *n, cb_error *err)
{
    const cb__json *array = cb__json_get(object, key);
    size_t count = cb__json_size(array);
    *n = 0;
    if (!cb__json_is_array(array))
        return cb_error_set(err, CB_USAGE, "'%s' is %s", key, array ? "not an array" : "missing");
    if (count > max)
        return cb_error_set(err, CB_USAGE, "'%s' has %zu rows, at most %zu", key, count, max);
    *rows = cb__arena_array(&m->arena, count, bytes);
    if (!*rows)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for %zu rows", count);
    cb_status status = CB_OK;
    for (size_t i = 0; i < count && status == CB_OK; i++) {
        const cb__json *row = cb__json_at(array, i);
        status = cb__json_is_object(row) ? read(m, row, (char *)*rows + i * bytes, err)
                                         : cb_error_set(err, CB_USAGE, "not an object");
        cb_error_prefix(err, "%s[%zu]", key, i);
    }
    *n = (int)count;
    return status;
}

static cb_status read_level(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    cb__level *level = to;
    (void)m;
    cb_status status = cb__model_need_int(row, "level", 1, CB__LEVELS_MAX, &level->level, err);
    if (status == CB_OK)
        status = cb__model_need_bytes(row, "bytes", LEVEL_BYTES_MAX, &level->bytes, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "instances", 1, INSTANCES_MAX, &level->instances, err);
    return status;
}

static cb_status read_levels(cb_model *m, const cb__json *root, cb_error *err)
{
    void *rows = NULL;
    cb_status status = read_rows(m, root, "levels", CB__LEVELS_MAX, sizeof *m->levels, read_level,
                                 &rows, &m->nlevels, err);
    if (status != CB_OK)
        return status;
    memcpy(m->levels, rows, (size_t)m->nlevels * sizeof *m->levels);
    for (int i = 1; i < m->nlevels; i++)
        if (m->levels[i].level <= m->levels[i - 1].level)
            return cb_error_set(err, CB_USAGE, "levels[%d]: 'level' does not rise", i);
    return CB_OK;
}

static cb_status read_check(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    static const char *const words[] = {"pass", "fail", "skip"};
    cb__check *check = to;
    char name[64], word[8];
    cb_status status = cb__model_need_text(row, "name", name, sizeof name, err);
    if (status == CB_OK)
        status = cb__model_need_word(row, "status", words, 3, word, sizeof word, err);
    if (status == CB_OK)
        status = cb__model_need_bool(row, "required", &check->required, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &check->verdict, err);
    if (status == CB_OK)
        status = cb__model_need_text(row, "detail", check->detail, sizeof check->detail, err);
    if (status != CB_OK)
        return status;
    while (strcmp(cb__check_status_name(check->status), word) != 0)
        check->status++;
    check->name = cb__arena_strdup(&m->arena, name);
    return check->name ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "no memory for a name");
}

/* ---- curves: a row a point, the points of a curve one after the other ---- */

typedef struct curve_row {
    cb__series head; /* without points */
    cb__point point;
} curve_row;

/* What differs by place has both ends, and its median between them. */
static cb_status read_places(const cb__json *row, cb__point *point, cb_error *err)
{
    if (!cb__json_get(row, "low") && !cb__json_get(row, "high"))
        return CB_OK;
    cb_status status = cb__model_need_figure(row, "low", CB__FIGURE_MIN, &point->low, err);
    if (status == CB_OK)
        status = cb__model_need_figure(row, "high", CB__FIGURE_MIN, &point->high, err);
    if (status == CB_OK && (point->low > point->value.mid || point->value.mid > point->high))
        status = cb_error_set(err, CB_USAGE, "low %g, mid %g, high %g are out of order", point->low,
                              point->value.mid, point->high);
    return status;
}

static cb_status read_point(const cb__json *row, const char *key, cb__point *point, cb_error *err)
{
    *point = (cb__point){0};
    cb_status status = cb__model_need_bytes(row, "bytes", INT64_MAX, &point->bytes, err);
    if (status == CB_OK)
        status = cb__model_need_interval(row, key, CB__FIGURE_MIN, &point->value, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &point->verdict, err);
    return status;
}

static cb_status read_bandwidth(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    static const char *const placements[] = {"compact", "scattered"};
    cb__series *head = &((curve_row *)to)->head;
    (void)m;
    head->kind = CB__BANDWIDTH;
    cb_status status =
        cb__model_need_word(row, "mix", mixes, NMIXES, head->what, sizeof head->what, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "workers", 1, WORKERS_MAX, &head->workers, err);
    if (status == CB_OK)
        status = cb__model_need_word(row, "placement", placements, 2, head->placement,
                                     sizeof head->placement, err);
    if (status == CB_OK)
        status = read_point(row, "gb_per_s", &((curve_row *)to)->point, err);
    return status;
}

static cb_status read_latency(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    static const char *const patterns[] = {"local", "random"};
    cb__series *head = &((curve_row *)to)->head;
    (void)m;
    head->kind = CB__LATENCY;
    head->workers = 1;
    strcpy(head->placement, "compact");
    cb_status status =
        cb__model_need_word(row, "pattern", patterns, 2, head->what, sizeof head->what, err);
    if (status == CB_OK)
        status = cb__json_need_i64(row, "page_bytes", 1, INT64_MAX, &head->page_bytes, err);
    if (status == CB_OK)
        status = read_point(row, "ns", &((curve_row *)to)->point, err);
    if (status == CB_OK)
        status = read_places(row, &((curve_row *)to)->point, err);
    return status;
}

static bool same_curve(const cb__series *a, const cb__series *b)
{
    return a->kind == b->kind && !strcmp(a->what, b->what) && a->workers == b->workers &&
           !strcmp(a->placement, b->placement) && a->page_bytes == b->page_bytes;
}

/* Adds a point to the curve that is being read, or begins the next one at `points`. */
static cb_status add_point(cb_model *m, const curve_row *row, cb__point *points, cb_error *err)
{
    char name[48];
    cb__series_name(&row->head, name);
    cb__series *current = m->nseries ? &m->series[m->nseries - 1] : NULL;
    if (!current || !same_curve(current, &row->head)) {
        for (int i = 0; i < m->nseries; i++)
            if (same_curve(&m->series[i], &row->head))
                return cb_error_set(err, CB_USAGE, "the points of %s are not in one place", name);
        if (m->nseries == CB__SERIES_MAX)
            return cb_error_set(err, CB_USAGE, "%s is one curve too many, at most %d", name,
                                CB__SERIES_MAX);
        current = &m->series[m->nseries++];
        *current = row->head;
        current->points = points;
    } else if (row->point.bytes <= current->points[current->n - 1].bytes) {
        return cb_error_set(err, CB_USAGE, "'bytes' of %s do not rise", name);
    }
    if (current->n == CB__SERIES_POINTS_MAX)
        return cb_error_set(err, CB_USAGE, "%s has more than %d points", name,
                            CB__SERIES_POINTS_MAX);
    current->points[current->n++] = row->point;
    return CB_OK;
}

static cb_status read_curves(cb_model *m, const cb__json *object, const char *key, row_reader *read,
                             cb_error *err)
{
    void *rows = NULL;
    int n = 0;
    cb_status status =
        read_rows(m, object, key, POINTS_MAX, sizeof(curve_row), read, &rows, &n, err);
    if (status != CB_OK)
        return status;
    cb__point *points = cb__arena_array(&m->arena, (size_t)n, sizeof *points);
    if (!points)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for %d points", n);
    for (int i = 0; i < n && status == CB_OK; i++) {
        status = add_point(m, (curve_row *)rows + i, points + i, err);
        cb_error_prefix(err, "%s[%d]", key, i);
    }
    return status;
}

/* ---- knees ---- */

static cb_status find_curve(const cb_model *m, const char *name, int *series, cb_error *err)
{
    char other[48];
    for (int i = 0; i < m->nseries; i++) {
        cb__series_name(&m->series[i], other);
        if (strcmp(other, name) == 0) {
            *series = i;
            return CB_OK;
        }
    }
    return cb_error_set(err, CB_USAGE, "'curve' is '%s', which is no curve of the model", name);
}

static cb_status read_knee(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    cb__model_knee *knee = to;
    char name[48];
    cb_status status = cb__model_need_text(row, "curve", name, sizeof name, err);
    if (status == CB_OK)
        status = find_curve(m, name, &knee->series, err);
    if (status == CB_OK)
        status = cb__model_need_bytes(row, "lo_bytes", INT64_MAX, &knee->lo_bytes, err);
    if (status == CB_OK)
        status = cb__model_need_bytes(row, "hi_bytes", INT64_MAX, &knee->hi_bytes, err);
    if (status == CB_OK)
        status = cb__model_need_figure(row, "from", CB__FIGURE_MIN, &knee->from, err);
    if (status == CB_OK)
        status = cb__model_need_figure(row, "to", CB__FIGURE_MIN, &knee->to, err);
    if (status == CB_OK)
        status = cb__model_need_bool(row, "last", &knee->last, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &knee->verdict, err);
    if (status == CB_OK && knee->lo_bytes >= knee->hi_bytes)
        status = cb_error_set(err, CB_USAGE, "'lo_bytes' is not below 'hi_bytes'");
    return status;
}

/* The knees of a curve rise, none follows its last one, and there are no more than are looked for.
 */
static cb_status check_knees(const cb_model *m, cb_error *err)
{
    for (int i = 0; i < m->nknees; i++) {
        const cb__model_knee *knee = &m->knees[i], *before = NULL;
        int seen = 1;
        for (int k = 0; k < i; k++)
            if (m->knees[k].series == knee->series) {
                before = &m->knees[k];
                seen++;
            }
        if (before && before->hi_bytes > knee->lo_bytes)
            return cb_error_set(err, CB_USAGE, "knees[%d]: it overlaps the one before it", i);
        if (before && before->last)
            return cb_error_set(err, CB_USAGE, "knees[%d]: it follows the last knee of its curve",
                                i);
        if (seen > CB__KNEES_MAX)
            return cb_error_set(err, CB_USAGE, "knees[%d]: its curve has more than %d knees", i,
                                CB__KNEES_MAX);
    }
    return CB_OK;
}

/* ---- figures without a size ---- */

static cb_status read_ceiling(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    cb__model_ceiling *ceiling = to;
    (void)m;
    cb_status status =
        cb__model_need_word(row, "mix", mixes, NMIXES, ceiling->mix, sizeof ceiling->mix, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "workers", 1, WORKERS_MAX, &ceiling->workers, err);
    if (status == CB_OK)
        status = cb__model_need_interval(row, "gb_per_s", CB__FIGURE_MIN, &ceiling->gb_per_s, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &ceiling->verdict, err);
    return status;
}

static cb_status read_floor(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    static const char *const modes[] = {"solo", "stream", "batched"};
    cb__model_floor *f = to;
    (void)m;
    cb_status status =
        cb__model_need_word(row, "submit", modes, 3, f->submit, sizeof f->submit, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "threads", 1, WORKERS_MAX, &f->threads, err);
    if (status == CB_OK) /* a device may take no time at all to launch nothing */
        status = cb__model_need_interval(row, "ns", 0, &f->ns, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &f->verdict, err);
    return status;
}

static cb_status read_compute(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    cb__model_compute *compute = to;
    (void)m;
    cb_status status = cb__model_need_text(row, "type", compute->type, sizeof compute->type, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "threads", 1, WORKERS_MAX, &compute->threads, err);
    if (status == CB_OK)
        status =
            cb__model_need_interval(row, "gflop_per_s", CB__FIGURE_MIN, &compute->gflop_per_s, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &compute->verdict, err);
    return status;
}

static cb_status read_start(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    cb__model_start *start = to;
    char name[48];
    cb_status status = cb__model_need_text(row, "curve", name, sizeof name, err);
    if (status == CB_OK)
        status = find_curve(m, name, &start->series, err);
    if (status == CB_OK)
        status = cb__model_need_bytes(row, "lo_bytes", INT64_MAX, &start->lo_bytes, err);
    if (status == CB_OK)
        status = cb__model_need_bytes(row, "hi_bytes", INT64_MAX, &start->hi_bytes, err);
    if (status == CB_OK)
        status = cb__model_need_figure(row, "to", CB__FIGURE_MIN, &start->to, err);
    if (status == CB_OK && start->lo_bytes >= start->hi_bytes)
        status = cb_error_set(err, CB_USAGE, "'lo_bytes' is not below 'hi_bytes'");
    return status;
}

static cb_status read_scratch(cb_model *m, const cb__json *row, void *to, cb_error *err)
{
    static const char *const paths[] = {"shared", "global"};
    cb__model_scratch *scratch = to;
    (void)m;
    cb_status status =
        cb__model_need_word(row, "path", paths, 2, scratch->path, sizeof scratch->path, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "width", 1, CB__WIDTH_MAX, &scratch->width, err);
    if (status == CB_OK)
        status = cb__model_need_int(row, "stride", 1, CB__STRIDE_MAX, &scratch->stride, err);
    if (status == CB_OK)
        status = cb__model_need_interval(row, "gb_per_s", CB__FIGURE_MIN, &scratch->gb_per_s, err);
    if (status == CB_OK)
        status = cb__model_need_verdict(row, &scratch->verdict, err);
    return status;
}

static cb_status read_banks(cb_model *m, const cb__json *object, cb_error *err)
{
    const cb__json *banks = cb__json_get(object, "banks");
    m->has_banks = banks != NULL;
    if (!banks)
        return CB_OK;
    cb_status status = cb__json_is_object(banks) ? CB_OK : cb_error_set(err, CB_USAGE, "no object");
    if (status == CB_OK)
        status = cb__model_need_int(banks, "banks", 0, CB__BANKS_MAX, &m->banks.banks, err);
    if (status == CB_OK)
        status = cb__model_need_int(banks, "bank_bytes", m->banks.banks ? 1 : 0, CB__BANK_BYTES_MAX,
                                    &m->banks.bank_bytes, err);
    if (status == CB_OK)
        status = cb__model_need_figure(banks, "misfit", 0, &m->banks.misfit, err);
    cb_error_prefix(err, "banks");
    return status;
}

static bool same_interval(cb__interval a, cb__interval b)
{
    return !(a.lo < b.lo || a.lo > b.lo || a.mid < b.mid || a.mid > b.mid || a.hi < b.hi ||
             a.hi > b.hi);
}

/* "ceilings" repeats, for readers that want one number, what "ceilings_by" holds. */
static cb_status check_ceilings(const cb_model *m, const cb__json *object, cb_error *err)
{
    static const char *const repeated[] = {"read", "write", "copy"};
    const cb__json *ceilings = cb__json_get(object, "ceilings");
    if (!cb__json_is_object(ceilings))
        return cb_error_set(err, CB_USAGE, "'ceilings' is %s", ceilings ? "no object" : "missing");
    cb_status status = CB_OK;
    for (int i = 0; i < 3 && status == CB_OK; i++) {
        const cb__model_ceiling *best = cb__model_ceiling_best(m, repeated[i], cb_model_workers(m));
        cb__interval x = {0};
        if (best)
            status = cb__model_need_interval(ceilings, repeated[i], CB__FIGURE_MIN, &x, err);
        else if (cb__json_is_object(cb__json_get(ceilings, repeated[i])))
            status = cb_error_set(err, CB_USAGE, "'%s' is not among 'ceilings_by'", repeated[i]);
        if (best && status == CB_OK && !same_interval(x, best->gb_per_s))
            status =
                cb_error_set(err, CB_USAGE, "'%s' is not the best of 'ceilings_by'", repeated[i]);
    }
    cb_error_prefix(err, "ceilings");
    return status;
}

/* ---- the whole ---- */

static cb_status read_figures(cb_model *m, const cb__json *object, cb_error *err)
{
    void *rows = NULL;
    m->series = cb__arena_array(&m->arena, CB__SERIES_MAX, sizeof *m->series);
    if (!m->series)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for curves");
    cb_status status = read_curves(m, object, "curves", read_bandwidth, err);
    if (status == CB_OK)
        status = read_curves(m, object, "latency", read_latency, err);
    if (status == CB_OK)
        status = read_rows(m, object, "knees", ROWS_MAX, sizeof *m->knees, read_knee, &rows,
                           &m->nknees, err);
    m->knees = rows;
    if (status == CB_OK)
        status = check_knees(m, err);
    if (status == CB_OK)
        status = read_rows(m, object, "ceilings_by", ROWS_MAX, sizeof *m->ceilings, read_ceiling,
                           &rows, &m->nceilings, err);
    m->ceilings = rows;
    if (status == CB_OK)
        status = check_ceilings(m, object, err);
    if (status == CB_OK)
        status = read_rows(m, object, "floors", ROWS_MAX, sizeof *m->floors, read_floor, &rows,
                           &m->nfloors, err);
    m->floors = rows;
    if (status == CB_OK)
        status = read_rows(m, object, "compute", ROWS_MAX, sizeof *m->computes, read_compute, &rows,
                           &m->ncomputes, err);
    m->computes = rows;
    if (status == CB_OK && cb__json_get(object, "starts"))
        status = read_rows(m, object, "starts", ROWS_MAX, sizeof *m->starts, read_start, &rows,
                           &m->nstarts, err);
    m->starts = m->nstarts ? rows : NULL;
    if (status == CB_OK)
        status = read_rows(m, object, "scratch", ROWS_MAX, sizeof *m->scratch, read_scratch, &rows,
                           &m->nscratch, err);
    m->scratch = rows;
    return status == CB_OK ? read_banks(m, object, err) : status;
}

/* What must be known before any figure is looked at. */
static cb_status read_key(cb_model *m, const cb__json *root, const char *identity, cb_error *err)
{
    const char *schema;
    cb_status status = cb__json_need_text(root, "schema", &schema, err);
    if (status == CB_OK && strcmp(schema, CB__MODEL_SCHEMA) != 0)
        status = cb_error_set(err, CB_USAGE,
                              "it has schema '%.100s', this program reads '" CB__MODEL_SCHEMA "'",
                              schema);
    if (status == CB_OK)
        status = cb__model_need_text(root, "identity", m->identity, sizeof m->identity, err);
    if (status == CB_OK && !cb__model_identity_ok(m->identity))
        status = cb_error_set(err, CB_USAGE,
                              "'identity' is '%s', must be letters, digits, '.', '_' and '-'",
                              m->identity);
    if (status == CB_OK && identity && strcmp(identity, m->identity) != 0)
        status =
            cb_error_set(err, CB_USAGE, "it is of another machine: of '%s', this one is '%.63s'",
                         m->identity, identity);
    return status;
}

static cb_status read_provenance(cb_model *m, const cb__json *root, cb_error *err)
{
    const cb__json *tool = cb__json_get(root, "tool");
    cb_status status = cb__model_need_text(root, "device", m->device, sizeof m->device, err);
    if (status == CB_OK)
        status = cb__model_need_text(root, "name", m->name, sizeof m->name, err);
    if (status == CB_OK)
        status = cb__model_need_text(root, "written", m->written, sizeof m->written, err);
    if (status == CB_OK && !cb__json_is_object(tool))
        status = cb_error_set(err, CB_USAGE, "'tool' is %s", tool ? "no object" : "missing");
    if (status == CB_OK) {
        status = cb__model_need_text(tool, "version", m->version, sizeof m->version, err);
        if (status == CB_OK)
            status = cb__model_need_text(tool, "source_id", m->source_id, sizeof m->source_id, err);
        cb_error_prefix(err, "tool");
    }
    int64_t seed = 0;
    if (status == CB_OK)
        status = cb__json_need_i64(root, "seed", 0, INT64_MAX, &seed, err);
    m->seed = (uint64_t)seed;
    if (status == CB_OK)
        status = cb__model_need_bool(root, "quick", &m->quick, err);
    if (status == CB_OK)
        status = cb__model_need_bool(root, "complete", &m->complete, err);
    if (status == CB_OK && cb__json_get(root, "dropped"))
        status = cb__model_need_text(root, "dropped", m->dropped, sizeof m->dropped, err);
    if (status == CB_OK)
        status = cb__model_need_int(root, "threads", 1, WORKERS_MAX, &m->threads, err);
    if (status == CB_OK)
        status = cb__model_need_int(root, "sweeps", 0, SWEEPS_MAX, &m->sweeps, err);
    return status;
}

static cb_status read_root(cb_model *m, const cb__json *root, const char *identity, cb_error *err)
{
    void *rows = NULL;
    cb_status status = read_key(m, root, identity, err);
    if (status == CB_OK)
        status = read_provenance(m, root, err);
    if (status == CB_OK)
        status = read_levels(m, root, err);
    if (status == CB_OK)
        status = read_rows(m, root, "checks", ROWS_MAX, sizeof *m->checks, read_check, &rows,
                           &m->nchecks, err);
    m->checks = rows;
    const cb__json *figures = cb__json_get(root, "model");
    if (status == CB_OK && !cb__json_is_object(figures))
        status = cb_error_set(err, CB_USAGE, "'model' is %s", figures ? "no object" : "missing");
    if (status == CB_OK) {
        status = read_figures(m, figures, err);
        cb_error_prefix(err, "model");
    }
    return status;
}

cb_status cb__model_read_text(const char *text, size_t size, const char *what, const char *identity,
                              cb_model **out, cb_error *err)
{
    cb_error fault = CB_ERROR_INIT;
    cb__json *root = NULL;
    cb_model *model = cb__model_new();
    *out = NULL;
    if (!model)
        return cb_error_set(err, CB_NO_MEMORY, "%.500s: no memory for a model", what);
    cb_status status = CB_OK;
    if (size > CB__MODEL_BYTES_MAX)
        status = cb_error_set(&fault, CB_USAGE, "%.500s: it is over %d MiB long", what,
                              CB__MODEL_BYTES_MAX >> 20);
    if (status == CB_OK)
        status = cb__json_parse(text, size, what, &root, &fault);
    if (status == CB_OK) {
        status = read_root(model, root, identity, &fault);
        cb_error_prefix(&fault, "%.500s", what);
    }
    cb__json_free(root);
    if (status == CB_OK) {
        *out = model;
        return CB_OK;
    }
    cb_model_free(model);
    if (status == CB_NO_MEMORY)
        return cb_error_set(err, status, "%s", fault.message);
    return cb_error_set(err, CB_UNAVAILABLE, "%.950s; run coldbench probe", fault.message);
}
