/* The twins, the control kernels and the example: every implementation that this processor has,
 * every tunable value, one to five workers, ragged sizes, held against the definition.
 */
#include "built.h"

enum { GUARD = 64, WORKERS_MAX = 5 };

/* The operands of one problem, each between two guards. */
typedef struct operands {
    const cb_kernel *kernel;
    cb_problem problem;
    void *block[CB_OPERANDS_MAX];
    void *data[CB_OPERANDS_MAX];
    uint64_t bytes[CB_OPERANDS_MAX];
    unsigned char *before[CB_OPERANDS_MAX]; /* contents after filling, to find edited inputs */
} operands;

static void operands_init(operands *o, const cb_kernel *kernel, cb_problem problem)
{
    *o = (operands){.kernel = kernel, .problem = problem};
    for (int i = 0; i < kernel->noperands; i++) {
        o->bytes[i] = kernel->bytes(&problem, i);
        uint64_t room = (o->bytes[i] + 63) / 64 * 64 + 2 * GUARD;
        o->block[i] = aligned_alloc(64, room);
        memset(o->block[i], 0xA5, room);
        o->data[i] = (char *)o->block[i] + GUARD;
        cb_role role = kernel->operands[i].role;
        if (role == CB_SCRATCH)
            memset(o->data[i], 0, o->bytes[i]);
        else if (role != CB_OUTPUT)
            for (int part = 0; part < 3; part++)
                kernel->fill(&problem, 7, i, 0, o->data[i], part, 3);
        o->before[i] = malloc(o->bytes[i]);
        memcpy(o->before[i], o->data[i], o->bytes[i]);
    }
}

static void operands_fini(operands *o)
{
    for (int i = 0; i < o->kernel->noperands; i++) {
        free(o->block[i]);
        free(o->before[i]);
    }
}

static double element(const void *data, cb_type type, uint64_t index)
{
    if (type == CB_F32)
        return (double)((const float *)data)[index];
    assert_int_equal(type, CB_U32);
    return (double)((const uint32_t *)data)[index];
}

static void check_output(const operands *o, int operand, const char *what)
{
    uint64_t count = o->bytes[operand] / 4;
    double *value = calloc(count, sizeof *value), *bound = calloc(count, sizeof *bound);
    o->kernel->reference(&o->problem, (const void *const *)o->data, operand, 0, count, value,
                         bound);
    for (uint64_t i = 0; i < count; i++) {
        double got = element(o->data[operand], o->kernel->operands[operand].type, i);
        double error = got > value[i] ? got - value[i] : value[i] - got;
        if (!(error <= bound[i]))
            fail_msg("%s: element %llu is %.9g, not %.9g within %.3g", what, (unsigned long long)i,
                     got, value[i], bound[i]);
    }
    free(value);
    free(bound);
}

static void check_guards_and_inputs(const operands *o, const char *what)
{
    for (int i = 0; i < o->kernel->noperands; i++) {
        const unsigned char *head = o->block[i];
        const unsigned char *tail = (const unsigned char *)o->data[i] + o->bytes[i];
        for (int k = 0; k < GUARD; k++)
            if (head[k] != 0xA5 || tail[k] != 0xA5)
                fail_msg("%s: operand %s was written outside", what, o->kernel->operands[i].name);
        cb_role role = o->kernel->operands[i].role;
        if (role != CB_OUTPUT && role != CB_SCRATCH &&
            memcmp(o->data[i], o->before[i], o->bytes[i]) != 0)
            fail_msg("%s: operand %s was edited", what, o->kernel->operands[i].name);
    }
}

/* Two launches, so that what the first leaves in scratch is what the second meets. The workers are
 * run in turn, the last first: their order must not matter. */
static void check_launches(operands *o, const cb_impl *impl, const int64_t *tunables, int workers,
                           const char *what)
{
    for (int launch = 0; launch < 2; launch++) {
        for (int i = 0; i < o->kernel->noperands; i++)
            if (o->kernel->operands[i].role == CB_OUTPUT)
                memset(o->data[i], 0x5A + launch, o->bytes[i]);
        for (int worker = workers - 1; worker >= 0; worker--) {
            cb_launch share = {o->problem, tunables, o->data, worker, workers, NULL, NULL};
            assert_int_equal(impl->run(&share), 0);
        }
        for (int i = 0; i < o->kernel->noperands; i++)
            if (o->kernel->operands[i].role == CB_OUTPUT)
                check_output(o, i, what);
    }
    check_guards_and_inputs(o, what);
}

static int64_t choice_count(const cb_choice *choice)
{
    return choice->values ? choice->count : choice->max - choice->min + 1;
}

static int64_t choice_value(const cb_choice *choice, int64_t index)
{
    return choice->values ? choice->values[index] : choice->min + index;
}

