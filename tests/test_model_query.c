/* Queries answer from what was measured and from nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "coldbench/random.h"
#include "model_fixture.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

typedef enum query { BW, LAT, RES, CAP, GAIN, CEIL, COMP, FLOOR, SCRATCH, PAD } query;

typedef struct question {
    query query;
    const char *what; /* mix, type or submit; "stream" or "random" */
    uint64_t a, b;    /* sizes, or a level */
    int workers;
    const char *refusal; /* NULL: answered */
    double lo, mid, hi;
    cb_verdict verdict;
    cb_resident resident;
} question;

static cb_status ask(const cb_model *m, const question *q, cb_figure *x, cb_resident *r,
                     cb_error *err)
{
    cb_pattern pattern =
        q->what && strcmp(q->what, "random") == 0 ? CB_RANDOM_PATTERN : CB_STREAM_PATTERN;
    switch (q->query) {
    case BW:
        return cb_model_bandwidth(m, q->what, q->a, q->workers, x, err);
    case LAT:
        return cb_model_latency(m, q->a, x, err);
    case RES:
        return cb_model_resident(m, q->a, pattern, q->workers, r, x, err);
    case CAP:
        return cb_model_capacity(m, (int)q->a, pattern, q->workers, x, err);
    case GAIN:
        return cb_model_tiling_gain(m, q->a, q->b, q->workers, x, err);
    case CEIL:
        return cb_model_ceiling(m, q->what, q->workers, x, err);
    case COMP:
        return cb_model_compute(m, q->what, q->workers, x, err);
    case FLOOR:
        return cb_model_floor(m, q->what, q->workers, x, err);
    case SCRATCH:
        return cb_model_scratch_cost(m, q->a, q->b, x, err);
    case PAD:
        return cb_model_best_pad(m, q->a, q->b, x, err);
    }
    return CB_INTERNAL;
}

#define OK CB_VERDICT_OK
#define KNEE3 (double)(16 * MIB), (double)(32 * MIB), (double)(64 * MIB)

