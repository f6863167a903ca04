/* Code for this device: compiled once a process, loaded anew for every build, and launched. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "device/cuda/cuda.h"

enum {
    ARGUMENTS_MAX = CB_OPERANDS_MAX + CB_DIMS_MAX + CB_PARAMS_MAX,
    FREE_SHARED_BYTES = 48 << 10, /* of dynamic shared memory, that needs no leave */
    BLOCK_X_MOST = 1024, /* of every device: CUDA C++ Programming Guide, technical specifications */
    BLOCK_Y_MOST = 1024,
    BLOCK_Z_MOST = 64,
    GRID_X_MOST = INT32_MAX,
    GRID_YZ_MOST = UINT16_MAX,
    OVERLAP_CAPABILITY = 90,
    NOT_FOUND = 500,       /* cuModuleGetFunction: no such name */
    OVERLAP_DRIVER = 12030 /* the first that takes such launches into graphs */
};

/* What build() makes of a code. */
typedef struct built {
    cb__cu_module module;
    cb__cu_function function;
    cb_geometry geometry;
} built;

/* ---- images ---- */

cb_status cb__cuda_image_of(cb__device *device, const cb__cuda_source *source, const void **image,
                            cb_error *err)
{
    cb__buf key = CB__BUF_INIT;
    for (int i = 0; source->macros && source->macros[i]; i++)
        cb__buf_printf(&key, "%s\n", source->macros[i]);
    cb__buf_puts(&key, source->text);
    cb__cuda_image *found = device->images;
    while (found && strcmp(found->key, cb__buf_text(&key)) != 0)
        found = found->next;
    cb_status status = CB_OK;
    if (!found) {
        found = calloc(1, sizeof *found);
        if (!found || key.failed) {
            status = cb_error_set(err, CB_NO_MEMORY, "%s: no memory for its image", source->name);
            free(found);
            goto out;
        }
        status = cb__cuda_compile(&device->compiler, source, &found->image, err);
        if (status != CB_OK) {
            cb__buf_fini(&found->image);
            free(found);
            goto out;
        }
        found->key = key.text;
        found->next = device->images;
        device->images = found;
        key = (cb__buf)CB__BUF_INIT;
    }
    *image = found->image.text;
out:
    cb__buf_fini(&key);
    return status;
}

void cb__cuda_images_free(cb__device *device)
{
    while (device->images) {
        cb__cuda_image *image = device->images;
        device->images = image->next;
        cb__buf_fini(&image->image);
        free(image->key);
        free(image);
    }
}

/* ---- constants ---- */

static bool is_number(const cb_choice *parameter)
{
    return !parameter->words && !parameter->values;
}

static void macro(const char *name, int64_t value, cb__buf *text)
{
    cb__buf_puts(text, "CB_");
    for (const char *c = name; *c; c++)
        cb__buf_printf(text, "%c", toupper((unsigned char)*c));
    cb__buf_printf(text, "=%lld", (long long)value);
}

cb_status cb__cuda_source_of(const cb__code *code, cb__cuda_constants *constants,
                             cb__cuda_source *source, cb_error *err)
{
    const cb_kernel *k = code->kernel;
    int n = 0;
    *constants = (cb__cuda_constants){0};
    *source = (cb__cuda_source){k->name, code->impl->device->source, constants->macros};
    for (int i = 0; i < k->nparams; i++)
        if (!is_number(&k->params[i]))
            macro(k->params[i].name, code->problem.params[i], &constants->texts[n++]);
    for (int i = 0; i < code->impl->ntunables; i++)
        macro(code->impl->tunables[i].name, code->tunables[i], &constants->texts[n++]);
    for (int i = 0; i < n; i++) {
        if (constants->texts[i].failed)
            return cb_error_set(err, CB_NO_MEMORY, "%s: no memory for its constants", k->name);
        constants->macros[i] = cb__buf_text(&constants->texts[i]);
    }
    return CB_OK;
}

void cb__cuda_constants_fini(cb__cuda_constants *constants)
{
    for (int i = 0; i < CB__CUDA_CONSTANTS_MAX; i++)
        cb__buf_fini(&constants->texts[i]);
}

