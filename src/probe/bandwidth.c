/* Bandwidth over working sets. A figure comes from the slope between p and 3p passes in one launch,
 * so that neither the dispatch nor the start of a pass is in it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "probe/sweep_internal.h"
#include "stats/order.h"

enum { OCTAVES = 64, CHUNK_WORDS = 8192, LINE_BYTES = 64, QUEUED_PASSES_MAX = 255 };
#define SEARCH_NS 200e3 /* a reading while searching */
#define READING_NS 2e6  /* a pair of readings */
/* From here on only what was best on smaller sets is searched again, one pass each: sets that long
 * are in memory, where the variants differ little. */
#define LONG_PASS_NS 3e6

/* What drives sets of one octave best. A size of its own is an uneven share of the lanes of a
 * device, differently in each variant: there all are tried at each size, and the best two measured.
 * With the best four of an octave one sweep in six had left out the variant that drove a size best,
 * by up to 20 % (H200, 2026-11). */
enum { BEST = 2, QUEUED_BEST = CB__JOB_VARIANTS_MAX, MEASURED = 2 };
typedef struct drive {
    int best[CB__JOB_VARIANTS_MAX]; /* variants */
    int nbest;
    double pass_ns; /* of the best, on the largest set of the octave */
    double edge_gain;
} drive;

typedef struct mixing {
    cb__sweeping *s;
    const cb__job *job;
    bool reads, writes;
    uint64_t poison;
    drive octaves[OCTAVES];
} mixing;

static int octave_of(uint64_t bytes)
{
    int octave = 0;
    while (bytes >>= 1)
        octave++;
    return octave;
}

/* Copies go from the first half of the working set to the second. */
static cb_status bind_passes(mixing *m, const char *variant, uint64_t bytes, int64_t passes,
                             cb__bound *to, cb_error *err)
{
    char params[32];
    snprintf(params, sizeof params, "passes=%" PRId64, passes);
    uint64_t half = m->reads && m->writes ? bytes / 2 : 0;
    char *set = m->s->set;
    return cb__sweep_bind(m->s, variant, params, half ? half : bytes, set, m->s->input,
                          m->writes ? set + half : m->s->output, to, err);
}

static bool same_geometry(const cb__bound *a, const cb__bound *b, int processors)
{
    cb_geometry x, y;
    const cb_device_code *code = a->code.impl->device;
    return code->geometry(&a->code.problem, a->code.tunables, processors, &x) == 0 &&
           code->geometry(&b->code.problem, b->code.tunables, processors, &y) == 0 &&
           memcmp(x.grid, y.grid, sizeof x.grid) == 0;
}

/* Work that goes over the set so many times. Where a launch of several passes has other blocks than
 * one of a single pass (it must not have more than stay for all of them), each pass is a launch. */
static cb_status bind(mixing *m, const char *variant, uint64_t bytes, int64_t passes, cb__bound *to,
                      cb_error *err)
{
    cb__bound one;
    cb_status status = bind_passes(m, variant, bytes, passes, to, err);
    if (status != CB_OK || passes == 1 || !to->code.impl->device)
        return status;
    status = bind_passes(m, variant, bytes, 1, &one, err);
    if (status != CB_OK || same_geometry(&one, to, m->s->info.threads))
        return status;
    status = bind_passes(m, variant, bytes, 1, to, err);
    to->times = (int)passes;
    return status;
}

/* So many in one launch, or as launches, of which a batch holds less. */
static int64_t passes_max(const cb__sweeping *s)
{
    return s->info.queued ? QUEUED_PASSES_MAX : CB__PASSES_MAX;
}

/* ---- drive ---- */

