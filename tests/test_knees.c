#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "curves.h"
#include "stats/knees.h"

enum { CURVES = 500, MANY = CB__KNEE_SIZES_MAX, SWEEPS = CB__KNEE_SWEEPS_MAX };

static double sizes[MANY + 1], values[(SWEEPS + 1) * (MANY + 1)];
static cb__knees found;

/* The number is right, and each capacity lies in its interval, one size more at each side. */
static bool right(const curve_case *c, const cb__knees *k)
{
    if (k->nknees != (int)c->knees)
        return false;
    for (size_t i = 0; i < c->knees; i++) {
        size_t lo = k->knees[i].lo > 0 ? k->knees[i].lo - 1 : 0;
        size_t hi = k->knees[i].hi + 1 < c->n ? k->knees[i].hi + 1 : c->n - 1;
        if (c->capacity[i] < c->sizes[lo] || c->capacity[i] > c->sizes[hi])
            return false;
    }
    return true;
}

/* Plateaus of three sizes or more cover the curve's ends, and the knees lie between them. */
static void assert_in_order(size_t n, const cb__knees *k)
{
    assert_int_equal(k->nplateaus, k->nknees + 1);
    assert_int_equal(k->plateaus[0].first, 0);
    assert_int_equal(k->plateaus[k->nknees].last, n - 1);
    for (int i = 0; i <= k->nknees; i++) {
        assert_true(k->plateaus[i].first + 2 <= k->plateaus[i].last);
        assert_true(i == 0 || k->knees[i - 1].hi == k->plateaus[i].first);
        assert_true(i == k->nknees || k->knees[i].lo == k->plateaus[i].last);
        assert_true(i == k->nknees || k->knees[i].lo < k->knees[i].hi);
    }
}

static const struct family {
    const char *name;
    enum curve_family family;
    double required; /* share of curves; above what is promised, 95, 90 and 60 % */
} families[] = {
    {"quiet", CURVE_QUIET, 0.99}, {"noisy", CURVE_NOISY, 0.96}, {"hostile", CURVE_HOSTILE, 0.92},
    {"flat", CURVE_FLAT, 0.99},   {"tail", CURVE_TAIL, 0.90},
};

static void simulated_curves(void **state)
{
    (void)state;
    double share[CURVE_FAMILIES];
    for (size_t f = 0; f < CURVE_FAMILIES; f++) {
        size_t rights = 0, less = 0, more = 0;
        for (uint64_t seed = 1; seed <= CURVES; seed++) {
            curve_case c;
            curve_draw(families[f].family, seed, &c);
            cb__knees_find(c.sizes, c.n, c.values, CURVE_SWEEPS, c.falling, &found);
            assert_in_order(c.n, &found);
            rights += right(&c, &found);
            less += found.nknees < (int)c.knees;
            more += found.nknees > (int)c.knees;
        }
        share[f] = (double)rights / CURVES;
        print_message("%s: right on %.1f %% of %d curves, required %.0f %%; too few knees on %zu, "
                      "too many on %zu\n",
                      families[f].name, 100 * share[f], CURVES, 100 * families[f].required, less,
                      more);
    }
    for (size_t f = 0; f < CURVE_FAMILIES; f++)
        assert_true(share[f] >= families[f].required);
}

/* Three plateaus over 18 sizes, steps after sizes 5 and 11, the second over one size: 100, then 50,
 * 35, 20. Sweeps are 0, 1, 2 ... % faster. */
static size_t fill_steps(size_t sweeps, bool falling)
{
    size_t n = 18;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = 4096 * exp2((double)i);
        double value = i <= 5 ? 100 : i <= 11 ? 50 : i == 12 ? 35 : 20;
        for (size_t s = 0; s < sweeps; s++) {
            double read = value * (1 + 0.01 * (double)s);
            values[s * n + i] = falling ? read : 1000 / read;
        }
    }
    return n;
}

