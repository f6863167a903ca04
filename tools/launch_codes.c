/* launch_codes --help says how it is called. Nothing is timed. It is what compute-sanitizer is
 * given, under which a launch takes up to seconds: one process, and no launch more than a look
 * needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "default_codes.h"
#include "host/memory.h"
#include "host/topology.h"
#include "measure/duel.h"
#include "measure/fill.h"

enum { SEED = 1, BYTES_MAX = 8 << 20, CODES_MAX = 512 };

static const char usage[] = "usage: launch_codes -l | [-k MODULE.so] DEVICE VARIANT...\n";
static const char details[] =
    "\n"
    "  -l            all device code that the verbs use unasked, but for what is wrong on\n"
    "                purpose; a second word says whether it has \"shared\" memory, or \"none\"\n"
    "  DEVICE ...    launches each variant a few times on small shapes, ragged and wide ones\n"
    "                among them, and verifies what it wrote\n"
    "  -k MODULE.so  kernels of one's own\n"
    "\n"
    "Status: 0 all right, 1 an output is wrong, 2 usage, or nothing could be launched,\n"
    "3 no such device, 5 output or an internal error.\n";

/* Each dimension's multiple times these. */
static const int64_t shapes[][CB_DIMS_MAX] = {
    {1, 1, 1, 1, 1, 1}, {3, 7, 5, 3, 3, 3}, {37, 131, 41, 3, 3, 3}, {517, 9, 43, 5, 3, 3}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct launching {
    cb__suite suite;
    cb__target target;
    cb__device_info info;
    cb__pool *pool;
    int launched, wrong;
} launching;

typedef struct listed {
    char texts[CODES_MAX][96];
    int n;
} listed;

/* ---- one case ---- */

static const char *fault_of(const cb__findings *f, const cb__duelist_result *arm)
{
    return arm->launch.status != CB_OK ? arm->launch.message
           : arm->edits                ? "it edited its inputs"
           : f->unwritten              ? "elements were never written"
           : f->guard_bytes            ? "bytes beside an output were written"
           : f->nonfinite              ? "not a number, or infinite"
           : f->beyond                 ? "outside the error bound"
                                       : NULL;
}

static void look(const cb__case *c, const cb__plan *plan, const cb__reference *reference,
                 const cb__duel_result *r, const unsigned char *exchange, cb__findings *f)
{
    for (int i = 0; i < r->nentries; i++) {
        const cb__duel_entry *e = &r->entries[i];
        cb__verify_slot(c, plan, reference, SEED, e->slot, e->set, exchange + e->offset, f);
        for (int j = 0; j < i; j++)
            if (r->entries[j].slot == e->slot)
                cb__verify_written(c, plan, SEED, e->slot, exchange + r->entries[j].offset,
                                   exchange + e->offset, f);
    }
}

static void no_word(void *arg, double done)
{
    (void)arg;
    (void)done;
}

static cb_status launch(launching *l, const cb__case *c, const cb__plan *plan, cb__region *ring,
                        const char **fault, cb_error *err)
{
    static char words[sizeof err->message];
    cb__filled filled = {0};
    uint64_t n = cb__reference_elements(c), bytes = cb__duel_exchange_bytes(plan, 1);
    double *values = malloc((size_t)n * 16 + 1);
    unsigned char *exchange = malloc((size_t)bytes + 1);
    cb__duel_entry *entries = calloc((size_t)cb__duel_entries(plan, 1), sizeof *entries);
    cb_status status = values && exchange && entries
                           ? CB_OK
                           : cb_error_set(err, CB_NO_MEMORY, "no memory for outputs");
    if (status == CB_OK)
        status = cb__fill(c, plan, l->pool, SEED, ring->base, values, values + n, 1, no_word, NULL,
                          &filled, err);
    const cb__duelist arm = {c, plan, ring->fd, filled.digest, NULL};
    const cb__duel_request request = {.arms = &arm,
                                      .narms = 1,
                                      .cache = CB__WARM,
                                      .submit = CB__BATCHED,
                                      .seed = SEED,
                                      .poison_seed = SEED,
                                      .digest = true,
                                      .exchange = exchange,
                                      .exchange_bytes = bytes};
    cb__duel_result result = {.entries = entries};
    if (status == CB_OK)
        status = cb__duel_run(l->target, &request, &result, err);
    if (status == CB_OK) {
        const cb__reference reference = {values, values + n, n, 1};
        cb__findings found = {0};
        look(c, plan, &reference, &result, exchange, &found);
        *fault = fault_of(&found, &result.arms[0]);
        if (*fault) {
            snprintf(words, sizeof words, "%s", *fault);
            *fault = words;
        }
    }
    free(filled.checksums);
    free(values);
    free(exchange);
    free(entries);
    return status;
}

static cb_status launch_shape(launching *l, const char *text, const cb__case *c, const char *shape,
                              cb_error *err)
{
    cb__plan plan;
    cb__layout layout;
    const char *fault = NULL;
    cb__region ring = CB__REGION_INIT;
    cb_status status = cb__plan_arms(c, 1, &l->info, false, &plan, &layout, err);
    if (status == CB_OK && plan.file_bytes > BYTES_MAX)
        return CB_OK;
    if (status == CB_OK)
        status = cb__region_shared_small("coldbench-operands", plan.file_bytes, &ring, err);
    if (status == CB_OK)
        status = launch(l, c, &plan, &ring, &fault, err);
    cb__region_fini(&ring);
    if (status != CB_OK) {
        cb_error_prefix(err, "%s %s", text, shape);
        return status;
    }
    l->launched++;
    l->wrong += fault != NULL;
    printf("%-5s %s %s%s%s\n", fault ? "WRONG" : "ok", text, shape, fault ? ": " : "",
           fault ? fault : "");
    fflush(stdout);
    return CB_OK;
}

/* ---- all of them ---- */

static void shape_text(const cb_kernel *k, const int64_t *times, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < k->ndims && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? "x" : "",
                               k->dims[i].multiple_of * times[i]);
}

