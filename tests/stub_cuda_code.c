/* The stub driver (stub_cuda.h): modules, launches, streams, events and graphs. */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cuda_internal.h"

struct cb__cu_function_st {
    char name[128];
    void (*run)(const stub_launch *launch); /* NULL: does nothing */
    int arguments, max_shared, shared_percent;
    struct cb__cu_function_st *next;
};
struct cb__cu_module_st {
    char *image; /* its own copy */
    size_t size;
    struct cb__cu_function_st *functions;
};
struct cb__cu_event_st {
    bool recorded;
    double at_ns;
};

/* What a graph holds: a launch, else an event to record, else bytes to set. */
typedef struct node {
    cb__cu_function function;
    stub_launch launch;
    unsigned long long *values; /* of the arguments */
    cb__cu_event event;
    cb__cu_address memory;
    size_t bytes;
    unsigned char value;
} node;
struct cb__cu_graph_st {
    node *nodes;
    int n;
};
struct cb__cu_graph_exec_st {
    struct cb__cu_graph_st graph; /* its own copy */
};

enum { LOG_MAX = 4096 };
static unsigned long launches;
static char launched[LOG_MAX + 1], taken[LOG_MAX + 1]; /* '.' and '>' */
static int nlaunched, last_percent = -1;
static double clock_ns;

unsigned long stub_cuda_launches(void)
{
    return launches;
}

const char *stub_cuda_overlaps(void)
{
    memcpy(taken, launched, sizeof taken);
    memset(launched, 0, sizeof launched);
    nlaunched = 0;
    return taken;
}

int stub_cuda_shared_percent(void)
{
    return last_percent;
}

/* ---- modules ---- */

/* An ELF file ends with its section headers, or with its program headers. */
static size_t size_of(const void *image)
{
    Elf64_Ehdr head;
    if (memcmp(image, ELFMAG, SELFMAG) != 0)
        return strlen(image) + 1;
    memcpy(&head, image, sizeof head);
    size_t sections = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
    size_t segments = head.e_phoff + (size_t)head.e_phnum * head.e_phentsize;
    return sections > segments ? sections : segments;
}

static void say(unsigned count, const cb__cu_jit_option *options, void **values, const char *words)
{
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CB__CU_JIT_ERROR_LOG)
            log = values[i];
        if (options[i] == CB__CU_JIT_ERROR_LOG_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (log && size)
        snprintf(log, size, "%s", words);
}

cb__cu_result cuModuleLoadDataEx(cb__cu_module *module, const void *image, unsigned count,
                                 cb__cu_jit_option *options, void **values)
{
    BEGIN(true);
    bool elf = memcmp(image, ELFMAG, SELFMAG) == 0;
    if (!elf && !strstr(image, ".version"))
        return INVALID_IMAGE;
    if (!elf && !strstr(image, ".target")) {
        say(count, options, values,
            "ptxas application ptx input, line 2; fatal   : Missing .target directive\n");
        return INVALID_PTX;
    }
    *module = calloc(1, sizeof **module);
    (*module)->size = size_of(image);
    (*module)->image = malloc((*module)->size);
    memcpy((*module)->image, image, (*module)->size);
    stub_live++;
    return OK;
}

cb__cu_result cuModuleUnload(cb__cu_module module)
{
    BEGIN(true);
    while (module->functions) {
        cb__cu_function gone = module->functions;
        module->functions = gone->next;
        free(gone);
    }
    free(module->image);
    free(module);
    stub_live--;
    return OK;
}

/* The host function of that name, and how many arguments it takes. */
static void find_host_function(cb__cu_function function)
{
    char count[160];
    const char *file = getenv("STUB_CUDA_KERNELS");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (file && !library)
        fprintf(stderr, "STUB_CUDA_KERNELS: %s\n", dlerror());
    if (!library)
        return;
    snprintf(count, sizeof count, "%s_arguments", function->name);
    const int *arguments = dlsym(library, count);
    void *run = dlsym(library, function->name);
    if (run && arguments) { /* the library stays */
        memcpy(&function->run, &run, sizeof run);
        function->arguments = *arguments;
    }
}

