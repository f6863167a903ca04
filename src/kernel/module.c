#include "kernel/module.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kernel/embedded.h"

static cb_status bad(cb_error *err, const char *origin, const char *why)
{
    return cb_error_set(err, CB_USAGE, "module %s: %s", origin, why);
}

static bool name_ok(const char *name)
{
    if (!name || !*name || strlen(name) > 48)
        return false;
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (!letter)
            return false;
    }
    return true;
}

static bool preset_ok(const cb_choice *c)
{
    if (!c->words && !c->values)
        return c->min <= c->preset && c->preset <= c->max;
    for (int64_t i = 0; c->words ? c->words[i] != NULL : i < c->count; i++)
        if (c->preset == (c->words ? i : c->values[i]))
            return true;
    return false;
}

static cb_status choices_ok(const cb_choice *choices, int n, int max, const char *origin,
                            const char *what, cb_error *err)
{
    if (n < 0 || n > max || (n && !choices))
        return cb_error_set(err, CB_USAGE, "module %s: %s has %d entries; 0 to %d are allowed",
                            origin, what, n, max);
    for (int i = 0; i < n; i++) {
        const cb_choice *c = &choices[i];
        if (!name_ok(c->name) || !c->help)
            return cb_error_set(err, CB_USAGE,
                                "module %s: entry %d of %s needs a name of a-z, 0-9, _ and a help",
                                origin, i, what);
        if ((c->words && c->values) || (c->values && c->count < 1))
            return cb_error_set(err, CB_USAGE,
                                "module %s: %s: give words, or values with count, or min and max",
                                origin, c->name);
        if (!preset_ok(c))
            return cb_error_set(err, CB_USAGE,
                                "module %s: %s: its preset %lld is not one of its values", origin,
                                c->name, (long long)c->preset);
    }
    return CB_OK;
}

static cb_status impl_ok(const cb_impl *impl, const char *origin, cb_error *err)
{
    const cb_device_code *device = impl->device;
    if (!name_ok(impl->name) || !impl->run == !device)
        return bad(err, origin,
                   "an implementation needs a name, and either a run function or device code");
    if (device && (!device->source || !device->entry || !device->geometry))
        return cb_error_set(err, CB_USAGE,
                            "module %s: device code of %s lacks source, entry or geometry", origin,
                            impl->name);
    if (!device != !(impl->isa & CB_ISA_CUDA))
        return cb_error_set(err, CB_USAGE, "module %s: %s: CB_ISA_CUDA goes with device code",
                            origin, impl->name);
    if (device && impl->isa != CB_ISA_CUDA)
        return cb_error_set(err, CB_USAGE,
                            "module %s: %s: CB_ISA_CUDA stands alone: no GPU has a processor's "
                            "instruction sets",
                            origin, impl->name);
    if (impl->packed_bytes && !impl->prepare)
        return bad(err, origin, "an implementation with packed_bytes and no prepare");
    return choices_ok(impl->tunables, impl->ntunables, CB_TUNABLES_MAX, origin, impl->name, err);
}

static cb_status kernel_ok(const cb_kernel *k, const char *origin, cb_error *err)
{
    if (!k || !name_ok(k->name))
        return bad(err, origin, "a kernel without a name of a-z, 0-9, _");
    if (!k->summary || !k->formula || !k->bytes || !k->cost || !k->fill || !k->reference)
        return cb_error_set(
            err, CB_USAGE,
            "module %s: kernel %s needs summary, formula, bytes, cost, fill and reference", origin,
            k->name);
    if (k->ndims < 0 || k->ndims > CB_DIMS_MAX || (k->ndims && !k->dims) || k->noperands < 1 ||
        k->noperands > CB_OPERANDS_MAX || !k->operands)
        return cb_error_set(err, CB_USAGE,
                            "module %s: kernel %s: 0 to %d dims and 1 to %d operands are allowed",
                            origin, k->name, CB_DIMS_MAX, CB_OPERANDS_MAX);
    bool rotates = !k->rotates;
    for (int i = 0; i < k->ndims; i++) {
        const cb_dim *d = &k->dims[i];
        if (!name_ok(d->name) || d->multiple_of < 1 || d->max < d->multiple_of)
            return cb_error_set(err, CB_USAGE,
                                "module %s: kernel %s: dimension %d needs a name, multiple_of >= 1 "
                                "and max >= multiple_of",
                                origin, k->name, i);
        rotates = rotates || strcmp(k->rotates, d->name) == 0;
    }
    if (!rotates)
        return cb_error_set(err, CB_USAGE,
                            "module %s: kernel %s rotates '%s', which is no dimension", origin,
                            k->name, k->rotates);
    bool writes = false;
    for (int i = 0; i < k->noperands; i++) {
        const cb_operand *o = &k->operands[i];
        if (!name_ok(o->name) || !o->layout || o->role > CB_SCRATCH || o->type > CB_U64)
            return cb_error_set(
                err, CB_USAGE, "module %s: kernel %s: operand %d needs name, role, type and layout",
                origin, k->name, i);
        /* Poison is drawn from the range. */
        if (!isfinite(o->lo) || !isfinite(o->hi) || !(o->lo <= o->hi))
            return cb_error_set(err, CB_USAGE,
                                "module %s: kernel %s: operand %d needs finite lo <= hi", origin,
                                k->name, i);
        writes = writes || o->role == CB_OUTPUT || o->role == CB_INOUT;
    }
    if (!writes)
        return cb_error_set(err, CB_USAGE, "module %s: kernel %s writes no operand", origin,
                            k->name);
    if (k->nimpls < 1 || k->nimpls > 32 || !k->impls)
        return cb_error_set(err, CB_USAGE,
                            "module %s: kernel %s has %d implementations; 1 to 32 are allowed",
                            origin, k->name, k->nimpls);
    cb_status status =
        choices_ok(k->params, k->nparams, CB_PARAMS_MAX, origin, "the parameters", err);
    for (int i = 0; i < k->nimpls && status == CB_OK; i++)
        status = impl_ok(&k->impls[i], origin, err);
    return status;
}