/* Time of one pass; readings as long as SEARCH_NS where a pass is shorter. */
static cb_status time_pass(mixing *m, int variant, uint64_t bytes, double *ns, cb_error *err)
{
    cb__bound one, some;
    double once = 0;
    cb_status status = bind(m, m->job->variants[variant], bytes, 1, &one, err);
    /* The second finds what the first left; there is nothing to find of a long one. */
    for (int i = 0; i < 2 && once < LONG_PASS_NS && status == CB_OK; i++)
        status = cb__sweep_time(m->s, &one, &once, err);
    double pass = once > 2 * m->s->empty_ns ? once - m->s->empty_ns : (double)bytes / 200;
    int64_t passes = cb__sweep_repeats(SEARCH_NS, pass, passes_max(m->s));
    *ns = pass;
    if (status != CB_OK || passes == 1)
        return status;
    status = bind(m, m->job->variants[variant], bytes, passes, &some, err);
    if (status == CB_OK)
        status = cb__sweep_time_median(m->s, &some, 3, ns, err);
    *ns = fmax((*ns - m->s->empty_ns) / (double)passes, (double)bytes / 1e5);
    return status;
}

/* How many parts a variant walks together, or loads that a thread makes: what it has in flight. */
static int streams_of(const char *variant)
{
    static const char *const names[] = {"streams=", "loads="};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(variant, names[i]);
        if (at)
            return atoi(at + strlen(names[i]));
    }
    return 0;
}

static int most_streams(const cb__job *job)
{
    int most = 0;
    for (int i = 0; i < job->nvariants; i++)
        most = streams_of(job->variants[i]) > most ? streams_of(job->variants[i]) : most;
    return most;
}

static double edge_gain(const mixing *m, const double *ns)
{
    int most = most_streams(m->job);
    double edge = (double)INFINITY, others = (double)INFINITY;
    for (int i = 0; i < m->job->nvariants; i++) {
        double *least = streams_of(m->job->variants[i]) == most ? &edge : &others;
        *least = fmin(*least, ns[i]);
    }
    return isfinite(edge) && isfinite(others) ? others / edge : (double)NAN;
}

static int fastest(const double *ns, int n, int but)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (i != but && isfinite(ns[i]) && (best < 0 || ns[i] < ns[best]))
            best = i;
    return best;
}

/* Whether a variant is among the best two, or the best of those with most in flight. */
static bool is_worth(const mixing *m, const double *ns, int variant)
{
    int best = fastest(ns, m->job->nvariants, -1), edge = -1;
    int second = fastest(ns, m->job->nvariants, best);
    for (int i = 0; i < m->job->nvariants; i++)
        if (streams_of(m->job->variants[i]) == most_streams(m->job) &&
            (edge < 0 || ns[i] < ns[edge]))
            edge = i;
    return variant == best || variant == second || variant == edge;
}

/* Octaves are searched from the smallest on; `before` has the times of the one below, and gets
 * those of this one. */
static cb_status search_octave(mixing *m, uint64_t bytes, double *before, drive *out, cb_error *err)
{
    double ns[CB__JOB_VARIANTS_MAX];
    int n = m->job->nvariants, best = fastest(before, n, -1);
    bool narrow = best >= 0 && before[best] * 2 > LONG_PASS_NS;
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        ns[i] = (double)INFINITY;
        if (!narrow || is_worth(m, before, i))
            status = time_pass(m, i, bytes, &ns[i], err);
    }
    if (status != CB_OK)
        return status;
    memcpy(before, ns, (size_t)n * sizeof *ns);
    out->edge_gain = edge_gain(m, ns);
    out->nbest = 0;
    for (int most = m->s->info.queued ? QUEUED_BEST : BEST; out->nbest < most;) {
        int next = fastest(ns, n, -1);
        if (next < 0)
            break;
        out->best[out->nbest++] = next;
        ns[next] = (double)INFINITY;
    }
    out->pass_ns = before[out->best[0]];
    return CB_OK;
}

static cb_status search(mixing *m, cb_error *err)
{
    uint64_t sizes[OCTAVES] = {0};
    double before[CB__JOB_VARIANTS_MAX];
    for (int i = 0; i < CB__JOB_VARIANTS_MAX; i++)
        before[i] = (double)INFINITY;
    for (int i = 0; i < m->job->n; i++) {
        uint64_t bytes = (uint64_t)m->job->bytes[i], *largest = &sizes[octave_of(bytes)];
        *largest = bytes > *largest ? bytes : *largest;
    }
    cb_status status = CB_OK;
    for (int o = 0; o < OCTAVES && status == CB_OK; o++)
        if (sizes[o]) {
            status = search_octave(m, sizes[o], before, &m->octaves[o], err);
            cb__sweep_say(m->s, 0);
        }
    return status;
}