static cb_status image_of(cb__device *device, const cb__code *code, const void **image,
                          cb_error *err)
{
    cb__cuda_constants constants;
    cb__cuda_source source;
    cb_status status = cb__cuda_source_of(code, &constants, &source, err);
    if (status == CB_OK)
        status = cb__cuda_image_of(device, &source, image, err);
    cb__cuda_constants_fini(&constants);
    return status;
}

/* ---- building ---- */

/* "11008x4096" */
static void shape_text(const cb__code *code, cb__buf *text)
{
    for (int i = 0; i < code->kernel->ndims; i++)
        cb__buf_printf(text, "%s%lld", i ? "x" : "", (long long)code->problem.shape[i]);
}

static cb_status cannot(const cb__code *code, const char *why, cb_error *err)
{
    cb__buf shape = CB__BUF_INIT;
    shape_text(code, &shape);
    cb_status status =
        cb_error_set(err, CB_USAGE, "%s/%s cannot be launched for shape %s: %s", code->kernel->name,
                     code->impl->name, cb__buf_text(&shape), why);
    cb__buf_fini(&shape);
    return status;
}

static cb_status no_geometry(const cb__code *code, cb_error *err)
{
    cb__buf why = CB__BUF_INIT;
    cb__buf_puts(&why, "its geometry() refuses it");
    for (int i = 0; i < code->impl->ntunables; i++) {
        const cb_choice *tunable = &code->impl->tunables[i];
        cb__buf_printf(&why, "%s%s=", i ? "," : " with ", tunable->name);
        if (tunable->words)
            cb__buf_puts(&why, tunable->words[code->tunables[i]]);
        else
            cb__buf_printf(&why, "%lld", (long long)code->tunables[i]);
    }
    cb_status status = cannot(code, cb__buf_text(&why), err);
    cb__buf_fini(&why);
    return status;
}

static bool is_past(const uint32_t size[3], uint32_t x, uint32_t y, uint32_t z)
{
    return size[0] > x || size[1] > y || size[2] > z;
}

static cb_status too_large(const cb__code *code, const char *what, const char *of,
                           const uint32_t size[3], const char *most, cb_error *err)
{
    char why[160];
    snprintf(why, sizeof why, "a %s of %lu x %lu x %lu %s, and none is past %s", what,
             (unsigned long)size[0], (unsigned long)size[1], (unsigned long)size[2], of, most);
    return cannot(code, why, err);
}

static cb_status geometry_of(const cb__device *device, const cb__code *code, cb_geometry *out,
                             cb_error *err)
{
    if (code->impl->device->geometry(&code->problem, code->tunables, device->processors, out) != 0)
        return no_geometry(code, err);
    for (int i = 0; i < 3; i++)
        if (out->block[i] == 0 || out->grid[i] == 0)
            return cannot(code, "its geometry has no threads", err);
    if (is_past(out->block, BLOCK_X_MOST, BLOCK_Y_MOST, BLOCK_Z_MOST))
        return too_large(code, "block", "threads", out->block, "1024 x 1024 x 64", err);
    if (is_past(out->grid, GRID_X_MOST, GRID_YZ_MOST, GRID_YZ_MOST))
        return too_large(code, "grid", "blocks", out->grid, "2147483647 x 65535 x 65535", err);
    return CB_OK;
}

static cb_status attribute(cb__device *device, int what, int *value, cb_error *err)
{
    return CB__CUDA_DID(device, err, cuDeviceGetAttribute, value, what, device->handle);
}

static cb_status check_threads(cb__device *device, const cb__code *code, const built *b,
                               cb_error *err)
{
    const cb_geometry *g = &b->geometry;
    char why[128];
    int most = 0;
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    cb_status status = CB__CUDA_DID(device, err, cuFuncGetAttribute, &most,
                                    CB__CU_FUNC_MAX_THREADS_PER_BLOCK, b->function);
    if (status != CB_OK || threads <= (uint64_t)most)
        return status;
    snprintf(why, sizeof why, "%llu threads a block, and this code can have %d",
             (unsigned long long)threads, most);
    return cannot(code, why, err);
}