static void assert_steps(void)
{
    assert_int_equal(found.nplateaus, 3);
    assert_int_equal(found.nknees, 2);
    assert_int_equal(found.plateaus[0].first, 0);
    assert_int_equal(found.plateaus[0].last, 5);
    assert_int_equal(found.plateaus[1].first, 6);
    assert_int_equal(found.plateaus[1].last, 11);
    assert_int_equal(found.plateaus[2].first, 13);
    assert_int_equal(found.plateaus[2].last, 17);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(found.knees[k].lo, found.plateaus[k].last);
        assert_int_equal(found.knees[k].hi, found.plateaus[k + 1].first);
        assert_true(found.knees[k].from == found.plateaus[k].value);
        assert_true(found.knees[k].to == found.plateaus[k + 1].value);
    }
}

static void clean_steps_are_exact(void **state)
{
    (void)state;
    for (int falling = 0; falling <= 1; falling++) {
        for (size_t sweeps = 1; sweeps <= SWEEPS; sweeps++) {
            size_t n = fill_steps(sweeps, falling);
            cb__knees_find(sizes, n, values, sweeps, falling, &found);
            assert_steps();
            assert_int_equal(found.knees[0].seen, sweeps);
            assert_int_equal(found.knees[1].seen, sweeps);
            double middle = 1 + 0.01 * (double)(sweeps - 1) / 2;
            double value = falling ? 50 * middle : 20 / middle;
            assert_true(fabs(found.plateaus[1].value / value - 1) < 1e-3);
            assert_true(found.residual < 1e-12);
        }
        /* Looked at the wrong way round, nothing steps. */
        cb__knees_find(sizes, fill_steps(3, falling), values, 3, !falling, &found);
        assert_int_equal(found.nknees, 0);
    }
}

static void steps_under_the_least_are_merged(void **state)
{
    (void)state;
    static const struct {
        double ratio;
        int knees;
    } rows[] = {{1.0, 0}, {1.05, 0}, {1.075, 0}, {1.085, 1}, {1.2, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t i = 0; i < 20; i++) {
            sizes[i] = 4096 * exp2((double)i / 2);
            values[i] = values[20 + i] = i < 10 ? rows[r].ratio : 1;
        }
        cb__knees_find(sizes, 20, values, 2, true, &found);
        assert_int_equal(found.nknees, rows[r].knees);
        assert_int_equal(found.nplateaus, rows[r].knees + 1);
    }
}

/* Two sizes are no plateau: they belong to the step. */
static void short_plateaus_are_none(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 4; length++) {
        for (size_t i = 0; i < 20; i++) {
            sizes[i] = 4096 * exp2((double)i / 2);
            values[i] = i < 8 ? 100 : i < 8 + length ? 60 : 30;
        }
        cb__knees_find(sizes, 20, values, 1, true, &found);
        assert_int_equal(found.nknees, length < 3 ? 1 : 2);
        assert_int_equal(found.knees[0].lo, 7);
        assert_int_equal(found.knees[found.nknees - 1].hi, 8 + length);
    }
}

static void one_size_off_is_the_residual(void **state)
{
    (void)state;
    size_t n = fill_steps(3, true);
    for (size_t s = 0; s < 3; s++)
        values[s * n + 8] *= 1.25;
    cb__knees_find(sizes, n, values, 3, true, &found);
    assert_steps();
    assert_int_equal(found.residual_at, 8);
    assert_true(fabs(found.residual - 0.25) < 0.02);
    /* A stretch that rises: half of it, since the fit takes the mean. */
    n = fill_steps(3, true);
    for (size_t s = 0; s < 3; s++) {
        for (size_t i = 9; i < 12; i++)
            values[s * n + i] *= 1.25;
    }
    cb__knees_find(sizes, n, values, 3, true, &found);
    assert_true(fabs(found.residual - (sqrt(1.25) - 1)) < 0.02);
    /* In one sweep of three it is that sweep's. */
    n = fill_steps(3, true);
    values[2 * n + 8] *= 0.7;
    cb__knees_find(sizes, n, values, 3, true, &found);
    assert_steps();
    assert_true(found.residual < 0.02);
}