/* ---- coverage ---- */

/* Another line than any before: what stays from earlier launches does not look written. */
static cb_status new_poison(mixing *m, cb_error *err)
{
    uint64_t line[LINE_BYTES / 8], key = cb_random_key(m->s->sweep->seed, 0x706f69u, m->poison++);
    for (int i = 0; i < LINE_BYTES / 8; i++)
        line[i] = cb_random_word(key, (uint64_t)i);
    return m->s->target.ops->write(m->s->target.device, m->s->input, line, sizeof line, err);
}

/* Whether [at, at + bytes) repeats the line of the input, or equals what lies at `as`. */
static cb_status compare(mixing *m, const char *at, const char *as, uint64_t bytes, int *same,
                         cb_error *err)
{
    uint64_t a[CHUNK_WORDS], b[CHUNK_WORDS];
    const cb__backend *ops = m->s->target.ops;
    cb_status status = CB_OK;
    for (uint64_t i = 0; i < sizeof b && status == CB_OK && !as; i += LINE_BYTES)
        status = ops->read(m->s->target.device, (char *)b + i, m->s->input, LINE_BYTES, err);
    *same = 1;
    for (uint64_t i = 0; i < bytes && status == CB_OK && *same; i += sizeof a) {
        uint64_t n = bytes - i < sizeof a ? bytes - i : sizeof a;
        status = ops->read(m->s->target.device, a, at + i, n, err);
        if (status == CB_OK && as)
            status = ops->read(m->s->target.device, b, as + i, n, err);
        *same = memcmp(a, b, n) == 0;
    }
    return status;
}

static cb_status same_digest(mixing *m, const char *a, const char *b, uint64_t bytes, int *same,
                             cb_error *err)
{
    uint64_t x = 0, y = 0;
    const cb__backend *ops = m->s->target.ops;
    cb_status status = ops->digest(m->s->target.device, a, bytes, &x, err);
    if (status == CB_OK)
        status = ops->digest(m->s->target.device, b, bytes, &y, err);
    *same = x == y;
    return status;
}

/* The same without bringing the set home: its start is compared here, and then, on the device, what
 * has been compared with as much behind it. */
static cb_status compare_there(mixing *m, const char *at, const char *as, uint64_t bytes, int *same,
                               cb_error *err)
{
    uint64_t done = bytes < CHUNK_WORDS * 8 ? bytes : CHUNK_WORDS * 8;
    if (as)
        return same_digest(m, at, as, bytes, same, err);
    cb_status status = compare(m, at, NULL, done, same, err);
    while (done < bytes && status == CB_OK && *same) {
        uint64_t n = bytes - done < done ? bytes - done : done;
        status = same_digest(m, at, at + done, n, same, err);
        done += n;
    }
    return status;
}

/* What the last timed launch read: its checksum. */
static cb_status cover_read(mixing *m, uint64_t bytes, int *covered, cb_error *err)
{
    uint32_t sum = 0, expected = 0; /* pages that nobody wrote are zeros */
    if (m->s->sweep->pages != CB__PAGES_UNTOUCHED)
        expected = cb__sweep_expected(m->s, bytes);
    cb_status status =
        m->s->target.ops->read(m->s->target.device, &sum, m->s->output, sizeof sum, err);
    *covered = sum == expected;
    return status;
}

/* What one more launch writes over something else. */
static cb_status cover_written(mixing *m, const char *variant, uint64_t bytes, int *covered,
                               cb_error *err)
{
    cb__bound one, dirty;
    double ns;
    char *to = (char *)m->s->set + (m->reads ? bytes / 2 : 0);
    cb_status status = new_poison(m, err);
    if (status == CB_OK && m->reads) {
        status = cb__sweep_bind(m->s, "twin_write", "passes=1", bytes / 2, NULL, m->s->input, to,
                                &dirty, err);
        if (status == CB_OK)
            status = cb__sweep_time(m->s, &dirty, &ns, err);
    }
    if (status == CB_OK)
        status = bind(m, variant, bytes, 1, &one, err);
    if (status == CB_OK)
        status = cb__sweep_time(m->s, &one, &ns, err);
    if (status != CB_OK)
        return status;
    return (m->s->info.queued ? compare_there : compare)(
        m, to, m->reads ? m->s->set : NULL, m->reads ? bytes / 2 : bytes, covered, err);
}