cb__cu_result cuModuleGetFunction(cb__cu_function *function, cb__cu_module module, const char *name)
{
    BEGIN(true);
    if (!memmem(module->image, module->size, name, strlen(name)))
        return NOT_FOUND;
    cb__cu_function made = calloc(1, sizeof *made);
    snprintf(made->name, sizeof made->name, "%s", name);
    made->shared_percent = -1;
    find_host_function(made);
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return OK;
}

cb__cu_result cuModuleGetGlobal_v2(cb__cu_address *address, size_t *bytes, cb__cu_module module,
                                   const char *name)
{
    BEGIN(true);
    (void)address, (void)bytes, (void)module, (void)name;
    return NOT_FOUND; /* it has no memory for them */
}

cb__cu_result cuFuncGetAttribute(int *value, cb__cu_func_attribute attribute,
                                 cb__cu_function function)
{
    BEGIN(true);
    *value = attribute == CB__CU_FUNC_MAX_THREADS_PER_BLOCK      ? MAX_THREADS
             : attribute == CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES ? function->max_shared
             : attribute == CB__CU_FUNC_REGISTERS                ? 32
                                                                 : 0;
    return OK;
}

cb__cu_result cuFuncSetAttribute(cb__cu_function function, cb__cu_func_attribute attribute,
                                 int value)
{
    BEGIN(true);
    if (attribute == CB__CU_FUNC_SHARED_PERCENT && value >= 0 && value <= 100) {
        function->shared_percent = value;
        return OK;
    }
    if (attribute != CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES || value < 0 || value > MAX_SHARED)
        return INVALID_VALUE;
    function->max_shared = value;
    return OK;
}

cb__cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, cb__cu_function function,
                                                          int threads, size_t shared_bytes)
{
    BEGIN(true);
    if (!function || threads < 1)
        return INVALID_VALUE;
    *n = shared_bytes > MAX_SHARED || threads > MAX_THREADS ? 0 : 2048 / threads;
    return OK;
}

/* ---- launches ---- */

static void run(cb__cu_function function, const stub_launch *launch)
{
    int result = OK;
    stub_launch own = *launch;
    own.result = &result;
    launches++;
    last_percent = function->shared_percent;
    if (nlaunched < LOG_MAX)
        launched[nlaunched++] = launch->overlaps ? '>' : '.';
    clock_ns += (double)stub_number("STUB_CUDA_LAUNCH_NS", 1000);
    if (function->run)
        function->run(&own);
    if (result != OK)
        stub_spoil(result);
}

static node *add_node(cb__cu_graph graph)
{
    graph->nodes = realloc(graph->nodes, (size_t)(graph->n + 1) * sizeof *graph->nodes);
    memset(&graph->nodes[graph->n], 0, sizeof *graph->nodes);
    return &graph->nodes[graph->n++];
}

/* Arguments are copied when a launch is recorded, as a real driver does. */
static void add_launch(cb__cu_graph graph, cb__cu_function function, const stub_launch *launch)
{
    node *made = add_node(graph);
    made->function = function;
    made->launch = *launch;
    made->values = calloc((size_t)function->arguments + 1, sizeof *made->values);
    for (int i = 0; i < function->arguments; i++)
        memcpy(&made->values[i], launch->arguments[i], sizeof *made->values);
}

