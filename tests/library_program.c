/* library_program.c: a program that compares its own functions, for test_library_compare.sh.
 * Usage: library_program entry|plain|forgets CASE [NAME]. What the library answered goes to
 * standard output, a line a thing. It sees the public headers alone. */
#include <coldbench/compare.h>
#include <coldbench/worker.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 64 };

static volatile unsigned steps = 400;
static unsigned char out[N];

/* Time in proportion to `steps`, whatever the compiler does. */
static unsigned chain(unsigned times)
{
    unsigned x = 1;
    for (unsigned i = 0; i < times * steps; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void fill(unsigned char value, size_t bytes)
{
    memset(out, value, bytes);
    chain(1);
}

static void once(void *state)
{
    (void)state;
    fill(7, N);
}

static void again(void *state)
{
    (void)state;
    fill(7, N);
}

static void twice(void *state)
{
    once(state);
    once(state);
}

static void other_bits(void *state)
{
    (void)state;
    fill(8, N);
}

static void too_short(void *state)
{
    (void)state;
    fill(7, N - 3);
}

static void crashes(void *state)
{
    (void)state;
    raise(SIGSEGV);
}

static void hangs(void *state)
{
    for (;;)
        pause();
    (void)state;
}

static void sleeps(void *state)
{
    once(state);
    usleep(100000);
}

static void leaves(void *state)
{
    (void)state;
    exit(0);
}

static void talks(void *state)
{
    once(state);
    puts("a function talks");
    fflush(stdout);
}

static int check_sevens(void *state)
{
    (void)state;
    return out[N - 1] == 7 ? 0 : 41;
}

static void show(cb_status status, const cb_compare_result *r, const cb_error *err)
{
    printf("status %s\n", cb_status_name(status));
    if (err->message[0])
        printf("message %s\n", err->message);
    printf("decision %s\nscope %s\naa %d\nbits %d\n", cb_compare_decision_name(r->decision),
           cb_compare_scope_text(r->scope), r->aa, r->bit_identical);
    printf("note %s\ntext %s\n", r->note, r->text);
    if (r->rounds && !(r->ratio.lo <= r->ratio.hi && r->ratio.mid > 0 && r->aa_ratio.mid > 0 &&
                       r->a_ns > 0 && r->b_ns > 0 && r->seconds > 0 && r->blocks >= r->rounds))
        printf("a figure is missing\n");
    if (status == CB_OK && r->rounds >= 6)
        printf("measured\n");
}

static cb_compare_decision compare(const cb_compare_request *request)
{
    cb_compare_result result;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb_compare(request, &result, &err);
    show(status, &result, &err);
    return result.decision;
}

static void compare_kernels(const char *a, const char *b)
{
    cb_compare_kernels_request request = {.a = a, .b = b, .cache = CB_COMPARE_WARM, .threads = 1};
    cb_compare_result result;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb_compare_kernels(&request, &result, &err);
    show(status, &result, &err);
}

/* What follows depends on what came before; a copy of the program must take the same way. */
static void two(cb_compare_request *r)
{
    if (compare(r) != CB_COMPARE_SLOWER)
        return;
    r->b = once;
    r->a = twice;
    r->a_name = "second";
    compare(r);
}

static int is_case(char **argv, const char *name)
{
    return strcmp(argv[2], name) == 0;
}

static const struct {
    const char *name;
    void (*b)(void *state);
} sides[] = {{"same", once},          {"alike", again},       {"slower", twice},
             {"bits", other_bits},    {"short", too_short},   {"wrong", other_bits},
             {"crash", crashes},      {"hang", hangs},        {"leave", leaves},
             {"sleep", sleeps},       {"talk", talks},        {"not looked at", once},
             {"null", NULL},          {"two", twice},         {"kernels then", twice},
             {"small budget", twice}, {"alpha", twice},       {"half output", twice},
             {"stop", twice},         {"reads input", twice}, {"other names", twice},
             {"slow main", twice},    {"words", twice}};

static const volatile int stopped = 1;

/* In a copy of the program standard input has nothing. */
static int input_is_empty(void)
{
    return getchar() == EOF;
}

/* Whether main goes on to compare. */
static int prepare(char **argv, cb_compare_request *r)
{
    if (is_case(argv, "wrong"))
        r->check = check_sevens;
    if (is_case(argv, "not looked at")) {
        r->output = NULL;
        r->output_bytes = 0;
    }
    if (is_case(argv, "small budget"))
        r->limits.budget_s = 0.01;
    if (is_case(argv, "alpha"))
        r->limits.alpha = 2;
    if (is_case(argv, "half output"))
        r->output_bytes = 0;
    if (is_case(argv, "stop"))
        r->limits.stop = &stopped;
    if (is_case(argv, "reads input") && input_is_empty())
        return 0;
    if (is_case(argv, "other names") && input_is_empty())
        r->a_name = "c";
    if (is_case(argv, "slow main") && input_is_empty())
        sleep(30);
    return 1;
}

int main(int argc, char **argv)
{
    cb_compare_request r = {
        .a = once, .output = out, .output_bytes = N, .limits = {.silence_s = 3, .seed = 5}};
    if (argc > 2 && strcmp(argv[1], "forgets") == 0)
        clearenv(); /* what a round is told by */
    if (argc < 2 || strcmp(argv[1], "plain") != 0) {
        int worker = cb_worker_entry(argc, argv);
        if (worker >= 0)
            return worker;
    }
    if (argc < 3)
        return 2;
    printf("main was here\n");
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        if (is_case(argv, sides[i].name))
            r.b = sides[i].b;
    if (!prepare(argv, &r))
        return 0;
    if (is_case(argv, "kernels") || is_case(argv, "kernels then"))
        compare_kernels("alu_chain@work=200", "alu_chain@work=400");
    if (is_case(argv, "no such kernel"))
        compare_kernels("alu_chian", "alu_chain");
    if (is_case(argv, "two"))
        two(&r);
    else if (r.b || is_case(argv, "null"))
        compare(&r);
    if (argc > 3) /* programs do this to their words: the next round must see them whole */
        memset(argv[2], 'x', strlen(argv[2]));
    if (argc > 3) {
        r.a_name = argv[3];
        compare(&r);
    }
    return 0;
}
