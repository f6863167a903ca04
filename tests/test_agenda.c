/* What a probe plans to measure: which groups, jobs and sizes, on machines that are only described.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/agenda.h"
#include "run/twins.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

enum { ALL_ISA = CB_ISA_AVX2 | CB_ISA_AVX512 | CB_ISA_AVX512_VNNI };

static cb__suite suite;
static cb__agenda full, quick;

typedef struct machine {
    const char *name;
    int threads;
    bool placements_differ;
    uint64_t llc, memory;
    uint64_t largest; /* that a set may have */
    bool quarter;
} machine;

static const machine table[] = {
    {"one thread", 1, false, MIB(32), GIB(8), MIB(256), false},
    {"two threads", 2, false, MIB(32), GIB(8), MIB(256), false},
    {"two, apart", 2, true, MIB(32), GIB(8), MIB(256), false},
    {"three, apart", 3, true, MIB(33), GIB(64), MIB(264), false},
    {"sixteen, no power of two", 16, true, MIB(57), GIB(64), MIB(456), false},
    {"two hundred, apart", 200, true, MIB(105), GIB(512), MIB(840), false},
    {"all that can be", 1024, true, GIB(2), GIB(4096), GIB(16), false},
    {"a small cache", 4, true, KIB(256), GIB(1), MIB(2), false},
    {"a large cache", 8, false, GIB(2), GIB(128), GIB(16), false},
    {"no cache known", 2, false, 0, GIB(64), MIB(512), false},
    {"little memory", 2, false, MIB(32), MIB(400), MIB(100), true},
    {"a large cache, less memory", 8, true, GIB(2), GIB(16), GIB(4), true},
    {"odd memory", 2, true, MIB(32), MIB(400) + 12345, MIB(100), true},
    {"hardly any memory", 2, false, MIB(32), 1000, KIB(4), true},
};

static cb__probe_request request_of(bool is_quick)
{
    return (cb__probe_request){.suite = &suite, .isa = ALL_ISA, .quick = is_quick};
}

static void make(const cb__probe_request *request, const machine *m, cb__agenda *plan)
{
    cb_error err = CB_ERROR_INIT;
    cb__device_info device = {.threads = m->threads,
                              .placements_differ = m->placements_differ,
                              .llc_bytes = m->llc,
                              .memory_bytes = m->memory};
    if (cb__agenda_make(request, &device, plan, &err) != CB_OK)
        fail_msg("%s: %s", m->name, err.message);
}

static const cb__planned_job *job_named(const cb__planned_group *g, const char *what)
{
    for (int j = 0; j < g->njobs; j++)
        if (strcmp(g->jobs[j].what, what) == 0)
            return &g->jobs[j];
    return NULL;
}

static const cb__planned_group *group_of(const cb__agenda *plan, int threads, bool scattered,
                                         cb__page_kind pages)
{
    for (int g = 0; g < plan->ngroups; g++)
        if (plan->groups[g].threads == threads && plan->groups[g].scattered == scattered &&
            plan->groups[g].pages == pages)
            return &plan->groups[g];
    return NULL;
}

/* ---- sizes ---- */

static void sizes_are_good(const machine *m, const cb__planned_job *job, const cb__agenda *plan)
{
    bool sized = job->kind != CB__JOB_FLOOR && job->kind != CB__JOB_COMPUTE;
    assert_int_equal(job->n > 0, sized);
    assert_true(job->n <= CB__SIZES_MAX);
    for (int i = 0; i < job->n; i++) {
        if (job->bytes[i] % (job->kind == CB__JOB_LATENCY ? 4096 : 128))
            fail_msg("%s: %s: %lld is no size of a set", m->name, job->what,
                     (long long)job->bytes[i]);
        if (i && job->bytes[i] <= job->bytes[i - 1])
            fail_msg("%s: %s: sizes do not rise at %lld", m->name, job->what,
                     (long long)job->bytes[i]);
    }
    if (!sized)
        return;
    assert_int_equal(job->bytes[job->n - 1], plan->largest_bytes);
    if (job->kind != CB__JOB_CONTENT && job->bytes[0] != 4096)
        fail_msg("%s: %s begins at %lld", m->name, job->what, (long long)job->bytes[0]);
}