/* In a graph only a launch may overlap what is ahead of it. */
static cb__cu_result launch_in(cb__cu_stream stream, cb__cu_function function,
                               const stub_launch *launch)
{
    const unsigned *g = launch->grid, *b = launch->block;
    const unsigned allowed =
        function->max_shared > FREE_SHARED ? (unsigned)function->max_shared : FREE_SHARED;
    const unsigned long long threads = (unsigned long long)b[0] * b[1] * b[2];
    if (!g[0] || !g[1] || !g[2] || g[1] > 65535 || g[2] > 65535 || !threads ||
        threads > MAX_THREADS || launch->shared_bytes > allowed)
        return INVALID_VALUE;
    if (!stream || !stream->capturing) {
        run(function, launch);
        return OK;
    }
    cb__cu_graph graph = stream->capturing;
    if (launch->overlaps && (graph->n == 0 || !graph->nodes[graph->n - 1].function))
        return INVALID_VALUE;
    add_launch(graph, function, launch);
    return OK;
}

cb__cu_result cuLaunchKernel(cb__cu_function function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, cb__cu_stream stream, void **arguments,
                             void **extra)
{
    BEGIN(true);
    const stub_launch launch = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, arguments, 0, NULL};
    return extra ? INVALID_VALUE : launch_in(stream, function, &launch);
}

#ifndef STUB_LACKS_LAUNCH_EX
cb__cu_result cuLaunchKernelEx(const cb__cu_launch_config *config, cb__cu_function function,
                               void **arguments, void **extra)
{
    BEGIN(true);
    stub_launch launch = {{config->grid_x, config->grid_y, config->grid_z},
                          {config->block_x, config->block_y, config->block_z},
                          config->shared_bytes,
                          arguments,
                          0,
                          NULL};
    for (unsigned i = 0; i < config->count; i++) {
        if (config->attributes[i].id != CB__CU_PROGRAMMATIC_SERIALIZATION)
            return INVALID_VALUE;
        launch.overlaps = config->attributes[i].value.allowed;
    }
    return extra ? INVALID_VALUE : launch_in(config->stream, function, &launch);
}
#endif

/* ---- streams ---- */

cb__cu_result cuStreamCreate(cb__cu_stream *stream, unsigned flags)
{
    BEGIN(true);
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    stub_live++;
    return OK;
}

static void free_nodes(cb__cu_graph graph)
{
    for (int i = 0; i < graph->n; i++)
        free(graph->nodes[i].values);
    free(graph->nodes);
}

cb__cu_result cuStreamDestroy_v2(cb__cu_stream stream)
{
    BEGIN(true);
    if (stream->capturing) {
        free_nodes(stream->capturing);
        free(stream->capturing);
    }
    free(stream);
    stub_live--;
    return OK;
}

static cb__cu_result not_capturing(cb__cu_stream stream)
{
    return stream && stream->capturing ? CAPTURE_UNSUPPORTED : OK;
}

cb__cu_result cuStreamSynchronize(cb__cu_stream stream)
{
    BEGIN(true);
    return not_capturing(stream);
}

cb__cu_result cuStreamQuery(cb__cu_stream stream)
{
    BEGIN(true);
    return not_capturing(stream);
}

cb__cu_result cuStreamWaitEvent(cb__cu_stream stream, cb__cu_event event, unsigned flags)
{
    BEGIN(true);
    (void)stream, (void)flags;
    return event ? OK : INVALID_HANDLE;
}

cb__cu_result cuMemsetD8Async(cb__cu_address to, unsigned char value, size_t bytes,
                              cb__cu_stream stream)
{
    BEGIN(true);
    if (!stub_holds(to, bytes))
        return INVALID_VALUE;
    if (stream && stream->capturing) {
        node *made = add_node(stream->capturing);
        made->memory = to;
        made->bytes = bytes;
        made->value = value;
    } else {
        memset((void *)(uintptr_t)to, value, bytes);
    }
    return OK;
}

/* ---- events ---- */

cb__cu_result cuEventCreate(cb__cu_event *event, unsigned flags)
{
    BEGIN(true);
    (void)flags;
    *event = calloc(1, sizeof **event);
    stub_live++;
    return OK;
}

cb__cu_result cuEventDestroy_v2(cb__cu_event event)
{
    BEGIN(true);
    free(event);
    stub_live--;
    return OK;
}

