#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "host/topology.h"
#include "kernel/case.h"
#include "kernel/export.h"
#include "kernel/shapes.h"

typedef struct kernels_options {
    cb__common_options common; /* only help is offered */
    cb__option_list files;
    cb__option_list shapes;
    const char *export_folder;
} kernels_options;

static const cb__option options[] = {
    {.name = "kernel",
     .kind = CB__OPT_LIST,
     .offset = offsetof(kernels_options, files),
     .arg = "FILE.so",
     .help = "also list the kernels of this module"},
    {.name = "shape",
     .kind = CB__OPT_LIST,
     .offset = offsetof(kernels_options, shapes),
     .arg = "SHAPE",
     .help = "with NAME: bytes and flops of this shape"},
    {.name = "export",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(kernels_options, export_folder),
     .arg = "DIR",
     .help = "write the built-in modules there, with an index of their build and source ids, for "
             "coldbench gate; prints nothing"},
    {.name = "help",
     .letter = 'h',
     .kind = CB__OPT_FLAG,
     .offset = offsetof(cb__common_options, help),
     .help = "this page"},
};

static void list_all(const cb__suite *suite, cb__buf *out)
{
    for (int i = 0; i < suite->nmodules; i++)
        for (int j = 0; j < suite->modules[i]->table->nkernels; j++) {
            const cb_kernel *k = suite->modules[i]->table->kernels[j];
            cb__buf_printf(out, "%-14s %s\n", k->name, k->summary);
        }
    int n = 0;
    const cb__shape_list *lists = cb__shape_lists(&n);
    cb__buf_puts(out, "\nshape lists (--shapes):\n");
    for (int i = 0; i < n; i++) {
        cb__buf_printf(out, "%-14s %s:", lists[i].name, lists[i].model);
        for (int j = 0; j < CB__SHAPES_MAX && lists[i].shapes[j].shape; j++)
            cb__buf_printf(out, " %s (%s)", lists[i].shapes[j].shape, lists[i].shapes[j].what);
        cb__buf_puts(out, "\n");
    }
}

static void one_choice(const cb_choice *c, cb__buf *out)
{
    cb__buf_printf(out, "    %s = ", c->name);
    for (int i = 0; c->words && c->words[i]; i++)
        cb__buf_printf(out, "%s%s", i ? ", " : "", c->words[i]);
    for (int i = 0; c->values && i < c->count; i++)
        cb__buf_printf(out, "%s%" PRId64, i ? ", " : "", c->values[i]);
    if (!c->words && !c->values)
        cb__buf_printf(out, "%" PRId64 " to %" PRId64, c->min, c->max);
    cb__buf_puts(out, " (default ");
    cb__choice_text(c, c->preset, out);
    cb__buf_printf(out, "): %s\n", c->help);
}

static void definition(const cb_kernel *k, cb__buf *out)
{
    cb__buf_printf(out, "%s: %s\n%s\n", k->name, k->summary, k->formula);
    cb__buf_puts(out, k->ndims ? "\nshape:\n" : "\nno shape\n");
    for (int i = 0; i < k->ndims; i++)
        cb__buf_printf(out, "    %s: %s; a multiple of %" PRId64 ", at most %" PRId64 "\n",
                       k->dims[i].name, k->dims[i].help, k->dims[i].multiple_of, k->dims[i].max);
    if (k->nparams)
        cb__buf_puts(out, "parameters (@):\n");
    for (int i = 0; i < k->nparams; i++)
        one_choice(&k->params[i], out);
    cb__buf_puts(out, "operands:\n");
    for (int i = 0; i < k->noperands; i++)
        cb__buf_printf(out, "    %-10s %-8s %-5s %s\n", k->operands[i].name,
                       cb__role_name(k->operands[i].role), cb__type_name(k->operands[i].type),
                       k->operands[i].layout);
}

static void implementations(const cb_kernel *k, unsigned isa, cb__buf *out)
{
    cb__buf_puts(out, "implementations (/), best first:\n");
    for (int i = 0; i < k->nimpls; i++) {
        const cb_impl *impl = &k->impls[i];
        const char *where = impl->isa & CB_ISA_CUDA ? " (NVIDIA GPUs)"
                            : impl->isa & ~isa      ? " (not on this machine)"
                                                    : "";
        cb__buf_printf(out, "  %s%s: %s\n", impl->name, where, impl->help);
        for (int t = 0; t < impl->ntunables; t++)
            one_choice(&impl->tunables[t], out);
    }
}

