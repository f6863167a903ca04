/* Whole probes, each part in a process of its own, find what the script of the device says. */
#include "coldbench/worker.h"
#include "run/agenda.h"
#include "scripted.h"

#define NOISE 0.005

static int phases;

static void count_phase(void *arg, const char *what, int number)
{
    (void)arg;
    assert_true(*what && number >= 0 && number < CB__PROBE_QUICK_SWEEPS);
    phases++;
}

static cb__probe_request request_of(const char *device)
{
    return (cb__probe_request){.suite = &suite,
                               .device = device,
                               .quick = true,
                               .budget_s = 600,
                               .seed = 11,
                               .asker = {.silence_s = 60},
                               .phase = count_phase};
}

static void one_sweep_fills_its_own_readings(void **state)
{
    (void)state;
    cb__probe_request request = request_of("fake:" EXACT);
    cb_error err = CB_ERROR_INIT;
    cb__probe *probe = calloc(1, sizeof *probe);
    cb__agenda *plan = calloc(1, sizeof *plan);
    assert_true(probe && plan);
    request.threads = 2;
    assert_int_equal(cb__probe_describe(&request, &probe->device, &err), CB_OK);
    assert_int_equal(cb__agenda_make(&request, &probe->device, plan, &err), CB_OK);
    phases = 0;
    if (cb__probe_sweep(&request, plan, 0, probe, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(phases, plan->ngroups);
    assert_int_equal(probe->ngroups, plan->ngroups);
    assert_int_equal(probe->sweeps, 1);
    assert_true(probe->nseries >= 8 && probe->nscalars >= 8);
    for (int s = 0; s < probe->nseries; s++) {
        const cb__probe_series *series = &probe->series[s];
        bool latency = series->kind == CB__LATENCY;
        for (int i = 0; i < series->n; i++) {
            /* Sizes were drawn in random order and are back in theirs. */
            double bytes = (double)series->bytes[i];
            double expected = bytes < KNEE ? (latency ? 20 : 4) : latency ? 400 : 1;
            const cb__reading *r = series->readings[0];
            if (series->bytes[i] != KNEE)
                is_near(series->what, r[i].value, expected, 1e-3 + 64 / bytes);
            assert_int_equal(r[i].covered, 1);
            assert_in_range(r[i].variant, 0, probe->nvariants - 1);
            assert_true(isnan(series->readings[1][i].value));
            assert_int_equal(series->readings[1][i].covered, -1);
        }
    }
    for (int i = 0; i < probe->nscalars; i++)
        assert_true(probe->scalars[i].values[0] > 0 && isnan(probe->scalars[i].values[1]));
    free(probe);
    free(plan);
}

static const cb__model_knee *last_knee(const cb_model *m, cb__series_kind kind, int workers)
{
    for (int k = 0; k < m->nknees; k++) {
        const cb__series *s = &m->series[m->knees[k].series];
        bool read = kind == CB__LATENCY || strcmp(s->what, "read") == 0;
        if (s->kind == kind && s->workers == workers && read && m->knees[k].last)
            return &m->knees[k];
    }
    fail_msg("no last knee of kind %d by %d", (int)kind, workers);
    return NULL;
}

static void knees_are_at(const cb_model *m, uint64_t bytes)
{
    const struct {
        cb__series_kind kind;
        int workers;
        double from, to;
    } wanted[] = {{CB__BANDWIDTH, 1, 4, 1}, {CB__LATENCY, 1, 20, 400}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        const cb__model_knee *k = last_knee(m, wanted[i].kind, wanted[i].workers);
        assert_true(k->lo_bytes <= bytes && bytes <= k->hi_bytes && k->hi_bytes <= 2 * k->lo_bytes);
        is_near("from", k->from, wanted[i].from, 2 * NOISE);
        is_near("to", k->to, wanted[i].to, 2 * NOISE);
        assert_int_equal(k->verdict, CB_VERDICT_OK);
    }
    for (int k = 0; k < m->nknees; k++)
        assert_true(m->knees[k].last);
}

static void everything_is_ok(const cb_model *m)
{
    for (int i = 0; i < m->nchecks; i++)
        if (m->checks[i].status == CB__FAIL && m->checks[i].required) /* the host is not scripted */
            fail_msg("%s: %s", m->checks[i].name, m->checks[i].detail);
    for (int s = 0; s < m->nseries; s++)
        for (int i = 0; i < m->series[s].n; i++)
            assert_int_equal(m->series[s].points[i].verdict, CB_VERDICT_OK);
}

/* Measured, judged; the caller's to free. */
static cb_model *probe_all(const cb__probe_request *request, cb__probe **probe)
{
    cb_error err = CB_ERROR_INIT;
    cb_model *m = cb__model_new();
    *probe = calloc(1, sizeof **probe);
    assert_true(*probe && m);
    if (cb__probe_measure(request, *probe, m, &err) != CB_OK)
        fail_msg("%s", err.message);
    return m;
}

static void a_probe_finds_what_the_script_says(void **state)
{
    (void)state;
    cb__probe_request request = request_of("fake:llc=256KiB,batched_ns=150," SLOW);
    cb__probe *probe = NULL;
    cb_model *m = probe_all(&request, &probe);
    assert_true(m->complete && m->quick && probe->complete);
    assert_int_equal(m->sweeps, CB__PROBE_QUICK_SWEEPS);
    assert_int_equal(m->threads, 1);
    assert_string_equal(m->identity, "fake");
    assert_string_equal(probe->dropped, "");
    everything_is_ok(m);
    knees_are_at(m, KNEE);
    assert_int_equal(m->nceilings, 3);
    assert_int_equal(m->nfloors, 2);
    assert_int_equal(m->ncomputes, 3);
    for (int i = 0; i < m->nceilings; i++) {
        is_near(m->ceilings[i].mix, m->ceilings[i].gb_per_s.mid, 1, NOISE);
        assert_int_equal(m->ceilings[i].verdict, CB_VERDICT_OK);
    }
    for (int i = 0; i < m->nfloors; i++) {
        bool solo = strcmp(m->floors[i].submit, "solo") == 0;
        is_near(m->floors[i].submit, m->floors[i].ns.mid, solo ? 1000 : 150, 1e-6);
        assert_int_equal(m->floors[i].verdict, CB_VERDICT_OK);
    }
    cb_model_free(m);
    free(probe);
}

/* The scripted device runs on one thread, whatever it is asked for: nothing drives it further. */
static void a_second_thread_that_adds_nothing_is_noticed(void **state)
{
    (void)state;
    cb__probe_request request = request_of("fake:" EXACT);
    cb__probe *probe = NULL;
    int drives = 0;
    request.threads = 2;
    cb_model *m = probe_all(&request, &probe);
    for (int i = 0; i < m->nchecks; i++) {
        bool drive = strcmp(m->checks[i].name, "drive") == 0;
        if (strcmp(m->checks[i].name, "interference") == 0) /* the host's, not scripted */
            continue;
        assert_int_equal(m->checks[i].status == CB__FAIL, drive);
        drives += drive;
    }
    assert_int_equal(drives, 1);
    for (int s = 0; s < m->nseries; s++)
        if (m->series[s].workers == 2 && strcmp(m->series[s].what, "read") == 0)
            assert_int_equal(m->series[s].points[0].verdict, CB_VERDICT_LOWER_BOUND);
    cb_model_free(m);
    free(probe);
}

/* The order of sizes is another one with another seed, the same with the same; so are the figures.
 */
static void a_seed_says_it_all(void **state)
{
    (void)state;
    cb__probe *probes[3];
    for (int i = 0; i < 3; i++) {
        cb__probe_request request = request_of("fake:llc=64KiB,noise=0.01," SLOW);
        request.read_only = true;
        request.seed = i < 2 ? 5 : 6;
        cb_model_free(probe_all(&request, &probes[i]));
        assert_int_equal(probes[i]->nseries, 1);
    }
    const cb__probe_series *a = &probes[0]->series[0], *b = &probes[1]->series[0];
    int differ = 0;
    for (int i = 0; i < a->n; i++) {
        assert_memory_equal(&a->readings[2][i].value, &b->readings[2][i].value, sizeof(double));
        differ += a->readings[2][i].value != probes[2]->series[0].readings[2][i].value;
    }
    assert_true(differ > a->n / 2);
    for (int i = 0; i < 3; i++)
        free(probes[i]);
}

static volatile int stop;

static void stop_at_sweep_two(void *arg, const char *what, int number)
{
    (void)arg;
    (void)what;
    stop = number == 1;
}

static void what_is_interrupted_keeps_what_it_has(void **state)
{
    (void)state;
    const struct {
        void (*phase)(void *, const char *, int);
        int at_once, sweeps;
    } cases[] = {{count_phase, 1, 0}, {stop_at_sweep_two, 0, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        cb__probe_request request = request_of("fake:" EXACT);
        cb_error err = CB_ERROR_INIT;
        cb__probe *probe = calloc(1, sizeof *probe);
        cb_model *m = cb__model_new();
        assert_true(probe && m);
        stop = cases[i].at_once;
        request.asker.stop = &stop;
        request.phase = cases[i].phase;
        assert_int_equal(cb__probe_measure(&request, probe, m, &err), CB_INTERRUPTED);
        assert_int_equal(probe->sweeps, cases[i].sweeps);
        assert_false(probe->complete);
        assert_false(m->complete);
        assert_int_equal(m->nseries > 0, cases[i].sweeps > 0);
        for (int s = 0; s < m->nseries; s++)
            assert_int_equal(m->series[s].points[0].verdict, CB_VERDICT_UNKNOWN);
        cb_model_free(m);
        free(probe);
    }
}

int main(int argc, char **argv)
{
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sweep_fills_its_own_readings),
        cmocka_unit_test(a_probe_finds_what_the_script_says),
        cmocka_unit_test(a_second_thread_that_adds_nothing_is_noticed),
        cmocka_unit_test(a_seed_says_it_all),
        cmocka_unit_test(what_is_interrupted_keeps_what_it_has),
    };
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