/* What goes over its array as often as it is told goes over it once: under racecheck a hundred
 * passes take minutes. */
static const char *in_one_pass(const cb__suite *suite, const char *text, unsigned isa, char *buffer,
                               size_t size)
{
    const size_t head = strcspn(text, "/");
    cb__case c;
    int length = snprintf(buffer, size, "%.*s%spasses=1%s", (int)head, text,
                          memchr(text, '@', head) ? "," : "@", text + head);
    bool takes_it =
        (size_t)length < size && cb__case_parse_variant(suite, buffer, isa, &c, NULL) == CB_OK;
    return takes_it ? buffer : text;
}

/* A shape that a kernel has not, by a rule of its own, is left out; but not all of them. */
static cb_status launch_variant(launching *l, const char *given, cb_error *err)
{
    int before = l->launched;
    char buffer[128];
    const char *text = in_one_pass(&l->suite, given, l->info.isa, buffer, sizeof buffer);
    cb_error last = CB_ERROR_INIT;
    cb_status status = CB_OK;
    for (int i = 0; i < SHAPES && status == CB_OK; i++) {
        char shape[96];
        cb__case c;
        cb__case_parse_variant(&l->suite, text, l->info.isa, &c, NULL);
        shape_text(c.kernel, shapes[i], shape, sizeof shape);
        if (cb__case_parse(&l->suite, text, shape, l->info.isa, &c, &last) != CB_OK)
            continue;
        status = launch_shape(l, text, &c, shape, err);
        if (c.kernel->ndims == 0)
            break;
    }
    if (status == CB_OK && l->launched == before)
        status = cb_error_set(err, CB_USAGE, "%s: none of the small shapes is one of its: %s", text,
                              last.message);
    return status;
}