static void record(cb__cu_event event)
{
    event->recorded = true;
    event->at_ns = clock_ns;
}

#ifndef STUB_LACKS_RECORD_WITH_FLAGS
cb__cu_result cuEventRecordWithFlags(cb__cu_event event, cb__cu_stream stream, unsigned flags)
{
    BEGIN(true);
    if (!stream || !stream->capturing)
        record(event);
    else if (flags & CB__CU_EVENT_RECORD_EXTERNAL)
        add_node(stream->capturing)->event = event; /* else it only orders the graph */
    return OK;
}
#endif

cb__cu_result cuEventRecord(cb__cu_event event, cb__cu_stream stream)
{
    BEGIN(true);
    if (!stream || !stream->capturing)
        record(event);
    return OK;
}

cb__cu_result cuEventSynchronize(cb__cu_event event)
{
    BEGIN(true);
    return event ? OK : INVALID_HANDLE;
}

cb__cu_result cuEventElapsedTime(float *milliseconds, cb__cu_event from, cb__cu_event to)
{
    BEGIN(true);
    if (!from->recorded || !to->recorded)
        return INVALID_HANDLE;
    *milliseconds = (float)((to->at_ns - from->at_ns) * 1e-6);
    return OK;
}

/* ---- graphs ---- */

cb__cu_result cuStreamBeginCapture_v2(cb__cu_stream stream, cb__cu_capture_mode mode)
{
    BEGIN(true);
    (void)mode;
    if (!stream || stream->capturing)
        return INVALID_VALUE;
    stream->capturing = calloc(1, sizeof *stream->capturing);
    return OK;
}

cb__cu_result cuStreamEndCapture(cb__cu_stream stream, cb__cu_graph *graph)
{
    BEGIN(true);
    if (!stream->capturing)
        return INVALID_VALUE;
    *graph = stream->capturing;
    stream->capturing = NULL;
    stub_live++;
    return OK;
}

cb__cu_result cuGraphDestroy(cb__cu_graph graph)
{
    BEGIN(true);
    free_nodes(graph);
    free(graph);
    stub_live--;
    return OK;
}

cb__cu_result cuGraphInstantiateWithFlags(cb__cu_graph_exec *exec, cb__cu_graph graph,
                                          unsigned long long flags)
{
    BEGIN(true);
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    for (int i = 0; i < graph->n; i++) {
        const node *from = &graph->nodes[i];
        node *made = add_node(&(*exec)->graph);
        *made = *from;
        if (from->values) {
            size_t bytes = ((size_t)from->function->arguments + 1) * sizeof *from->values;
            made->values = malloc(bytes);
            memcpy(made->values, from->values, bytes);
        }
    }
    stub_live++;
    return OK;
}

cb__cu_result cuGraphExecDestroy(cb__cu_graph_exec exec)
{
    BEGIN(true);
    free_nodes(&exec->graph);
    free(exec);
    stub_live--;
    return OK;
}

static cb__cu_result run_node(const node *one)
{
    enum { ARGUMENTS_MAX = 64 };
    if (one->function) {
        void *arguments[ARGUMENTS_MAX];
        stub_launch launch = one->launch;
        for (int i = 0; i < one->function->arguments && i < ARGUMENTS_MAX; i++)
            arguments[i] = &one->values[i];
        launch.arguments = arguments;
        run(one->function, &launch);
    } else if (one->event) {
        record(one->event);
    } else if (!stub_holds(one->memory, one->bytes)) {
        return INVALID_VALUE;
    } else {
        memset((void *)(uintptr_t)one->memory, one->value, one->bytes);
    }
    return OK;
}

cb__cu_result cuGraphLaunch(cb__cu_graph_exec exec, cb__cu_stream stream)
{
    BEGIN(true);
    cb__cu_result result = not_capturing(stream);
    for (int i = 0; i < exec->graph.n && result == OK; i++)
        result = run_node(&exec->graph.nodes[i]);
    return result;
}