static void the_range_is_from_4_kib_to_8_caches_or_a_quarter(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (int is_quick = 0; is_quick < 2; is_quick++) {
            cb__probe_request request = request_of(is_quick);
            char dropped[200];
            make(&request, &table[i], &full);
            assert_int_equal(full.largest_bytes, table[i].largest);
            cb__agenda_dropped_text(&full, 0, dropped, sizeof dropped);
            assert_string_equal(
                dropped, table[i].quarter ? "the sizes beyond a quarter of the free memory" : "");
            for (int g = 0; g < full.ngroups; g++)
                for (int j = 0; j < full.groups[g].njobs; j++)
                    sizes_are_good(&table[i], &full.groups[g].jobs[j], &full);
        }
}

static void quick_has_fewer_sizes_and_the_same_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        cb__probe_request q = request_of(true), f = request_of(false);
        int compared = 0;
        make(&f, &table[i], &full);
        make(&q, &table[i], &quick);
        assert_int_equal(full.ngroups, quick.ngroups);
        for (int g = 0; g < quick.ngroups; g++)
            for (int j = 0; j < quick.groups[g].njobs; j++) {
                const cb__planned_job *a = &quick.groups[g].jobs[j];
                const cb__planned_job *b = job_named(&full.groups[g], a->what);
                assert_non_null(b);
                if (a->n == 0)
                    continue;
                assert_int_equal(a->bytes[0], b->bytes[0]);
                assert_int_equal(a->bytes[a->n - 1], b->bytes[b->n - 1]);
                assert_true(a->n < b->n || b->n == 1 ||
                            (a->n == b->n && strcmp(a->what, "local") == 0));
                compared++;
            }
        assert_true(compared >= 4);
    }
}

/* ---- groups ---- */

static bool is_count(int threads, int all)
{
    return threads == all || (threads < all && (threads & (threads - 1)) == 0);
}

static void threads_double_up_to_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        const machine *m = &table[i];
        cb__probe_request request = request_of(false);
        make(&request, m, &full);
        assert_true(full.ngroups <= CB__GROUPS_MAX);
        for (int threads = 1; threads <= m->threads; threads++) {
            bool wanted = is_count(threads, m->threads);
            bool apart = wanted && threads > 1 && threads < m->threads && m->placements_differ;
            if ((group_of(&full, threads, false, CB__PAGES_HUGE) != NULL) != wanted)
                fail_msg("%s: %d threads close together", m->name, threads);
            if ((group_of(&full, threads, true, CB__PAGES_HUGE) != NULL) != apart)
                fail_msg("%s: %d threads apart", m->name, threads);
        }
        for (int g = 0; g < full.ngroups; g++) {
            const cb__planned_group *group = &full.groups[g];
            assert_ptr_equal(group_of(&full, group->threads, group->scattered, group->pages),
                             group);
            assert_true(group->share > 0 && group->njobs > 0);
            assert_int_equal(group->started_threads, 0);
        }
        assert_int_equal(full.groups[0].threads, m->threads);
    }
}

static const char *const of_all[] = {"read", "solo",     "batched", "f32",   "f64",
                                     "int8", "write_nt", "copy_nt", "write", "copy"};
static const char *const of_one[] = {"random", "local"};
static const char *const of_full[] = {"random", "constant", "untouched"};

static bool has_content(const cb__planned_group *g, const char *what)
{
    for (int j = 0; j < g->njobs; j++)
        if (g->jobs[j].kind == CB__JOB_CONTENT && strcmp(g->jobs[j].what, what) == 0)
            return true;
    return false;
}