static const question questions[] = {
    /* at a measured size, the default workers, compact before scattered */
    {BW, "read", 4 * KIB, 0, 0, NULL, 450.8, 460, 469.2, OK, 0},
    {BW, "read", 256 * MIB, 0, 1, NULL, 17.64, 18, 18.36, OK, 0},
    /* halfway by logarithm: the geometric mean; the interval encloses both */
    {BW, "read", 2965821, 0, 2, NULL, 115.64, 140.919197, 171.656, OK, 0},
    {BW, "copy", 8 * KIB, 0, 1, NULL, 176.4, 180, 183.6, OK, 0},
    {BW, "read", 200 * MIB, 0, 2, NULL, 29.4, 30, 30.6, CB_VERDICT_CONTAMINATED, 0},
    {BW, "read", 256 * MIB, 0, 2, NULL, 29.4, 30, 30.6, CB_VERDICT_CONTAMINATED, 0},
    {BW, "read", 4 * KIB - 1, 0, 2, "read/2 was measured from 4 KiB to 256 MiB; 4095 bytes is", 0,
     0, 0, 0, 0},
    {BW, "read", 256 * MIB + 1, 0, 0, "nothing is extrapolated", 0, 0, 0, 0, 0},
    {BW, "read", UINT64_MAX, 0, 0, "outside", 0, 0, 0, 0, 0},
    {BW, "read", 0, 0, 0, "0 bytes is outside", 0, 0, 0, 0, 0},
    {BW, "read", MIB, 0, 3, "read was not measured with 3 workers, but with 1, 2", 0, 0, 0, 0, 0},
    {BW, "read", MIB, 0, -1, "-1 workers", 0, 0, 0, 0, 0},
    {BW, "raed", MIB, 0, 2, "measured: read, write, write_nt, copy, copy_nt; did you mean 'read'?",
     0, 0, 0, 0, 0},
    {BW, "random", MIB, 0, 2, "no curve of mix 'random'", 0, 0, 0, 0, 0},
    /* huge pages before small ones */
    {LAT, NULL, 256 * MIB, 0, 0, NULL, 91.08, 92, 92.92, OK, 0},
    {LAT, NULL, GIB, 0, 0, "random/2097152 was measured from 4 KiB to 256 MiB; 1 GiB", 0, 0, 0, 0,
     0},
    {RES, "stream", 16 * MIB, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "stream", 16 * MIB + 1, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_MAYBE},
    {RES, "stream", 64 * MIB - 1, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_MAYBE},
    {RES, "stream", 64 * MIB, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "stream", UINT64_MAX, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "stream", 0, 0, 1, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "random", UINT64_MAX, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "random", 1, 0, 1, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "random", 1, 0, 2, "random was not measured with 2 workers, but with 1", 0, 0, 0, 0, 0},
    {RES, "stream", 1, 0, 8, "read was not measured with 8 workers", 0, 0, 0, 0, 0},
    /* knees 64K..256K, 1M..4M, 16M..64M for 2 workers on 64 KiB, 2 MiB, 32 MiB */
    {CAP, "stream", 1, 0, 2, NULL, 65536, 131072, 262144, OK, 0},
    {CAP, "stream", 2, 0, 2, NULL, 1048576, 2097152, 4194304, OK, 0},
    {CAP, "stream", 3, 0, 2, NULL, KNEE3, OK, 0},
    {CAP, "stream", 0, 0, 0, NULL, KNEE3, OK, 0},
    {CAP, "random", 1, 0, 0, NULL, 32768, 65536, 131072, OK, 0},
    {CAP, "random", 3, 0, 0, NULL, KNEE3, OK, 0},
    {CAP, "random", 2, 0, 0,
     "no knee of random/2097152 was resolved for L2; knees: 32768 to 131072", 0, 0, 0, 0, 0},
    {CAP, "stream", 4, 0, 0, "no cache level 4; it names L1, L2, L3", 0, 0, 0, 0, 0},
    {GAIN, NULL, 128 * MIB, MIB, 2, NULL, 235.2 / 30.6, 240 / 30.0, 244.8 / 29.4, OK, 0},
    {GAIN, NULL, 256 * MIB, MIB, 2, NULL, 235.2 / 30.6, 8, 244.8 / 29.4, CB_VERDICT_CONTAMINATED,
     0},
    {GAIN, NULL, GIB, MIB, 2, "1 GiB is outside", 0, 0, 0, 0, 0},
    {GAIN, NULL, MIB, 1, 2, "1 bytes is outside", 0, 0, 0, 0, 0},
    {CEIL, "read", 0, 0, 0, NULL, 29.4, 30, 30.6, OK, 0},
    {CEIL, "write", 0, 0, 0, NULL, 21.56, 22, 22.44, OK, 0},
    {CEIL, "write_nt", 0, 0, 1, NULL, 13.72, 14, 14.28, OK, 0},
    {CEIL, "copy", 0, 0, 1, NULL, 14.7, 15, 15.3, OK, 0},
    {CEIL, "writ", 0, 0, 0, "did you mean 'write'?", 0, 0, 0, 0, 0},
    {CEIL, "write_", 0, 0, 0, "no ceiling of mix 'write_'", 0, 0, 0, 0, 0},
    {CEIL, "read", 0, 0, 5, "not measured with 5 workers, but with 1, 2", 0, 0, 0, 0, 0},
    {COMP, "f64", 0, 0, 0, NULL, 109.89, 111, 112.11, OK, 0},
    {COMP, "f32", 0, 0, 1, NULL, 110.88, 112, 113.12, OK, 0},
    {COMP, "int8", 0, 0, 1, "no compute ceiling of type 'int8'; measured: f32, f64", 0, 0, 0, 0, 0},
    {FLOOR, "solo", 0, 0, 1, NULL, 58.8, 60, 61.2, OK, 0},
    {FLOOR, "batched", 0, 0, 0, NULL, 162, 180, 198, CB_VERDICT_UNSTABLE, 0},
    {FLOOR, "batch", 0, 0, 0, "measured: solo, batched; did you mean 'batched'?", 0, 0, 0, 0, 0},
    {SCRATCH, NULL, 4, 4, 0, "not applicable", 0, 0, 0, 0, 0},
    {PAD, NULL, 128, 4, 0, "not applicable", 0, 0, 0, 0, 0},
};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void queries_answer_from_what_was_measured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const question *q = &questions[i];
        cb_error err = CB_ERROR_INIT;
        cb_figure x = {0};
        cb_resident r = CB_RESIDENT_NO;
        cb_status status = ask(fixture, q, &x, &r, &err);
        if (q->refusal) {
            if (status != CB_UNDECIDED)
                fail_msg("question %zu: %s, not refused", i, cb_status_name(status));
            says(&err, q->refusal);
        } else if (status != CB_OK || !near(x.lo, q->lo) || !near(x.mid, q->mid) ||
                   !near(x.hi, q->hi) || x.verdict != q->verdict || r != q->resident) {
            fail_msg("question %zu: %s %g [%g, %g] %s %s", i, err.message, x.mid, x.lo, x.hi,
                     cb_verdict_name(x.verdict), cb_resident_name(r));
        }
    }
    assert_int_equal(cb_model_workers(fixture), 2);
    assert_int_equal(cb_model_nominal(fixture, 1), 64 * KIB);
    assert_int_equal(cb_model_nominal(fixture, 3), 32 * MIB);
    assert_int_equal(cb_model_nominal(fixture, 0), 32 * MIB);
    assert_int_equal(cb_model_nominal(fixture, 4), 0);
    assert_int_equal(cb_model_nominal(fixture, -1), 0);
    assert_int_equal(
        cb_model_resident(fixture, 1, CB_STREAM_PATTERN, 0, &(cb_resident){0}, NULL, NULL), CB_OK);
}