static void check_all_tunables(operands *o, const cb_impl *impl)
{
    int64_t combinations = 1;
    for (int t = 0; t < impl->ntunables; t++)
        combinations *= choice_count(&impl->tunables[t]);
    for (int64_t c = 0; c < combinations; c++) {
        int64_t tunables[CB_TUNABLES_MAX] = {0}, rest = c;
        for (int t = 0; t < impl->ntunables; t++) {
            tunables[t] = choice_value(&impl->tunables[t], rest % choice_count(&impl->tunables[t]));
            rest /= choice_count(&impl->tunables[t]);
        }
        for (int workers = 1; workers <= WORKERS_MAX; workers++) {
            char what[256];
            snprintf(what, sizeof what, "%s/%s shape %lld param %lld tunables %lld,%lld workers %d",
                     o->kernel->name, impl->name,
                     o->kernel->ndims ? (long long)o->problem.shape[0] : 0,
                     (long long)o->problem.params[0], (long long)tunables[0],
                     (long long)tunables[1], workers);
            check_launches(o, impl, tunables, workers, what);
        }
    }
}

typedef struct sizes {
    const int64_t *shape, *param;
    int nshape, nparam;
} sizes;

static int check_kernel(const cb_kernel *kernel, const char *impl_name, sizes over)
{
    for (int m = 0; m < kernel->nimpls; m++) {
        const cb_impl *impl = &kernel->impls[m];
        if (strcmp(impl->name, impl_name) != 0)
            continue;
        if (!processor_has(impl->isa))
            return 0;
        for (int s = 0; s < over.nshape; s++)
            for (int p = 0; p < over.nparam; p++) {
                /* twin_read's second is its slices */
                const int64_t params[] = {over.param[p], 1};
                cb_problem problem = {&over.shape[s], params};
                char why[128];
                if (kernel->check && kernel->check(&problem, why, sizeof why) != 0)
                    continue;
                operands o;
                operands_init(&o, kernel, problem);
                check_all_tunables(&o, impl);
                operands_fini(&o);
            }
        return 1;
    }
    return 0;
}

static const int64_t RAGGED[] = {64, 128, 192, 576, 1088, 4096, 4160, 8128, 16384, 65600, 99968};
static const int64_t PASSES[] = {1, 2, 7};
static const int64_t WORK[] = {1, 63, 500, 999, 1000, 1001, 2000};
static const int64_t NO_SHAPE[] = {0};

static const sizes TWIN_SIZES = {RAGGED, PASSES, COUNT(RAGGED), COUNT(PASSES)};
static const sizes STREAM_SIZES = {RAGGED, WORK, COUNT(RAGGED), COUNT(WORK)};
static const sizes CHAIN_SIZES = {NO_SHAPE, WORK, 1, COUNT(WORK)};

static void check_implementation(const char *impl)
{
    int checked = check_kernel(load_built("twin", "twin_read"), impl, TWIN_SIZES) +
                  check_kernel(load_built("twin", "twin_write"), impl, TWIN_SIZES) +
                  check_kernel(load_built("twin", "twin_copy"), impl, TWIN_SIZES) +
                  check_kernel(load_built("stream_read", "stream_read"), impl, STREAM_SIZES) +
                  check_kernel(load_built("alu_chain", "alu_chain"), impl, CHAIN_SIZES);
    if (checked == 0)
        skip();
    assert_int_equal(checked, strcmp(impl, "avx512") == 0 ? 4 : 5);
}

static void portable_code_computes_the_definition(void **state)
{
    (void)state;
    check_implementation("portable");
}

static void avx2_code_computes_the_definition(void **state)
{
    (void)state;
    check_implementation("avx2");
}

static void avx512_code_computes_the_definition(void **state)
{
    (void)state;
    check_implementation("avx512");
}

static void a_read_needs_room_for_its_workers(void **state)
{
    (void)state;
    const int64_t shape = 4096, passes[] = {1, 1}, tunables[] = {1};
    const cb_kernel *kernel = load_built("twin", "twin_read");
    operands o;
    operands_init(&o, kernel, (cb_problem){&shape, passes});
    cb_launch share = {o.problem, tunables, o.data, 1024, 1025, NULL, NULL};
    assert_int_not_equal(kernel->impls[kernel->nimpls - 1].run(&share), 0);
    check_guards_and_inputs(&o, "1025 workers");
    operands_fini(&o);
}

static void stream_read_follows_work(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes, work;
        uint64_t read; /* 0: refused */
    } table[] = {
        {64, 1000, 64},   {64, 999, 0},     {64, 2000, 128},
        {6400, 1, 0},     {64000, 1, 64},   {1000000, 1001, 1000960},
        {1024, 500, 512}, {1024, 563, 576}, {1099511627776, 2000, 2199023255552},
    };
    const cb_kernel *kernel = load_built("stream_read", "stream_read");
    for (int i = 0; i < COUNT(table); i++) {
        cb_problem problem = {&table[i].bytes, &table[i].work};
        char why[128] = "";
        int refused = kernel->check(&problem, why, sizeof why);
        assert_int_equal(refused != 0, table[i].read == 0);
        assert_int_equal(refused != 0, strlen(why) > 0);
        cb_cost cost;
        kernel->cost(&problem, &cost);
        assert_int_equal(cost.bytes_read, table[i].read);
        assert_int_equal(kernel->bytes(&problem, 0), 2 * (uint64_t)table[i].bytes);
    }
}