static void every_mix_pattern_floor_and_arithmetic_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (int is_quick = 0; is_quick < 2; is_quick++) {
            cb__probe_request request = request_of(is_quick);
            make(&request, &table[i], &full);
            const cb__planned_group *all = &full.groups[0];
            const cb__planned_group *one = group_of(&full, 1, false, CB__PAGES_HUGE);
            const cb__planned_group *base = group_of(&full, 1, false, CB__PAGES_BASE);
            for (size_t w = 0; w < COUNT(of_all); w++)
                if (!job_named(all, of_all[w]))
                    fail_msg("%s: no %s of all threads", table[i].name, of_all[w]);
            for (size_t w = 0; w < COUNT(of_one); w++)
                if (!job_named(one, of_one[w]))
                    fail_msg("%s: no %s of one thread", table[i].name, of_one[w]);
            for (size_t w = 0; w < COUNT(of_full); w++)
                assert_int_equal(has_content(all, of_full[w]), !is_quick);
            assert_non_null(job_named(base, "random"));
            assert_string_equal(all->jobs[0].what, "read");
        }
}

/* ---- what it is measured with ---- */

static void portable_code_counts_only_where_there_is_nothing_else(void **state)
{
    (void)state;
    cb__probe_request request = request_of(false);
    const struct {
        unsigned isa;
        const char *wide, *narrow; /* implementations that are there, that are not */
    } sets[] = {{ALL_ISA, "/avx512", "/portable"},
                {CB_ISA_AVX2, "/avx2", "/avx512"},
                {CB_ISA_PORTABLE, "/portable", "/avx2"}};
    for (size_t s = 0; s < COUNT(sets); s++) {
        request.isa = sets[s].isa;
        make(&request, &table[1], &full);
        const cb__planned_job *read = job_named(&full.groups[0], "read");
        bool wide = false;
        for (int v = 0; v < read->nvariants; v++) {
            wide = wide || strstr(read->variants[v], sets[s].wide);
            assert_null(strstr(read->variants[v], sets[s].narrow));
            assert_non_null(strstr(read->variants[v], "streams="));
        }
        assert_true(wide);
        /* No portable code stores past the caches. */
        const cb__planned_job *nt = job_named(&full.groups[0], "copy_nt");
        assert_int_equal(nt != NULL, sets[s].isa != CB_ISA_PORTABLE);
        for (int v = 0; nt && v < nt->nvariants; v++)
            assert_non_null(strstr(nt->variants[v], "nontemporal=1"));
        assert_non_null(job_named(&full.groups[0], "copy"));
        assert_non_null(job_named(&full.groups[1], "random"));
    }
}

static void nothing_of_it_runs_on_a_machine_without_twins(void **state)
{
    (void)state;
    static const cb__suite empty;
    cb__probe_request request = {.suite = &empty};
    cb__device_info device = {.threads = 2, .llc_bytes = MIB(8), .memory_bytes = GIB(1)};
    cb_error err = CB_ERROR_INIT;
    request.read_only = true;
    assert_int_equal(cb__agenda_make(&request, &device, &full, &err), CB_INTERNAL);
    assert_non_null(strstr(err.message, "no reading twin"));
}

static void what_a_verb_needs_is_one_curve(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        cb__probe_request request = request_of(true);
        request.read_only = true;
        make(&request, &table[i], &full);
        assert_int_equal(full.ngroups, 1);
        assert_int_equal(full.groups[0].threads, table[i].threads);
        assert_int_equal(full.groups[0].njobs, 1);
        const cb__planned_job *job = &full.groups[0].jobs[0];
        assert_string_equal(job->what, "read");
        assert_int_equal(job->bytes[job->n - 1], full.largest_bytes);
        assert_true(table[i].quarter || job->n >= 10);
        uint64_t llc = table[i].llc ? table[i].llc : MIB(64), least = llc / 64;
        if (!table[i].quarter)
            assert_int_equal(full.largest_bytes, 4 * llc);
        least = least < 4096 ? 4096 : least;
        if ((uint64_t)full.largest_bytes > least)
            assert_int_equal(job->bytes[0], least / 4096 * 4096);
    }
}

/* ---- a device that launches are queued to ---- */