cb_status cb__module_validate(const cb_module *table, const char *origin, cb_error *err)
{
    if (!table)
        return bad(err, origin, "cb_module_entry returned NULL");
    if (table->abi != CB_KERNEL_ABI)
        return cb_error_set(err, CB_USAGE,
                            "module %s has ABI version %u, this coldbench needs %u: rebuild it "
                            "against this coldbench's include/coldbench/kernel.h",
                            origin, table->abi, CB_KERNEL_ABI);
    if (table->struct_bytes != sizeof(cb_kernel))
        return cb_error_set(
            err, CB_USAGE,
            "module %s was built with a cb_kernel of %u bytes, this coldbench's has "
            "%zu: rebuild it against this coldbench's include/coldbench/kernel.h",
            origin, table->struct_bytes, sizeof(cb_kernel));
    if (table->nkernels < 1 || table->nkernels > CB__SUITE_MAX || !table->kernels)
        return bad(err, origin, "no kernels in it");
    cb_status status = CB_OK;
    for (int i = 0; i < table->nkernels && status == CB_OK; i++)
        status = kernel_ok(table->kernels[i], origin, err);
    for (int i = 0; i < table->nkernels && status == CB_OK; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(table->kernels[i]->name, table->kernels[j]->name) == 0)
                return cb_error_set(err, CB_USAGE, "module %s: it has kernel '%s' twice", origin,
                                    table->kernels[i]->name);
    return status;
}

static cb_status open_file(const char *origin, cb__dl **out, cb_error *err)
{
    /* dlopen searches the library path for a bare name; a module is a file that the user named. */
    char path[544];
    snprintf(path, sizeof path, "%s%s", strchr(origin, '/') ? "" : "./", origin);
    if (cb__dl_open(path, out, err) == CB_OK)
        return CB_OK;
    if (err)
        err->status = CB_USAGE;
    return CB_USAGE;
}

static cb_status new_module(const char *origin, bool builtin, cb__module **out, cb_error *err)
{
    *out = NULL;
    if (strlen(origin) >= sizeof(((cb__module *)0)->origin))
        return cb_error_set(err, CB_USAGE, "module path is longer than %zu bytes",
                            sizeof(((cb__module *)0)->origin) - 1);
    *out = calloc(1, sizeof **out);
    if (!*out)
        return cb_error_set(err, CB_NO_MEMORY, "module %s: no memory", origin);
    snprintf((*out)->origin, sizeof(*out)->origin, "%s", origin);
    (*out)->builtin = builtin;
    return CB_OK;
}

static cb_status enter(cb__module *module, cb_error *err)
{
    const cb_module *(*entry)(void) = NULL;
    void *symbol = cb__dl_symbol(module->library, "cb_module_entry");
    if (!symbol)
        return bad(err, module->origin,
                   "it exports no function cb_module_entry: it is no coldbench kernel module "
                   "(include/coldbench/kernel.h says what one is)");
    memcpy(&entry, &symbol, sizeof entry);
    module->table = entry();
    return cb__module_validate(module->table, module->origin, err);
}

/* Closes what a failure leaves half open. */
static cb_status finish(cb__module **module, cb_status status, cb_error *err)
{
    if (status == CB_OK)
        status = enter(*module, err);
    if (status != CB_OK) {
        cb__module_close(*module);
        *module = NULL;
    }
    return status;
}

cb_status cb__module_embedded(const char *name, const void **bytes, size_t *size, cb_error *err)
{
    for (int i = 0; i < cb__embedded_module_count; i++) {
        const cb__embedded_module *m = &cb__embedded_modules[i];
        if (strcmp(m->name, name) != 0)
            continue;
        *bytes = m->bytes;
        *size = m->size;
        return CB_OK;
    }
    return cb_error_set(err, CB_INTERNAL, "no embedded module '%s'", name);
}