/* A word that is not read must not matter, and every word that is read must. */
static void stream_read_ends_where_it_says(void **state)
{
    (void)state;
    const int64_t shape = 4160, work = 700, tunables[] = {2};
    const uint64_t read = 2880; /* floor(4160 * 0.7 / 64) * 64 */
    const cb_kernel *kernel = load_built("stream_read", "stream_read");
    const cb_impl *impl = &kernel->impls[kernel->nimpls - 1];
    operands o;
    operands_init(&o, kernel, (cb_problem){&shape, &work});
    cb_launch share = {o.problem, tunables, o.data, 0, 1, NULL, NULL};
    uint32_t *src = o.data[0], *checksum = o.data[1];
    assert_int_equal(impl->run(&share), 0);
    uint32_t clean = *checksum;
    for (uint64_t i = 0; i < o.bytes[0] / 4; i++) {
        uint32_t old = src[i]++;
        assert_int_equal(impl->run(&share), 0);
        assert_int_equal(*checksum, clean ^ (i < read / 4 ? old ^ src[i] : 0u));
        src[i] = old;
    }
    operands_fini(&o);
}

/* What has to come from memory does not grow with the passes: the ring, the residency and the twin
 * of a twin follow from it. */
static void the_twins_cost_is_of_distinct_bytes(void **state)
{
    (void)state;
    const int64_t shape = 4160, passes[] = {7, 1};
    cb_problem problem = {&shape, passes};
    static const struct {
        const char *name;
        uint64_t read, written;
    } table[] = {{"twin_read", 4160, 4}, {"twin_write", 64, 4160}, {"twin_copy", 4160, 4160}};
    for (int i = 0; i < COUNT(table); i++) {
        cb_cost cost;
        load_built("twin", table[i].name)->cost(&problem, &cost);
        assert_int_equal(cost.bytes_read, table[i].read);
        assert_int_equal(cost.bytes_written, table[i].written);
    }
}

/* The result must tell how many steps were done: one that is 1 % short is outside the bound. */
static void a_chain_cut_short_is_seen(void **state)
{
    (void)state;
    const cb_kernel *kernel = load_built("alu_chain", "alu_chain");
    static const int64_t pairs[][2] = {{100, 99}, {1000, 990}, {2000, 1980}};
    for (int i = 0; i < COUNT(pairs); i++)
        for (uint64_t set = 0; set < 50; set++) {
            float start[3];
            const void *logical[] = {start, NULL};
            cb_problem full = {NULL, &pairs[i][0]}, cut = {NULL, &pairs[i][1]};
            kernel->fill(&full, 3, 0, set, start, 0, 1);
            double value[2], bound[2];
            kernel->reference(&full, logical, 1, 0, 1, &value[0], &bound[0]);
            kernel->reference(&cut, logical, 1, 0, 1, &value[1], &bound[1]);
            double apart = value[0] > value[1] ? value[0] - value[1] : value[1] - value[0];
            assert_true(apart > bound[0]);
        }
}

static void the_example_builds_and_is_right(void **state)
{
    (void)state;
    const char *module = CB_BINARY_DIR "/test_controls_skeleton.so";
    const char *build = "cc -O2 -Wall -Wextra -Werror -shared -fPIC -I '" CB_SOURCE_DIR
                        "/include' -o '" CB_BINARY_DIR "/test_controls_skeleton.so' '" CB_SOURCE_DIR
                        "/examples/skeleton.c'";
    assert_int_equal(system(build), 0);
    static const int64_t shapes[] = {1, 7, 1000, 4096, 50001};
    static const int64_t acts[] = {0, 1};
    const cb_kernel *kernel = load(module, "scale_add");
    assert_int_equal(check_kernel(kernel, "plain", (sizes){shapes, acts, COUNT(shapes), 2}), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_code_computes_the_definition),
        cmocka_unit_test(avx2_code_computes_the_definition),
        cmocka_unit_test(avx512_code_computes_the_definition),
        cmocka_unit_test(a_read_needs_room_for_its_workers),
        cmocka_unit_test(stream_read_follows_work),
        cmocka_unit_test(stream_read_ends_where_it_says),
        cmocka_unit_test(the_twins_cost_is_of_distinct_bytes),
        cmocka_unit_test(a_chain_cut_short_is_seen),
        cmocka_unit_test(the_example_builds_and_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