static void make_queued(bool is_quick, bool read_only, uint64_t memory, cb__agenda *plan)
{
    cb_error err = CB_ERROR_INIT;
    cb__probe_request request = request_of(is_quick);
    cb__device_info device = {.threads = 132,
                              .queued = true,
                              .caches = {{1, KIB(228), 132}, {2, MIB(60), 1}},
                              .ncaches = 2,
                              .llc_bytes = MIB(60),
                              .memory_bytes = memory};
    request.isa = CB_ISA_CUDA;
    request.read_only = read_only;
    if (cb__agenda_make(&request, &device, plan, &err) != CB_OK)
        fail_msg("%s", err.message);
}

static void a_device_is_one_group_of_all_multiprocessors(void **state)
{
    (void)state;
    static const char *const all[] = {
        "read", "solo", "stream", "batched", "write",     "copy",     "random",   "read_l1",
        "f32",  "bf16", "tf32",   "int8",    "shared/16", "shared/8", "shared/4", "global/16"};
    for (int is_quick = 0; is_quick < 2; is_quick++) {
        make_queued(is_quick, false, GIB(64), &full);
        assert_int_equal(full.ngroups, 1);
        const cb__planned_group *g = &full.groups[0];
        assert_string_equal(g->name, "132 multiprocessors");
        for (size_t i = 0; i < COUNT(all); i++)
            if (!job_named(g, all[i]))
                fail_msg("%s is not planned", all[i]);
        assert_true((job_named(g, "f64") != NULL) == !is_quick);
        assert_true((job_named(g, "global/4") != NULL) == !is_quick);
        assert_null(job_named(g, "write_nt"));
        const cb__planned_job *read = job_named(g, "read"), *l1 = job_named(g, "read_l1");
        assert_int_equal(read->bytes[0], KIB(256));
        assert_int_equal(read->bytes[read->n - 1], is_quick ? GIB(1) : GIB(4));
        assert_int_equal(l1->bytes[l1->n - 1], MIB(64));
        const cb__planned_job *chain = job_named(g, "random");
        assert_int_equal(chain->bytes[0], 4096);
        assert_int_equal(chain->bytes[chain->n - 1], MIB(256));
    }
}

static void a_small_device_has_a_smaller_range(void **state)
{
    (void)state;
    make_queued(false, false, GIB(4), &full);
    assert_true(full.quarter);
    assert_int_equal(full.largest_bytes, GIB(1));
    make_queued(true, true, GIB(64), &full);
    assert_int_equal(full.groups[0].njobs, 1);
    assert_int_equal(full.largest_bytes, 4 * MIB(60));
}

/* The search ends at its edge: there is a variant with more in flight than those that pay; and what
 * is compiled is limited. */
static void a_device_s_drive_is_a_short_list(void **state)
{
    (void)state;
    int variants = 0;
    make_queued(true, false, GIB(64), &full);
    const cb__planned_group *g = &full.groups[0];
    for (int j = 0; j < g->njobs; j++) {
        variants += g->jobs[j].nvariants;
        for (int v = 0; v < g->jobs[j].nvariants; v++) {
            cb__case c;
            cb_error err = CB_ERROR_INIT;
            if (cb__case_parse_variant(&suite, g->jobs[j].variants[v], CB_ISA_CUDA, &c, &err) !=
                CB_OK)
                fail_msg("%s: %s", g->jobs[j].variants[v], err.message);
        }
    }
    assert_true(variants <= 24);
    assert_non_null(strstr(job_named(g, "read")->variants[3], "loads=16"));
    assert_string_equal(job_named(g, "int8")->variants[0], "peak_mma/cuda");
    assert_non_null(strstr(job_named(g, "read_l1")->variants[0], "l1=1"));
}