/* A knee counts as seen where a sweep shows it by itself. */
static void seen_in_some_sweeps(void **state)
{
    (void)state;
    for (size_t blind = 0; blind <= 2; blind++) {
        size_t n = fill_steps(3, true);
        for (size_t s = 0; s < blind; s++) {
            for (size_t i = 9; i < n; i++)
                values[s * n + i] = (double)NAN;
        }
        cb__knees_find(sizes, n, values, 3, true, &found);
        assert_int_equal(found.nknees, 2);
        assert_int_equal(found.knees[0].seen, 3);
        assert_int_equal(found.knees[1].seen, 3 - blind);
    }
    /* One sweep of three without a step: the others outvote it, but it has not seen it. */
    size_t n = fill_steps(3, true);
    for (size_t i = 0; i < 6; i++)
        values[n + i] = values[n + 6];
    cb__knees_find(sizes, n, values, 3, true, &found);
    assert_steps();
    assert_int_equal(found.knees[0].seen, 2);
    assert_int_equal(found.knees[1].seen, 3);
}

static void holes_are_not_measured(void **state)
{
    (void)state;
    static const double holes[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0, -5};
    for (size_t h = 0; h < sizeof holes / sizeof holes[0]; h++) {
        size_t n = fill_steps(3, true);
        values[0 * n + 0] = values[1 * n + 11] = values[2 * n + 17] = holes[h];
        cb__knees_find(sizes, n, values, 3, true, &found);
        assert_steps();
        assert_int_equal(found.knees[1].seen, 3);
        /* Nobody measured size 2: indices stay the caller's. */
        for (size_t s = 0; s < 3; s++)
            values[s * n + 2] = holes[h];
        cb__knees_find(sizes, n, values, 3, true, &found);
        assert_steps();
        assert_true(isfinite(found.plateaus[0].value) && isfinite(found.residual));
        /* Nobody measured anything. */
        for (size_t i = 0; i < 3 * n; i++)
            values[i] = holes[h];
        cb__knees_find(sizes, n, values, 3, true, &found);
        assert_int_equal(found.nplateaus, 0);
    }
}

static void few_sizes(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 6; n++) {
        for (size_t i = 0; i < n; i++) {
            sizes[i] = (double)(i + 1);
            values[i] = values[n + i] = i < 3 ? 100 : 10;
        }
        cb__knees_find(sizes, n, values, 2, true, &found);
        assert_int_equal(found.nplateaus, n < 3 ? 0 : n < 6 ? 1 : 2);
        assert_int_equal(found.nknees, n < 6 ? 0 : 1);
    }
    cb__knees_find(sizes, 6, values, 0, true, &found);
    assert_int_equal(found.nplateaus, 0);
}

static void equal_values_are_one_plateau(void **state)
{
    (void)state;
    for (size_t n = 3; n <= MANY; n++) {
        for (size_t i = 0; i < n; i++) {
            sizes[i] = 4096 * exp2((double)i / 8);
            for (size_t s = 0; s < SWEEPS; s++)
                values[s * n + i] = 1e300;
        }
        cb__knees_find(sizes, n, values, SWEEPS, n % 2, &found);
        assert_int_equal(found.nplateaus, 1);
        assert_int_equal(found.plateaus[0].last, n - 1);
        assert_true(found.plateaus[0].value == 1e300 && found.residual == 0);
    }
}

/* 30 levels: as many knees as there is room for, in order. */
static void no_more_than_there_is_room_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < 120; i++) {
        sizes[i] = 4096 * exp2((double)i / 4);
        values[i] = exp2(-(double)(i / 4));
    }
    cb__knees_find(sizes, 120, values, 1, true, &found);
    assert_int_equal(found.nknees, CB__KNEES_MAX);
    assert_in_order(120, &found);
}