cb_status cb__module_open_bytes(const char *origin, const void *bytes, size_t size, bool builtin,
                                cb__module **out, cb_error *err)
{
    cb_status status = new_module(origin, builtin, out, err);
    if (status == CB_OK)
        status = cb__dl_open_bytes(origin, bytes, size, &(*out)->library, err);
    return finish(out, status, err);
}

cb_status cb__module_open(const char *origin, bool builtin, cb__module **out, cb_error *err)
{
    const void *bytes = NULL;
    size_t size = 0;
    if (builtin) {
        cb_status status = cb__module_embedded(origin, &bytes, &size, err);
        return status == CB_OK ? cb__module_open_bytes(origin, bytes, size, true, out, err)
                               : status;
    }
    cb_status status = new_module(origin, false, out, err);
    if (status == CB_OK)
        status = open_file(origin, &(*out)->library, err);
    return finish(out, status, err);
}

void cb__module_close(cb__module *module)
{
    if (!module)
        return;
    if (module->library)
        cb__dl_close(module->library);
    free(module);
}

static cb_status try_open(void *arg, cb_error *err)
{
    cb__module *module = NULL;
    cb_status status = cb__module_open(arg, false, &module, err);
    cb__module_close(module);
    return status;
}

static cb_status suite_add(cb__suite *suite, cb__module *module, cb_error *err)
{
    if (suite->nmodules == CB__SUITE_MAX)
        return cb_error_set(err, CB_USAGE, "more than %d modules", CB__SUITE_MAX);
    for (int i = 0; i < module->table->nkernels; i++) {
        const cb__module *other = NULL;
        const char *name = module->table->kernels[i]->name;
        if (cb__suite_find(suite, name, &other))
            return cb_error_set(
                err, CB_USAGE,
                "module %s: its kernel '%s' is in module %s already; rename it, or have "
                "two builds of one kernel compared by coldbench gate",
                module->origin, name, other->origin);
    }
    suite->modules[suite->nmodules++] = module;
    return CB_OK;
}

static cb_status suite_load(cb__suite *suite, const char *origin, bool builtin, cb_error *err)
{
    cb__module *module = NULL;
    cb_status status = cb__module_open(origin, builtin, &module, err);
    if (status == CB_OK)
        status = suite_add(suite, module, err);
    if (status != CB_OK && module)
        cb__module_close(module);
    return status;
}

static cb_status suite_load_file(cb__suite *suite, const char *file, cb_error *err)
{
    char what[600];
    cb_status status = CB_OK;
    snprintf(what, sizeof what, "loading module %s", file);
    if (suite->rehearse)
        status = cb__rehearse(try_open, (void *)(uintptr_t)file, 10, what, err);
    return status == CB_OK ? suite_load(suite, file, false, err) : status;
}

cb_status cb__suite_open(const char *const *files, int nfiles, bool rehearse, cb__suite *suite,
                         cb_error *err)
{
    suite->nmodules = 0;
    suite->rehearse = rehearse;
    cb_status status = CB_OK;
    for (int i = 0; i < cb__embedded_module_count && status == CB_OK; i++)
        status = suite_load(suite, cb__embedded_modules[i].name, true, err);
    for (int i = 0; i < nfiles && status == CB_OK; i++)
        status = suite_load_file(suite, files[i], err);
    if (status != CB_OK)
        cb__suite_close(suite);
    return status;
}

cb_status cb__suite_open_file(const char *file, bool rehearse, cb__suite *suite, cb_error *err)
{
    suite->nmodules = 0;
    suite->rehearse = rehearse;
    return suite_load_file(suite, file, err);
}

void cb__suite_close(cb__suite *suite)
{
    for (int i = 0; i < suite->nmodules; i++)
        cb__module_close(suite->modules[i]);
    suite->nmodules = 0;
}

const cb_kernel *cb__suite_find(const cb__suite *suite, const char *name, const cb__module **module)
{
    for (int i = 0; i < suite->nmodules; i++) {
        const cb_module *table = suite->modules[i]->table;
        for (int j = 0; j < table->nkernels; j++) {
            if (strcmp(table->kernels[j]->name, name) == 0) {
                if (module)
                    *module = suite->modules[i];
                return table->kernels[j];
            }
        }
    }
    return NULL;
}

cb_status cb__suite_unknown(const cb__suite *suite, const char *name, cb_error *err)
{
    const char *valid[CB__SUITE_MAX * 4];
    size_t n = 0;
    for (int i = 0; i < suite->nmodules; i++)
        for (int j = 0; j < suite->modules[i]->table->nkernels && n < CB__SUITE_MAX * 4; j++)
            valid[n++] = suite->modules[i]->table->kernels[j]->name;
    return cb__unknown(err, "kernel", name, valid, n);
}