/* What a function has by itself counts too. */
static cb_status allow_shared(cb__device *device, const cb__code *code, const built *b,
                              cb_error *err)
{
    char why[128];
    int most = 0, own = 0;
    uint32_t wanted = b->geometry.shared_bytes;
    cb_status status = attribute(device, CB__CU_MAX_SHARED_BYTES_PER_BLOCK, &most, err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuFuncGetAttribute, &own, CB__CU_FUNC_SHARED_BYTES,
                              b->function);
    if (status != CB_OK)
        return status;
    if ((int64_t)wanted + own > most) {
        snprintf(why, sizeof why, "%lld bytes of shared memory a block, and this device has %d",
                 (long long)wanted + own, most);
        return cannot(code, why, err);
    }
    if ((int64_t)wanted + own <= FREE_SHARED_BYTES)
        return CB_OK;
    return CB__CUDA_DID(device, err, cuFuncSetAttribute, b->function,
                        CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, (int)wanted);
}

/* Two launches are on a multiprocessor at once only where its memory is split alike for both,
 * between shared memory and first cache: else it is emptied in between. Left to itself the driver
 * goes by each kernel's need, and steps of several shapes lost more than they won (llama 8B: 1763
 * us, 1529 split alike, 1634 launched plainly; H200, 2026-11). Code without shared memory was left
 * the split of the kernel before it in some batches, and so a cache for fewer loads in flight. */
static cb_status split_memory(cb__device *device, const cb__code *code, const built *b,
                              cb_error *err)
{
    int own = 0;
    if (!code->impl->device->overlaps)
        return CB_OK;
    cb_status status =
        CB__CUDA_DID(device, err, cuFuncGetAttribute, &own, CB__CU_FUNC_SHARED_BYTES, b->function);
    if (status != CB_OK)
        return status;
    bool shares = own > 0 || b->geometry.shared_bytes > 0;
    return CB__CUDA_DID(device, err, cuFuncSetAttribute, b->function, CB__CU_FUNC_SHARED_PERCENT,
                        shares ? 100 : 0);
}

static cb_status find_entry(cb__device *device, const cb__code *code, built *b, cb_error *err)
{
    const char *entry = code->impl->device->entry;
    cb__cu_result result = device->driver.cuModuleGetFunction(&b->function, b->module, entry);
    if (result == NOT_FOUND)
        return cb_error_set(err, CB_USAGE, "%s/%s: its source has no extern \"C\" __global__ '%s'",
                            code->kernel->name, code->impl->name, entry);
    return cb__cuda_did(device, result, "cuModuleGetFunction", err);
}

static cb_status load(cb__device *device, const cb__code *code, built *b, cb_error *err)
{
    const void *image = NULL;
    cb_status status = geometry_of(device, code, &b->geometry, err);
    if (status == CB_OK)
        status = image_of(device, code, &image, err);
    if (status == CB_OK)
        status = cb__cuda_module_load(&device->driver, code->kernel->name, image, &b->module, err);
    if (status == CB_OK)
        status = find_entry(device, code, b, err);
    if (status == CB_OK)
        status = check_threads(device, code, b, err);
    if (status == CB_OK)
        status = allow_shared(device, code, b, err);
    return status == CB_OK ? split_memory(device, code, b, err) : status;
}

cb_status cb__cuda_build(cb__device *device, cb__code *code, cb_error *err)
{
    const cb_impl *impl = code->impl;
    code->built = NULL;
    if (!impl->device)
        return cb_error_set(err, CB_USAGE, "%s/%s is no code for a GPU", code->kernel->name,
                            impl->name);
    if (impl->device->least > device->capability)
        return cb_error_set(
            err, CB_UNAVAILABLE, "%s/%s needs compute capability %d.%d; cuda:%d has %d.%d",
            code->kernel->name, impl->name, impl->device->least / 10, impl->device->least % 10,
            device->ordinal, device->capability / 10, device->capability % 10);
    built *b = calloc(1, sizeof *b);
    if (!b)
        return cb_error_set(err, CB_NO_MEMORY, "%s: no memory for its code", code->kernel->name);
    cb_status status = cb__cuda_enter(device, err);
    if (status == CB_OK)
        status = load(device, code, b, err);
    code->built = b;
    if (status != CB_OK)
        cb__cuda_unbuild(device, code);
    return status;
}

void cb__cuda_unbuild(cb__device *device, cb__code *code)
{
    built *b = code->built;
    if (!b)
        return;
    if (b->module)
        device->driver.cuModuleUnload(b->module);
    free(b);
    code->built = NULL;
}

