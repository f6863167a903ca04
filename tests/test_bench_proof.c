/* Which sets the proof of coldness and the ceiling go over, in which order, and which of it is
 * timed: every batch is noted, and its span is its number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/bench_internal.h"

enum { VISITS_MAX = 4096, BATCHES_MAX = 512, SPAN_LAUNCHES = 16, SPANS = 8, MIB = 1 << 20 };

/* A batch as it was made. */
typedef struct made {
    const cb__batch *batch;
    const cb_kernel *kernel;
    uint64_t bytes;                             /* moved by one launch */
    const unsigned char *first, *second, *last; /* what launches stream; last: the greatest */
    int n;
} made;

static made batches[BATCHES_MAX];
static int nbatches;
static const made *visits[VISITS_MAX];
static int nvisits;

/* What is streamed: the first operand of all kernels here. */
static cb_status noting_batch_new(cb__device *device, const cb__launch *launches, int n,
                                  cb__batch **out, cb_error *err)
{
    cb_status status = cb__backend_fake.batch_new(device, launches, n, out, err);
    assert_true(nbatches < BATCHES_MAX);
    const cb_cost *cost = &launches[0].code->cost;
    made *b = &batches[nbatches++];
    *b = (made){.batch = *out,
                .kernel = launches[0].code->kernel,
                .bytes = cost->bytes_read + cost->bytes_written,
                .first = launches[0].operands[0],
                .second = launches[n > 1].operands[0],
                .n = n};
    for (int i = 0; i < n; i++)
        if (!b->last || (const unsigned char *)launches[i].operands[0] > b->last)
            b->last = launches[i].operands[0];
    return status;
}

static void noting_batch_run(cb__device *device, cb__batch *batch)
{
    (void)device;
    assert_true(nvisits < VISITS_MAX);
    for (int i = nbatches - 1; i >= 0; i--) /* the newest: an address may come again */
        if (batches[i].batch == batch) {
            visits[nvisits++] = &batches[i];
            return;
        }
    fail();
}

/* A launch's share of it is the number of the visit. */
static double numbered_span(cb__device *device, const cb__batch *batch)
{
    (void)device, (void)batch;
    return (double)(nvisits - 1) * visits[nvisits - 1]->n;
}

/* ---- a bench on it ---- */

typedef struct fixture {
    cb__suite suite;
    cb__case c;
    cb__plan plan;
    cb__region ring;
    cb__backend ops;
    cb__target target;
    cb__bench *bench;
} fixture;

static fixture f;

/* batch_bytes: that the device asks for, or 0. */
static void setup(uint64_t seed, bool twin, const char *shape, uint64_t batch_bytes)
{
    cb_error err = CB_ERROR_INIT;
    cb__device_info info;
    memset(&f, 0, sizeof f);
    nbatches = nvisits = 0;
    f.ops = cb__backend_fake;
    f.ops.capabilities |= CB__DEVICE_QUEUED;
    f.ops.batch_new = noting_batch_new;
    f.ops.batch_run = noting_batch_run;
    f.ops.batch_span_ns = numbered_span;
    f.target.ops = &f.ops;
    assert_int_equal(cb__suite_open(NULL, 0, false, &f.suite, &err), CB_OK);
    assert_int_equal(f.ops.open("llc=2MiB,queued=1", 0, CB__COMPACT, &f.target.device, &err),
                     CB_OK);
    f.ops.info(f.target.device, &info);
    info.batch_bytes = batch_bytes;
    assert_int_equal(cb__case_parse(&f.suite, "stream_read/portable", shape, 0, &f.c, &err), CB_OK);
    assert_int_equal(cb__plan_make(&f.c, &info, true, &f.plan, &err), CB_OK);
    assert_int_equal(f.plan.passes > 1, batch_bytes > 0);
    assert_true(batch_bytes > 0 || f.plan.k / f.plan.batch > 1);
    assert_int_equal(cb__region_shared("ring", f.plan.file_bytes, &f.ring, &err), CB_OK);
    const cb__bench_request request = {.suite = &f.suite,
                                       .c = &f.c,
                                       .plan = &f.plan,
                                       .twin_variants = {twin ? "twin_read/portable" : NULL},
                                       .ring_fd = f.ring.fd,
                                       .seed = seed};
    if (cb__bench_open(f.target, &request, &f.bench, &err) != CB_OK)
        fail_msg("%s", err.message);
}

static void teardown(void)
{
    cb__bench_close(f.bench);
    f.ops.close(f.target.device);
    cb__region_fini(&f.ring);
    cb__suite_close(&f.suite);
}

/* ---- the proof ---- */

/* Batches of sets [first, end) in order, all of one kernel; gives the visit behind them. */
static int went_over(int visit, const cb_kernel *kernel, int first, int end)
{
    for (int set = first; set < end; set += f.plan.batch, visit++) {
        assert_true(visit < nvisits);
        assert_ptr_equal(visits[visit]->kernel, kernel);
        assert_int_equal(visits[visit]->n, f.plan.batch);
        assert_int_equal((visits[visit]->first - f.bench->ring) / (int64_t)f.plan.set_bytes, set);
    }
    return visit;
}

/* Of spans that grow by one: the mean of the fastest three quarters. */
static double mean_from(int visit, int n)
{
    int kept = (n * 3 + 3) / 4;
    return visit + (kept - 1) / 2.0;
}