/* What collapses and what does not, and each with a padding. */
static void strides_have_their_paddings(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int width;
    } widths[] = {{"shared/16", 16}, {"shared/8", 8}, {"shared/4", 4}};
    make_queued(true, false, GIB(64), &full);
    for (size_t i = 0; i < COUNT(widths); i++) {
        const cb__planned_job *job = job_named(&full.groups[0], widths[i].what);
        for (int stride = widths[i].width; stride <= 512; stride *= 2)
            for (int pad = 0; pad <= widths[i].width; pad += widths[i].width) {
                int found = 0;
                for (int k = 0; k < job->n; k++)
                    found += job->bytes[k] == stride + pad;
                if (found != 1)
                    fail_msg("%s: stride %d is there %d times", widths[i].what, stride + pad,
                             found);
            }
        for (int k = 1; k < job->n; k++)
            assert_true(job->bytes[k] > job->bytes[k - 1] && job->bytes[k] <= 1024);
    }
}

/* ---- limits of those who take it further ---- */

static cb_status round_trip(const cb__planned_group *g, cb_error *err)
{
    cb__arena arena = CB__ARENA_INIT;
    cb__job *jobs = calloc(CB__JOBS_MAX, sizeof *jobs);
    cb__buf line = CB__BUF_INIT;
    cb__json *json = NULL;
    cb__work work = {.op = "sweep", .device = "cpu", .threads = g->threads, .jobs = jobs}, back;
    assert_non_null(jobs);
    work.ring_fd = work.reference_fd = work.exchange_fd = -1;
    work.pages = g->pages;
    for (int j = 0; j < g->njobs; j++) {
        const cb__planned_job *from = &g->jobs[j];
        cb__job *to = &jobs[work.njobs++];
        *to = (cb__job){.kind = from->kind, .what = from->what, .n = from->n, .visits = 1};
        for (int v = 0; v < from->nvariants; v++)
            to->variants[to->nvariants++] = from->variants[v];
        memcpy(to->bytes, from->bytes, sizeof to->bytes);
    }
    cb__work_write(&work, &line);
    cb_status status = cb__json_parse(cb__buf_text(&line), line.size, "request", &json, err);
    if (status == CB_OK)
        status = cb__work_read(json, &arena, &back, err);
    if (status == CB_OK)
        assert_int_equal(back.njobs, work.njobs);
    cb__json_free(json);
    cb__buf_fini(&line);
    cb__arena_fini(&arena);
    free(jobs);
    return status;
}

static void a_worker_takes_every_group(void **state)
{
    (void)state;
    cb_error device = CB_ERROR_INIT;
    make_queued(false, false, GIB(64), &full);
    if (round_trip(&full.groups[0], &device) != CB_OK)
        fail_msg("%s: %s", full.groups[0].name, device.message);
    for (size_t i = 0; i < COUNT(table); i++) {
        cb__probe_request request = request_of(false);
        cb_error err = CB_ERROR_INIT;
        make(&request, &table[i], &full);
        for (int g = 0; g < full.ngroups; g++)
            if (round_trip(&full.groups[g], &err) != CB_OK)
                fail_msg("%s: %s: %s", table[i].name, full.groups[g].name, err.message);
    }
}

static void there_is_room_for_all_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        cb__probe_request request = request_of(false);
        int series = 0, scalars = 0, variants = 0;
        make(&request, &table[i], &full);
        for (int g = 0; g < full.ngroups; g++)
            for (int j = 0; j < full.groups[g].njobs; j++) {
                const cb__planned_job *job = &full.groups[g].jobs[j];
                bool sized = job->kind == CB__JOB_BANDWIDTH || job->kind == CB__JOB_LATENCY;
                assert_true(job->nvariants < CB__JOB_VARIANTS_MAX);
                series += sized;
                scalars += !sized;
                variants += sized && g < 2 ? job->nvariants : 0;
            }
        assert_true(series <= CB__PROBE_SERIES_MAX);
        assert_true(scalars <= CB__SCALARS_MAX);
        assert_true(variants <= CB__VARIANTS_MAX);
    }
}

static void groups_end_where_there_is_room_for_no_more(void **state)
{
    (void)state;
    memset(&full, 0, sizeof full);
    for (int g = 0; g < CB__GROUPS_MAX; g++)
        assert_non_null(cb__agenda_group(&full, 1, false, CB__PAGES_HUGE, 1));
    assert_null(cb__agenda_group(&full, 1, false, CB__PAGES_HUGE, 1));
    assert_int_equal(full.ngroups, CB__GROUPS_MAX);
}