/* Of selftest's kernels: they write where they must not, and one ends its context. */
static bool is_seeded_fault(const cb__case *c)
{
    size_t length = strlen(c->impl->name), clean = strlen("_clean");
    return strncmp(c->kernel->name, "fault_", strlen("fault_")) == 0 &&
           (length < clean || strcmp(c->impl->name + length - clean, "_clean") != 0);
}

/* The same code comes for many reasons. */
static cb_status list_once(void *arg, const char *text, const cb__case *c, cb_error *err)
{
    listed *l = arg;
    for (int i = 0; text && i < l->n; i++)
        if (strcmp(l->texts[i], text) == 0)
            return CB_OK;
    if (!text || is_seeded_fault(c)) /* no text: the backend's own kernels */
        return CB_OK;
    if (l->n == CODES_MAX)
        return cb_error_set(err, CB_INTERNAL, "there are more than %d codes", CODES_MAX);
    snprintf(l->texts[l->n++], sizeof *l->texts, "%s", text);
    bool shared = strstr(c->impl->device->source, "__shared__") != NULL;
    printf("%s %s\n", text, shared ? "shared" : "none");
    return CB_OK;
}

static int list(void)
{
    static listed l;
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__suite_open(NULL, 0, false, &suite, &err);
    if (status == CB_OK) {
        status = each_default_code(&suite, list_once, &l, &err);
        cb__suite_close(&suite);
    }
    if (status != CB_OK)
        fprintf(stderr, "launch_codes: %s\n", err.message);
    return status == CB_OK ? 0 : 5;
}

static cb_status open_all(launching *l, const char *device, const char *module, cb_error *err)
{
    static cb__topology topology;
    const char *script = NULL;
    cb_status status = cb__topology_read("", &topology, err);
    if (status == CB_OK)
        status = cb__pool_new(topology.cores, 1, &l->pool, err);
    if (status == CB_OK)
        status = cb__backend_find(device, &l->target.ops, &script, err);
    if (status == CB_OK)
        status = l->target.ops->open(script, 0, CB__COMPACT, &l->target.device, err);
    if (status == CB_OK)
        status = cb__suite_open(&module, module != NULL, false, &l->suite, err);
    if (status != CB_OK)
        return status;
    l->target.ops->info(l->target.device, &l->info);
    l->info.batch_bytes = 1; /* batches of two launches, the fewest that can overlap */
    if (l->info.isa == 0)
        l->info.isa = topology.isa;
    return CB_OK;
}

static int launch_all(int argc, char **argv)
{
    static launching l;
    const char *module = NULL;
    cb_error err = CB_ERROR_INIT;
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "-k") == 0) {
        module = argv[2];
        at = 3;
    }
    if (at + 1 >= argc) {
        fputs(usage, stderr);
        return 2;
    }
    cb_status status = open_all(&l, argv[at++], module, &err);
    for (; at < argc && status == CB_OK; at++) {
        cb__case c;
        status = cb__case_parse_variant(&l.suite, argv[at], l.info.isa, &c, &err);
        if (status == CB_OK)
            status = launch_variant(&l, argv[at], &err);
    }
    cb__suite_close(&l.suite);
    if (l.target.device)
        l.target.ops->close(l.target.device);
    cb__pool_free(l.pool);
    if (status != CB_OK) {
        fprintf(stderr, "launch_codes: %s\n", err.message);
        return status == CB_UNAVAILABLE ? 3 : 2;
    }
    printf("%d launches of small shapes, %d wrong\n", l.launched, l.wrong);
    return l.wrong != 0;
}

int main(int argc, char **argv)
{
    int code = 0;
    if (argc == 2 && strcmp(argv[1], "-l") == 0)
        code = list();
    else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        printf("%s%s", usage, details);
    else
        code = launch_all(argc, argv);
    /* Half a list must not pass for a whole one. */
    bool failed = fflush(stdout) != 0;
    if (!failed && !ferror(stdout))
        return code;
    fprintf(stderr, "launch_codes: writing standard output: %s\n",
            failed ? strerror(errno) : "not all of it could be written");
    return 5;
}