/* ---- one size ---- */

static cb_status measure_with(mixing *m, const char *variant, uint64_t bytes, double pass_ns,
                              cb__reading *out, cb_error *err)
{
    cb__bound few, many;
    cb__pair pair;
    /* Odd, so that the checksum of the last launch is that of one pass. */
    int64_t passes = cb__sweep_repeats(READING_NS / 4, pass_ns, passes_max(m->s)) | 1;
    cb_status status = bind(m, variant, bytes, passes, &few, err);
    if (status == CB_OK)
        status = bind(m, variant, bytes, 3 * passes, &many, err);
    if (status == CB_OK)
        status =
            cb__sweep_pair(m->s, &few, &many,
                           cb__sweep_pairs((double)passes * pass_ns, m->job->visits), &pair, err);
    if (status != CB_OK)
        return status;
    out->value = cb__pair_rate(&pair, (double)passes * (double)bytes);
    out->folded = cb__pair_folded(m->s, &pair);
    out->clock_hz = pair.clock_hz;
    return CB_OK;
}

/* The best of those that drive the octave, on this very size: one of a processor, two of a device.
 * Returns how many. */
static cb_status choose(mixing *m, uint64_t bytes, int variants[MEASURED], double ns[MEASURED],
                        int *n, cb_error *err)
{
    const drive *d = &m->octaves[octave_of(bytes)];
    int most = m->s->info.queued ? MEASURED : 1;
    cb_status status = CB_OK;
    variants[0] = d->best[0];
    ns[0] = d->pass_ns;
    *n = 1;
    if (d->pass_ns > LONG_PASS_NS)
        return CB_OK;
    *n = 0;
    for (int i = 0; i < d->nbest && status == CB_OK; i++) {
        double pass_ns = 0;
        status = time_pass(m, d->best[i], bytes, &pass_ns, err);
        int at = *n;
        while (at > 0 && pass_ns < ns[at - 1])
            at--;
        if (at == most)
            continue;
        *n += *n < most;
        for (int k = *n - 1; k > at; k--) {
            variants[k] = variants[k - 1];
            ns[k] = ns[k - 1];
        }
        variants[at] = d->best[i];
        ns[at] = pass_ns;
    }
    return status;
}

static cb_status measure(mixing *m, uint64_t bytes, cb__reading *out, cb_error *err)
{
    int variants[MEASURED], n = 0;
    double ns[MEASURED];
    cb_status status = choose(m, bytes, variants, ns, &n, err);
    out->edge_gain = m->octaves[octave_of(bytes)].edge_gain;
    for (int i = n - 1; i >= 0 && status == CB_OK; i--) {
        cb__reading other = *out;
        const char *variant = m->job->variants[variants[i]];
        other.variant = variants[i];
        status = measure_with(m, variant, bytes, ns[i], &other, err);
        if (status == CB_OK)
            status = m->writes ? cover_written(m, variant, bytes, &other.covered, err)
                               : cover_read(m, bytes, &other.covered, err);
        /* What missed a line is not outdone. */
        bool missed = out->covered == 0;
        if (status == CB_OK && !missed &&
            (other.covered == 0 || !isfinite(out->value) || other.value > out->value))
            *out = other;
    }
    return status;
}

static mixing mixing_of(cb__sweeping *s, const cb__job *job)
{
    bool writes = strncmp(job->what, "write", 5) == 0, copies = strncmp(job->what, "copy", 4) == 0;
    return (mixing){.s = s, .job = job, .reads = !writes, .writes = writes || copies};
}