/* ---- what was dropped ---- */

static void what_was_dropped_is_said(void **state)
{
    (void)state;
    cb__probe_request request = request_of(false);
    char text[400], little[24];
    make(&request, &table[5], &full);
    cb__agenda_dropped_text(&full, 0, text, sizeof text);
    assert_string_equal(text, "");
    cb__planned_group *g = &full.groups[0];
    g->jobs[g->njobs - 1].dropped = true; /* never made */
    g->jobs[1].dropped = true;
    g->jobs[1].sweeps = 1;
    g->jobs[2].dropped = true;
    g->jobs[2].sweeps = 2;
    cb__agenda_drop(&full, 2);
    cb__agenda_dropped_text(&full, 0, text, sizeof text);
    assert_string_equal(text, "200 threads: solo (after 1 sweep), batched (after 2 sweeps), "
                              "untouched; 1 thread, base pages: everything");
    cb__agenda_dropped_text(&full, 0, little, sizeof little);
    assert_memory_equal(little, "200 threads: solo (afte", sizeof little);
    full.quarter = true;
    cb__agenda_dropped_text(&full, 0, text, sizeof text);
    assert_memory_equal(text, "the sizes beyond a quarter of the free memory; 200", 49);
}

static int open_suite(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    return cb__suite_open(NULL, 0, false, &suite, &err) == CB_OK ? 0 : -1;
}

static int close_suite(void **state)
{
    (void)state;
    cb__suite_close(&suite);
    return 0;
}

/* A warm copy past the caches takes three times as long as one that stays in them: both are tried.
 */
static void every_value_of_a_twin_is_a_candidate(void **state)
{
    (void)state;
    static const char *const kernels[] = {"twin_read", "twin_write", "twin_copy"};
    for (size_t k = 0; k < COUNT(kernels); k++) {
        char texts[CB__TWINS_MAX][96];
        int n = cb__twin_candidates(&suite, kernels[k], ALL_ISA, texts);
        const cb_kernel *kernel = cb__suite_find(&suite, kernels[k], NULL);
        assert_true(n > 1 && n < CB__TWINS_MAX);
        for (int i = 0; i < kernel->nimpls; i++)
            for (int t = 0; t < kernel->impls[i].ntunables; t++)
                assert_true(kernel->impls[i].tunables[t].count > 1); /* a range is left out */
        bool stays = strcmp(kernels[k], "twin_read") == 0;
#if !defined(__x86_64__)
        stays = true;
#endif
        for (int i = 0; i < n; i++)
            stays = stays || strstr(texts[i], "/avx512:nontemporal=0");
        assert_true(stays);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_range_is_from_4_kib_to_8_caches_or_a_quarter),
        cmocka_unit_test(quick_has_fewer_sizes_and_the_same_ends),
        cmocka_unit_test(threads_double_up_to_all),
        cmocka_unit_test(every_mix_pattern_floor_and_arithmetic_is_there),
        cmocka_unit_test(portable_code_counts_only_where_there_is_nothing_else),
        cmocka_unit_test(nothing_of_it_runs_on_a_machine_without_twins),
        cmocka_unit_test(what_a_verb_needs_is_one_curve),
        cmocka_unit_test(a_device_is_one_group_of_all_multiprocessors),
        cmocka_unit_test(a_small_device_has_a_smaller_range),
        cmocka_unit_test(a_device_s_drive_is_a_short_list),
        cmocka_unit_test(strides_have_their_paddings),
        cmocka_unit_test(a_worker_takes_every_group),
        cmocka_unit_test(there_is_room_for_all_figures),
        cmocka_unit_test(groups_end_where_there_is_room_for_no_more),
        cmocka_unit_test(every_value_of_a_twin_is_a_candidate),
        cmocka_unit_test(what_was_dropped_is_said),
    };
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