/* One rotation from `visit` on, whichever it is; notes it. */
static int one_rotation(int visit, const cb__proof *proof, bool seen[2][2])
{
    const cb_kernel *kernel = visits[visit]->kernel;
    bool twice = visits[visit]->first != f.bench->ring, twin = kernel != f.c.kernel;
    int k = f.plan.k, n = k / f.plan.batch * (1 + twice);
    assert_false(seen[twin][twice]);
    seen[twin][twice] = true;
    int timed = went_over(visit, kernel, twice ? k : 0, twice ? 2 * k : k);
    int end = went_over(timed, kernel, 0, twice ? 2 * k : k);
    const double ns[2][2] = {{proof->kernel_k_ns, proof->kernel_2k_ns},
                             {proof->twin_k_ns, proof->twin_2k_ns}};
    assert_true(ns[twin][twice] == mean_from(timed, n));
    return end;
}

static void each_rotation_follows_one_that_is_not_timed(void **state)
{
    (void)state;
    bool first_seen[2][2] = {{false}};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        bool seen[2][2] = {{false}}, twin = seed > 2;
        cb_error err = CB_ERROR_INIT;
        cb__proof proof = {0};
        setup(seed, twin, "24KiB", 0);
        assert_int_equal(cb__bench_proof(f.bench, 1, &proof, &err), CB_OK);
        assert_int_equal(proof.pairs, 1);
        assert_true(nvisits > 1);
        first_seen[visits[1]->kernel != f.c.kernel][visits[1]->first != f.bench->ring] = true;
        int visit = 1; /* the first batch tells how long all of it will take */
        while (visit < nvisits)
            visit = one_rotation(visit, &proof, seen);
        for (int side = 0; side < 2; side++)
            for (int twice = 0; twice < 2; twice++)
                assert_int_equal(seen[side][twice], side == 0 || twin);
        if (!twin)
            assert_true(proof.twin_k_ns != proof.twin_k_ns && proof.twin_2k_ns != proof.twin_2k_ns);
        teardown();
    }
    for (int side = 0; side < 2; side++) /* any of them comes first, as the seed has it */
        assert_true(first_seen[side][0] && first_seen[side][1]);
}

/* Where a batch is several rotations, k and 2k are a batch each of as many launches. */
static void long_batches_are_compared_whole(void **state)
{
    (void)state;
    enum { TIMED = 4 };
    cb_error err = CB_ERROR_INIT;
    for (uint64_t passes = 3; passes <= 6; passes++) {
        cb__proof proof = {0};
        setup(1, true, "1MiB", passes * 10 * MIB - 1); /* a rotation is 10 MiB */
        assert_int_equal(f.plan.passes, passes);
        assert_int_equal(cb__bench_proof(f.bench, 1, &proof, &err), CB_OK);
        assert_int_equal(nvisits, 1 + 4 * (1 + TIMED));
        const double ns[2][2] = {{proof.kernel_k_ns, proof.kernel_2k_ns},
                                 {proof.twin_k_ns, proof.twin_2k_ns}};
        for (int visit = 1; visit < nvisits; visit += 1 + TIMED) {
            const made *b = visits[visit];
            int64_t sets = (b->last - b->first) / (int64_t)f.plan.set_bytes + 1;
            int twice = sets == 2 * f.plan.k;
            assert_ptr_equal(b->first, f.bench->ring);
            assert_true(twice || sets == f.plan.k);
            assert_int_equal(b->n,
                             twice ? ((int)passes + 1) / 2 * 2 * f.plan.k : (int)passes * f.plan.k);
            for (int i = 1; i <= TIMED; i++)
                assert_ptr_equal(visits[visit + i], b);
            assert_true(ns[b->kernel != f.c.kernel][twice] == mean_from(visit + 1, TIMED));
        }
        teardown();
    }
}

/* ---- the ceiling ---- */

static void the_ceiling_is_of_k_sets_and_of_all(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__asymptote out = {0};
    setup(1, true, "24KiB", 0);
    int before = nbatches;
    assert_int_equal(cb__bench_asymptote(f.bench, &out, &err), CB_OK);
    assert_int_equal(nbatches, before + 2);
    assert_int_equal(nvisits, 2 * SPANS);
    const double gb_per_s[2] = {out.k_gb_per_s, out.all_gb_per_s};
    for (int all = 0; all < 2; all++) {
        const made *span = &batches[before + all];
        int sets = all ? f.plan.sets : f.plan.k;
        assert_string_equal(span->kernel->name, "twin_read");
        assert_int_equal(span->n, SPAN_LAUNCHES);
        assert_ptr_equal(span->first, f.bench->ring);
        /* Two halves in turn: no launch reads what the one ahead reads. */
        uint64_t read = (uint64_t)(sets / 2) * f.plan.set_bytes;
        assert_true(span->bytes >= read && span->bytes < read + 4096); /* and what it writes */
        assert_ptr_equal(span->last, f.bench->ring + read);
        assert_ptr_equal(span->second, span->last);
        for (int i = 0; i < SPANS; i++)
            assert_ptr_equal(visits[all * SPANS + i], span);
        assert_true(gb_per_s[all] == (double)span->bytes / mean_from(all * SPANS, SPANS));
    }
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rotation_follows_one_that_is_not_timed),
        cmocka_unit_test(long_batches_are_compared_whole),
        cmocka_unit_test(the_ceiling_is_of_k_sets_and_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