static cb_status costs(const cb__suite *suite, const char *variant, const char *shape, unsigned isa,
                       cb__buf *out, cb_error *err)
{
    cb__case c;
    cb_status status = cb__case_parse(suite, variant, shape, isa, &c, err);
    if (status != CB_OK)
        return status;
    cb__case_variant_text(&c, out);
    cb__buf_puts(out, " ");
    cb__case_shape_text(&c, out);
    cb__buf_printf(out,
                   ": reads %" PRIu64 " bytes, writes %" PRIu64 " bytes, %.0f flops a launch\n",
                   c.cost.bytes_read, c.cost.bytes_written, c.cost.flops);
    for (int i = 0; i < c.kernel->noperands; i++)
        cb__buf_printf(out, "    %-10s %" PRIu64 " bytes, packed %" PRIu64 "\n",
                       c.kernel->operands[i].name, c.logical_bytes[i], c.packed_bytes[i]);
    return CB_OK;
}

/* A shape that shows the sizes where none is given: every dimension at 4096, or its multiple of it.
 */
static void typical_shape(const cb_kernel *k, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < k->ndims && at < size; i++) {
        int64_t step = k->dims[i].multiple_of;
        int64_t value = (4096 + step - 1) / step * step;
        if (value > k->dims[i].max)
            value = k->dims[i].max / step * step;
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? "x" : "", value);
    }
}

static cb_status describe(const cb__suite *suite, const char *variant,
                          const cb__option_list *shapes, cb__buf *out, cb_error *err)
{
    cb__case c;
    unsigned own = cb__cli_isa(NULL), isa = own;
    /* What this processor has no code for may have some for a GPU. */
    if (cb__case_parse_variant(suite, variant, isa, &c, NULL) == CB_UNAVAILABLE)
        isa = CB_ISA_CUDA;
    cb_status status = cb__case_parse_variant(suite, variant, isa, &c, err);
    if (status != CB_OK)
        return status;
    definition(c.kernel, out);
    implementations(c.kernel, own, out);
    char typical[128];
    typical_shape(c.kernel, typical, sizeof typical);
    cb__buf_puts(out, "\n");
    if (shapes->count == 0)
        return costs(suite, variant, typical, isa, out, err);
    for (int i = 0; i < shapes->count && status == CB_OK; i++)
        status = costs(suite, variant, shapes->items[i], isa, out, err);
    return status;
}

static int kernels(int argc, char **argv)
{
    kernels_options o = {0};
    cb__suite suite = {0};
    cb__buf out = CB__BUF_INIT;
    cb_error err = CB_ERROR_INIT;
    const char **names = calloc((size_t)argc + 1, sizeof *names);
    int n = 0, code = 5;
    bool done = true;
    if (names)
        cb__cli_parse(&cb__verb_kernels, &o, argc, argv, names, &n, &done, &code);
    if (done)
        goto out;
    if (o.export_folder) {
        cb_status exported = cb__modules_export(o.export_folder, &err);
        code = exported == CB_OK ? 0 : cb__cli_fail(&err);
        goto out;
    }
    cb_status status = cb__suite_open(o.files.items, o.files.count, true, &suite, &err);
    if (status == CB_OK && n == 0)
        list_all(&suite, &out);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = describe(&suite, names[i], &o.shapes, &out, &err);
    code = status == CB_OK ? 0 : cb__cli_fail(&err);
    if (status == CB_OK && (fputs(cb__buf_text(&out), stdout) < 0 || fflush(stdout) != 0)) {
        cb_error_set(&err, CB_IO, "writing standard output: %s", strerror(errno));
        code = cb__cli_fail(&err);
    }
out:
    cb__suite_close(&suite);
    cb__buf_fini(&out);
    free(names);
    return code;
}

const cb__verb cb__verb_kernels = {
    .name = "kernels",
    .summary = "list kernels, or one with its parameters, variants, tunables, operands and costs",
    .usage = "[NAME] [options]",
    .details = "example:\n"
               "  coldbench kernels gemv_q4 --shape 14336x4096\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = kernels,
};