static void too_much_gives_none(void **state)
{
    (void)state;
    for (size_t i = 0; i <= MANY; i++)
        sizes[i] = 4096 * exp2((double)i / 8);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        values[i] = i % MANY < 60 ? 100 : 10;
    cb__knees_find(sizes, MANY, values, SWEEPS, true, &found);
    assert_int_equal(found.nknees, 1);
    cb__knees_find(sizes, MANY, values, SWEEPS + 1, true, &found);
    assert_int_equal(found.nplateaus, 0);
    cb__knees_find(sizes, MANY + 1, values, 1, true, &found);
    assert_int_equal(found.nplateaus, 0);
}

/* A recorded sweep: "# falling" or "# rising", "# knees N", more comments, a header, then lines
 * bytes,sweep,value, the sizes rising within a sweep. */
typedef struct recorded {
    bool falling;
    int knees; /* at most, by an expert's eye */
    size_t n, sweeps;
} recorded;

static void read_recorded(const char *path, recorded *r)
{
    FILE *file = fopen(path, "r");
    char line[256], way[16];
    size_t count = 0;
    assert_non_null(file);
    *r = (recorded){0};
    assert_true(fgets(line, sizeof line, file) && sscanf(line, "# %15s", way) == 1);
    assert_true(!strcmp(way, "falling") || !strcmp(way, "rising"));
    r->falling = !strcmp(way, "falling");
    assert_true(fgets(line, sizeof line, file) && sscanf(line, "# knees %d", &r->knees) == 1);
    do
        assert_non_null(fgets(line, sizeof line, file));
    while (line[0] == '#');
    assert_string_equal(line, "bytes,sweep,value\n");
    while (fgets(line, sizeof line, file)) {
        double bytes, value;
        size_t sweep;
        assert_int_equal(sscanf(line, "%lf,%zu,%lf", &bytes, &sweep, &value), 3);
        assert_true(sweep == r->sweeps || sweep + 1 == r->sweeps);
        r->sweeps = sweep + 1;
        assert_true(r->sweeps <= SWEEPS && (sweep > 0 || r->n < MANY));
        if (sweep == 0)
            sizes[r->n++] = bytes;
        assert_true(count < r->n * r->sweeps && bytes == sizes[count % r->n]);
        values[count++] = value;
    }
    assert_int_equal(count, r->n * r->sweeps);
    fclose(file);
}

static void recorded_sweeps_have_no_false_knee(void **state)
{
    (void)state;
    glob_t paths;
    assert_int_equal(glob(CB_SOURCE_DIR "/tests/fixtures/sweeps/*.csv", 0, NULL, &paths), 0);
    for (size_t p = 0; p < paths.gl_pathc; p++) {
        const char *name = strrchr(paths.gl_pathv[p], '/') + 1;
        recorded r;
        read_recorded(paths.gl_pathv[p], &r);
        cb__knees_find(sizes, r.n, values, r.sweeps, r.falling, &found);
        print_message("%s:", name);
        int claimed = 0; /* one that a single sweep saw is `unknown` */
        for (int k = 0; k < found.nknees; k++) {
            const cb__knee *knee = &found.knees[k];
            claimed += knee->seen >= 2;
            print_message(" %.0f-%.0f KiB (%.3g to %.3g, seen %d)", sizes[knee->lo] / 1024,
                          sizes[knee->hi] / 1024, knee->from, knee->to, knee->seen);
        }
        print_message("; at most %d\n", r.knees);
        if (claimed > r.knees)
            fail_msg("%s: %d knees, at most %d", name, claimed, r.knees);
    }
    globfree(&paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_curves),
        cmocka_unit_test(clean_steps_are_exact),
        cmocka_unit_test(steps_under_the_least_are_merged),
        cmocka_unit_test(short_plateaus_are_none),
        cmocka_unit_test(one_size_off_is_the_residual),
        cmocka_unit_test(seen_in_some_sweeps),
        cmocka_unit_test(holes_are_not_measured),
        cmocka_unit_test(few_sizes),
        cmocka_unit_test(equal_values_are_one_plateau),
        cmocka_unit_test(no_more_than_there_is_room_for),
        cmocka_unit_test(too_much_gives_none),
        cmocka_unit_test(recorded_sweeps_have_no_false_knee),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