static void an_empty_model_refuses_every_question(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *bare = NULL;
    assert_int_equal(cb_model_open_file(FIXTURES "bare.json", "fake", &bare, &err), CB_OK);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        cb_figure x;
        cb_resident r;
        cb_error_clear(&err);
        assert_int_equal(ask(bare, &questions[i], &x, &r, &err), CB_UNDECIDED);
        assert_true(*err.message);
    }
    cb_error_clear(&err);
    cb_model_ceiling(bare, "read", 0, &(cb_figure){0}, &err);
    says(&err, "measured: none (the probe was cut short)");
    assert_int_equal(cb_model_workers(bare), 0);
    assert_int_equal(cb_model_nominal(bare, 0), 0);
    cb_model_free(bare);
}

/* A curve with several last knees is refused by the reader; one with none answers no residence. */
static void a_curve_without_a_last_knee_is_undecided(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf text = CB__BUF_INIT;
    cb_model *model = NULL;
    cb_resident r;
    for (const char *from = fixture_text, *at; *from; from = at + !!*at) {
        at = strstr(from, "\"last\":true");
        at = at ? at + 7 : from + strlen(from);
        cb__buf_append(&text, from, (size_t)(at - from));
        if (*at) {
            cb__buf_puts(&text, "false");
            at += 3;
        }
    }
    if (cb__model_read_text(text.text, text.size, "it", NULL, &model, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(cb_model_resident(model, 1, CB_STREAM_PATTERN, 0, &r, NULL, &err),
                     CB_UNDECIDED);
    says(&err, "no knee of read/2 was resolved before memory; knees: 65536 to 262144 bytes, ");
    cb_error_clear(&err);
    assert_int_equal(cb_model_capacity(model, 0, CB_RANDOM_PATTERN, 0, &(cb_figure){0}, &err),
                     CB_UNDECIDED);
    cb_model_free(model);
    cb__buf_fini(&text);
}

/* Sizes that are one double. */
static void a_knee_of_neighbouring_sizes_keeps_its_order(void **state)
{
    (void)state;
    cb__point point = {1, {1, 1, 1, 1}, CB_VERDICT_OK, 0, 0};
    cb__series s = {CB__BANDWIDTH, "read", 1, "compact", 0, &point, 1};
    cb__model_knee knee = {.last = true};
    cb_model m = {.series = &s, .nseries = 1, .knees = &knee, .nknees = 1};
    for (int shift = 1; shift < 63; shift++) {
        cb_figure x;
        cb_resident r;
        knee.hi_bytes = (UINT64_C(1) << shift) + 1;
        knee.lo_bytes = knee.hi_bytes - 1;
        assert_int_equal(cb_model_resident(&m, knee.lo_bytes, CB_STREAM_PATTERN, 1, &r, &x, NULL),
                         CB_OK);
        assert_int_equal(r, CB_RESIDENT_YES);
        assert_true(x.lo <= x.mid && x.mid <= x.hi);
    }
}

/* ---- which knee ends which level, against every pairing there is ---- */

typedef struct pairing {
    int pairs;
    double distance;
} pairing;

static pairing best_of_all(const double *knees, int nknees, const double *levels, int nlevels)
{
    pairing best = {0};
    for (int k = 0; k < nknees; k++)
        for (int l = 0; l < nlevels; l++) {
            pairing p = best_of_all(knees + k + 1, nknees - k - 1, levels + l + 1, nlevels - l - 1);
            p.pairs++;
            p.distance += fabs(log(knees[k] / levels[l]));
            if (p.pairs > best.pairs || (p.pairs == best.pairs && p.distance < best.distance))
                best = p;
        }
    return best;
}

static void knees_and_levels_are_paired_as_close_as_they_come(void **state)
{
    (void)state;
    cb__point point = {4096, {1, 1, 1, 1}, CB_VERDICT_OK, 0, 0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        cb__series s = {CB__BANDWIDTH, "read", 4, "compact", 0, &point, 1};
        cb__model_knee knees[5] = {0};
        cb_model m = {.series = &s, .nseries = 1, .knees = knees};
        double mids[5], nominals[5], sum = 0, at = 3e4;
        m.nknees = (int)(cb_random_mix(seed) % 6);
        m.nlevels = (int)(cb_random_mix(seed + 1000) % 6);
        for (int i = 0; i < m.nknees; i++) {
            at *= 1 + (double)(cb_random_mix(seed * 7 + (uint64_t)i) % 1000) / 60;
            knees[i].lo_bytes = (uint64_t)at;
            knees[i].hi_bytes = knees[i].lo_bytes * 2;
            mids[i] = sqrt((double)knees[i].lo_bytes * (double)knees[i].hi_bytes);
        }
        at = 3e4;
        for (int i = 0; i < m.nlevels; i++) {
            at *= 1 + (double)(cb_random_mix(seed * 11 + (uint64_t)i) % 1000) / 60;
            m.levels[i] = (cb__level){i + 1, (uint64_t)at, 1 + (int)(seed + (uint64_t)i) % 6};
            nominals[i] =
                (double)m.levels[i].bytes * (m.levels[i].instances < 4 ? m.levels[i].instances : 4);
        }
        int pairs = 0;
        double before = 0;
        for (int i = 0; i < m.nlevels; i++) {
            cb_figure x;
            if (cb_model_capacity(&m, i + 1, CB_STREAM_PATTERN, 0, &x, NULL) != CB_OK)
                continue;
            assert_true(x.mid > before); /* in order, each knee once */
            before = x.mid;
            sum += fabs(log(x.mid / nominals[i]));
            pairs++;
        }
        pairing best = best_of_all(mids, m.nknees, nominals, m.nlevels);
        assert_int_equal(pairs, best.pairs);
        assert_true(fabs(sum - best.distance) < 1e-9);
    }
}

/* Wherever a load is waited for: between two sizes as well. */
static void latency_encloses_the_chip(void **state)
{
    (void)state;
    cb__point points[] = {{4096, {10, 11, 12, 0}, CB_VERDICT_OK, 8, 15},
                          {8192, {20, 21, 22, 0}, CB_VERDICT_OK, 20.5, 21.5},
                          {16384, {40, 41, 42, 0}, CB_VERDICT_OK, 0, 0}};
    cb__series series = {CB__LATENCY, "random", 1, "compact", 4096, points, 3};
    static const struct {
        uint64_t bytes;
        double lo, hi;
    } table[] = {{4096, 8, 15}, {8192, 20, 22}, {16384, 40, 42}, {6000, 8, 22}, {9000, 20, 42}};
    cb_model m = {.series = &series, .nseries = 1};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_figure x;
        assert_int_equal(cb_model_latency(&m, table[i].bytes, &x, NULL), CB_OK);
        assert_true(fabs(x.lo - table[i].lo) < 1e-9 && fabs(x.hi - table[i].hi) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_encloses_the_chip),
        cmocka_unit_test(queries_answer_from_what_was_measured),
        cmocka_unit_test(an_empty_model_refuses_every_question),
        cmocka_unit_test(a_curve_without_a_last_knee_is_undecided),
        cmocka_unit_test(a_knee_of_neighbouring_sizes_keeps_its_order),
        cmocka_unit_test(knees_and_levels_are_paired_as_close_as_they_come),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