/* ---- launching ---- */

/* The driver reads its arguments through pointers, and copies them: they may lie where they are. */
static void arguments_of(const cb__launch *launch, void *arguments[ARGUMENTS_MAX])
{
    const cb__code *code = launch->code;
    const cb_kernel *k = code->kernel;
    int n = 0;
    for (int i = 0; i < k->noperands; i++)
        arguments[n++] = (void *)(uintptr_t)&launch->operands[i];
    for (int i = 0; i < k->ndims; i++)
        arguments[n++] = (void *)(uintptr_t)&code->problem.shape[i];
    for (int i = 0; i < k->nparams; i++)
        if (is_number(&k->params[i]))
            arguments[n++] = (void *)(uintptr_t)&code->problem.params[i];
}

/* One launch after another: it may begin when all blocks of that one are there, and waits in its
 * own code for that one's end (overlaps in kernel.h). */
static cb_status enqueue_overlapping(cb__device *device, const built *b, const cb_geometry *g,
                                     void **arguments, cb_error *err)
{
    cb__cu_launch_attribute early = {.id = CB__CU_PROGRAMMATIC_SERIALIZATION, .value.allowed = 1};
    const cb__cu_launch_config config = {.grid_x = g->grid[0],
                                         .grid_y = g->grid[1],
                                         .grid_z = g->grid[2],
                                         .block_x = g->block[0],
                                         .block_y = g->block[1],
                                         .block_z = g->block[2],
                                         .shared_bytes = g->shared_bytes,
                                         .stream = device->stream,
                                         .attributes = &early,
                                         .count = 1};
    return CB__CUDA_DID(device, err, cuLaunchKernelEx, &config, b->function, arguments, NULL);
}

bool cb__cuda_can_overlap(const cb__device *device)
{
    return !device->plain && device->driver.cuLaunchKernelEx &&
           device->driver.version >= OVERLAP_DRIVER && device->capability >= OVERLAP_CAPABILITY;
}

static bool overlaps(const cb__device *device, const cb__launch *launch)
{
    return launch->code && launch->code->impl->device->overlaps && cb__cuda_can_overlap(device);
}

bool cb__cuda_overlaps(const cb__device *device, const cb__launch *launches, int n)
{
    for (int i = 0; i < n; i++)
        if (overlaps(device, &launches[i]))
            return true;
    return false;
}

static cb_status enqueue(cb__device *device, const cb__launch *launch, bool after_launch,
                         cb_error *err)
{
    void *arguments[ARGUMENTS_MAX];
    if (!launch->code) {
        cb_status status = cb__cuda_support_load(device, err);
        return status != CB_OK ? status
                               : CB__CUDA_DID(device, err, cuLaunchKernel, device->support.empty, 1,
                                              1, 1, 1, 1, 1, 0, device->stream, NULL, NULL);
    }
    built *b = launch->code->built;
    if (!b)
        return cb_error_set(err, CB_INTERNAL, "%s was not built", launch->code->kernel->name);
    /* What was built may serve another shape than the one it was built for, with a greater need. */
    const cb__code *code = launch->code;
    cb_geometry g;
    cb_status status = geometry_of(device, code, &g, err);
    if (status != CB_OK)
        return status;
    const uint32_t allowed = b->geometry.shared_bytes;
    if (g.shared_bytes > allowed) {
        b->geometry.shared_bytes = g.shared_bytes;
        status = allow_shared(device, code, b, err);
        if (status != CB_OK) {
            b->geometry.shared_bytes = allowed;
            return status;
        }
    }
    arguments_of(launch, arguments);
    if (after_launch && overlaps(device, launch))
        return enqueue_overlapping(device, b, &g, arguments, err);
    return CB__CUDA_DID(device, err, cuLaunchKernel, b->function, g.grid[0], g.grid[1], g.grid[2],
                        g.block[0], g.block[1], g.block[2], g.shared_bytes, device->stream,
                        arguments, NULL);
}

cb_status cb__cuda_enqueue(cb__device *device, const cb__launch *launch, cb_error *err)
{
    const bool after_launch = device->after_launch;
    cb_status status = cb__cuda_enter(device, err);
    if (status == CB_OK)
        status = enqueue(device, launch, after_launch, err);
    device->after_launch = status == CB_OK;
    return status;
}