/* Medians of the visits of one size; one that missed a line is not outvoted. */
static cb__reading joined(const cb__reading *visits, int n)
{
    double value[CB__VISITS_MAX], folded[CB__VISITS_MAX], clock_hz[CB__VISITS_MAX];
    cb__reading all = visits[0];
    for (int v = 0; v < n; v++) {
        value[v] = visits[v].value;
        folded[v] = visits[v].folded;
        clock_hz[v] = visits[v].clock_hz;
        all.covered = visits[v].covered < all.covered ? visits[v].covered : all.covered;
    }
    all.value = cb__median(value, (size_t)n);
    all.folded = cb__median(folded, (size_t)n);
    all.clock_hz = cb__median(clock_hz, (size_t)n);
    return all;
}

/* A long reading is its own visits. */
static int visits_of(const mixing *m, uint64_t bytes)
{
    double few_ns = fmax(m->octaves[octave_of(bytes)].pass_ns, READING_NS / 4);
    double worth = CB__WORTH_NS / (4 * few_ns);
    return worth >= m->job->visits ? m->job->visits : worth >= 2 ? (int)worth : 1;
}

/* A neighbour's burst is shorter than the time between two visits. */
static cb_status visit_all(mixing *m, cb__reading (*visits)[CB__VISITS_MAX], cb_error *err)
{
    cb_status status = CB_OK;
    int n = m->job->n, all = n * m->job->visits;
    for (int i = 0; i < all && status == CB_OK; i++) {
        uint64_t bytes = (uint64_t)m->job->bytes[i % n];
        if (i / n < visits_of(m, bytes))
            status = measure(m, bytes, &visits[i % n][i / n], err);
        cb__sweep_say(m->s, (i + 1.0) / all);
    }
    return status;
}

cb_status cb__sweep_bandwidth(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    mixing m = mixing_of(s, job);
    cb__reading(*visits)[CB__VISITS_MAX] =
        cb__arena_array(s->arena, (size_t)job->n + 1, sizeof *visits);
    if (!visits)
        return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for %d sizes", job->n);
    for (int i = 0; i < job->n; i++)
        for (int v = 0; v < job->visits; v++)
            visits[i][v] = out[i];
    cb_status status = cb__sweep_fill(s, err);
    if (status == CB_OK && m.writes)
        status = new_poison(&m, err);
    if (status == CB_OK && m.writes)
        s->random = false;
    if (status == CB_OK)
        status = search(&m, err);
    if (status == CB_OK)
        status = visit_all(&m, visits, err);
    for (int i = 0; i < job->n && status == CB_OK; i++)
        out[i] = joined(visits[i], visits_of(&m, (uint64_t)job->bytes[i]));
    return status;
}

/* ---- content ---- */

static cb_status fill_constant(cb__sweeping *s, cb_error *err)
{
    uint64_t words[CHUNK_WORDS];
    cb_status status = CB_OK;
    for (int i = 0; i < CHUNK_WORDS; i++)
        words[i] = UINT64_C(0x4242424242424242);
    for (uint64_t at = 0; at < s->set_bytes && status == CB_OK; at += sizeof words) {
        uint64_t n = s->set_bytes - at < sizeof words ? s->set_bytes - at : sizeof words;
        status = s->target.ops->write(s->target.device, (char *)s->set + at, words, n, err);
    }
    s->random = false;
    return status;
}

/* The same reads over other contents: what zeros, constants or pages that nobody wrote would have
 * made of the figure. */
cb_status cb__sweep_content(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    mixing m = mixing_of(s, &(cb__job){.what = "read"});
    m.job = job;
    void *own = s->set, *untouched = NULL;
    double ns = 0;
    cb_status status = CB_OK;
    if (strcmp(job->what, "untouched") == 0) {
        status = s->target.ops->alloc(s->target.device, s->set_bytes, CB__PAGES_UNTOUCHED,
                                      &untouched, err);
        s->set = status == CB_OK ? untouched : own;
    } else {
        status =
            strcmp(job->what, "constant") == 0 ? fill_constant(s, err) : cb__sweep_fill(s, err);
    }
    for (int i = 0; i < job->n && status == CB_OK; i++) {
        status = time_pass(&m, 0, (uint64_t)job->bytes[i], &ns, err);
        if (status == CB_OK)
            status = measure_with(&m, job->variants[0], (uint64_t)job->bytes[i], ns, &out[i], err);
        out[i].variant = 0;
    }
    s->set = own;
    s->target.ops->free(s->target.device, untouched);
    return status;
}
