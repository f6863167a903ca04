#include "kernel/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum { TEXT_MAX = 512 };
#define FLOPS_MAX 1e18

cb_problem cb__case_problem(const cb__case *c)
{
    return (cb_problem){c->shape, c->params};
}

cb__code cb__case_code(const cb__case *c)
{
    return (cb__code){.kernel = c->kernel,
                      .impl = c->impl,
                      .problem = cb__case_problem(c),
                      .tunables = c->tunables,
                      .cost = c->cost};
}

const char *cb__type_name(cb_type type)
{
    static const char *const names[] = {"u8",  "i8",  "u16", "f16", "bf16",
                                        "i32", "u32", "f32", "f64", "u64"};
    return names[type];
}

size_t cb__type_bytes(cb_type type)
{
    static const unsigned char sizes[] = {1, 1, 2, 2, 2, 4, 4, 4, 8, 8};
    return sizes[type];
}

const char *cb__role_name(cb_role role)
{
    static const char *const names[] = {"weight", "stream", "input", "output", "inout", "scratch"};
    return names[role];
}

const char *cb__isa_name(unsigned isa)
{
    if (isa & CB_ISA_CUDA)
        return "cuda";
    if (isa & CB_ISA_AVX512_VNNI)
        return "avx512+vnni";
    if (isa & CB_ISA_AVX512)
        return "avx512";
    return isa & CB_ISA_AVX2 ? "avx2" : "portable";
}

void cb__choice_text(const cb_choice *choice, int64_t value, cb__buf *out)
{
    if (choice->words)
        cb__buf_puts(out, choice->words[value]);
    else
        cb__buf_printf(out, "%" PRId64, value);
}

/* ---- values of parameters and tunables ---- */

static cb_status choice_value(const cb_choice *c, const char *text, int64_t *value, cb_error *err)
{
    if (c->words) {
        size_t n = 0;
        for (; c->words[n]; n++) {
            if (strcmp(c->words[n], text) == 0) {
                *value = (int64_t)n;
                return CB_OK;
            }
        }
        char what[80];
        snprintf(what, sizeof what, "value of %s", c->name);
        return cb__unknown(err, what, text, c->words, n);
    }
    int64_t min = c->values ? INT64_MIN : c->min;
    int64_t max = c->values ? INT64_MAX : c->max;
    cb_status status = cb__parse_i64(text, c->name, min, max, value, err);
    if (status != CB_OK || !c->values)
        return status;
    cb__buf valid = CB__BUF_INIT;
    for (int i = 0; i < c->count; i++) {
        if (c->values[i] == *value) {
            cb__buf_fini(&valid);
            return CB_OK;
        }
        cb__buf_printf(&valid, "%s%" PRId64, i ? ", " : "", c->values[i]);
    }
    status = cb_error_set(err, CB_USAGE, "%s=%s is not offered; valid: %s", c->name, text,
                          cb__buf_text(&valid));
    cb__buf_fini(&valid);
    return status;
}

static cb_status choices_parse(const char *what, const cb_choice *choices, int n, char *list,
                               int64_t *values, unsigned *spelled, cb_error *err)
{
    for (char *next = list; next;) {
        char *item = strsep(&next, ",");
        char *equals = strchr(item, '=');
        if (!equals)
            return cb_error_set(err, CB_USAGE, "%s '%s' must be written name=value", what, item);
        *equals = '\0';
        int i = 0;
        while (i < n && strcmp(choices[i].name, item) != 0)
            i++;
        if (i == n) {
            const char *valid[CB_PARAMS_MAX + CB_TUNABLES_MAX];
            for (int j = 0; j < n; j++)
                valid[j] = choices[j].name;
            if (n == 0)
                return cb_error_set(err, CB_USAGE, "unknown %s '%s'; this one has none", what,
                                    item);
            return cb__unknown(err, what, item, valid, (size_t)n);
        }
        if (*spelled & (1u << i))
            return cb_error_set(err, CB_USAGE, "%s '%s' is given twice", what, item);
        *spelled |= 1u << i;
        cb_status status = choice_value(&choices[i], equals + 1, &values[i], err);
        if (status != CB_OK)
            return status;
    }
    return CB_OK;
}

static void presets(const cb_choice *choices, int n, int64_t *values)
{
    for (int i = 0; i < n; i++)
        values[i] = choices[i].preset;
}

/* ---- the implementation ---- */

/* Compute capability; 0: not known, or no GPU. */
static int capability_of(unsigned isa)
{
    return (int)(isa >> CB__ISA_CAPABILITY_SHIFT);
}

/* Whether it is code for GPUs later than this one. */
static bool is_for_later(const cb_impl *impl, unsigned isa)
{
    return impl->device && capability_of(isa) && impl->device->least > capability_of(isa);
}

bool cb__impl_runs(const cb_impl *impl, unsigned isa)
{
    return (impl->isa & ~isa) == 0 && (impl->isa & CB_ISA_CUDA) == (isa & CB_ISA_CUDA) &&
           !is_for_later(impl, isa);
}

unsigned cb__isa_of(const cb__device_info *device, unsigned asked)
{
    return device->isa & CB_ISA_CUDA ? device->isa : asked;
}

static bool covers(const cb_impl *impl, const cb__case *c)
{
    cb_problem problem = cb__case_problem(c);
    return !impl->covers || impl->covers(&problem);
}

static bool runs_here(const cb__case *c, const cb_impl *impl, unsigned isa)
{
    return cb__impl_runs(impl, isa) && covers(impl, c);
}

static cb_status needs_more(const cb_kernel *k, const cb_impl *impl, unsigned isa, cb_error *err)
{
    int has = capability_of(isa);
    if (is_for_later(impl, isa))
        return cb_error_set(err, CB_UNAVAILABLE,
                            "implementation '%s' of %s needs compute capability %d.%d; this "
                            "device has %d.%d",
                            impl->name, k->name, impl->device->least / 10, impl->device->least % 10,
                            has / 10, has % 10);
    return cb_error_set(err, CB_UNAVAILABLE,
                        "implementation '%s' of %s needs %s; this machine has %s", impl->name,
                        k->name, cb__isa_name(impl->isa), cb__isa_name(isa));
}

/* Of no implementation that was named. One that only the device is too old for is what is told. */
static cb_status none_runs(const cb__case *c, unsigned isa, cb_error *err)
{
    const cb_kernel *k = c->kernel;
    for (int i = 0; i < k->nimpls; i++)
        if (is_for_later(&k->impls[i], isa) && covers(&k->impls[i], c))
            return needs_more(k, &k->impls[i], isa, err);
    return cb_error_set(err, CB_UNAVAILABLE,
                        "no implementation of %s covers these parameters on this machine (%s)",
                        k->name, cb__isa_name(isa));
}

static cb_status impl_choose(cb__case *c, const char *name, unsigned isa, cb_error *err)
{
    const cb_kernel *k = c->kernel;
    const char *valid[32];
    for (int i = 0; i < k->nimpls; i++) {
        const cb_impl *impl = &k->impls[i];
        valid[i] = impl->name;
        if (name ? strcmp(name, impl->name) != 0 : !runs_here(c, impl, isa))
            continue;
        if (!cb__impl_runs(impl, isa))
            return needs_more(k, impl, isa, err);
        if (!runs_here(c, impl, isa))
            return cb_error_set(err, CB_USAGE,
                                "implementation '%s' of %s does not cover these parameters", name,
                                k->name);
        c->impl = impl;
        return CB_OK;
    }
    return name ? cb__unknown(err, "implementation", name, valid, (size_t)k->nimpls)
                : none_runs(c, isa, err);
}

/* ---- the shape ---- */

static cb_status dim_value(const cb_kernel *k, int i, const char *text, int64_t *value,
                           cb_error *err)
{
    const cb_dim *d = &k->dims[i];
    char what[128];
    snprintf(what, sizeof what, "%s of %s", d->name, k->name);
    cb_status status = cb__parse_i64(text, what, 1, d->max, value, err);
    if (status == CB_OK && *value % d->multiple_of != 0)
        return cb_error_set(err, CB_USAGE,
                            "%s must be a multiple of %" PRId64 ", %" PRId64 " is not", what,
                            d->multiple_of, *value);
    return status;
}

static cb_status shape_rule(const cb_kernel *k, const char *text, cb_error *err)
{
    cb__buf rule = CB__BUF_INIT;
    for (int i = 0; i < k->ndims; i++)
        cb__buf_printf(&rule, "%s%s", i ? "x" : "", k->dims[i].name);
    cb_status status = cb_error_set(
        err, CB_USAGE, "shape '%s' of %s must be %s (or %s=...): %d integer%s", text, k->name,
        cb__buf_text(&rule), k->dims[0].name, k->ndims, k->ndims > 1 ? "s" : "");
    cb__buf_fini(&rule);
    return status;
}

static cb_status shape_named(const cb_kernel *k, const char *text, char *list, int64_t *shape,
                             cb_error *err)
{
    unsigned seen = 0;
    for (char *next = list; next;) {
        char *item = strsep(&next, ",");
        char *equals = strchr(item, '=');
        if (!equals)
            return shape_rule(k, text, err);
        *equals = '\0';
        const char *valid[CB_DIMS_MAX];
        int found = -1;
        for (int i = 0; i < k->ndims; i++) {
            valid[i] = k->dims[i].name;
            found = strcmp(valid[i], item) == 0 ? i : found;
        }
        if (found < 0)
            return cb__unknown(err, "dimension", item, valid, (size_t)k->ndims);
        if (seen & (1u << found))
            return cb_error_set(err, CB_USAGE, "dimension '%s' is given twice in '%s'", item, text);
        seen |= 1u << found;
        cb_status status = dim_value(k, found, equals + 1, &shape[found], err);
        if (status != CB_OK)
            return status;
    }
    return seen == (1u << k->ndims) - 1 ? CB_OK : shape_rule(k, text, err);
}

static cb_status shape_parse(const cb_kernel *k, const char *text, int64_t *shape, cb_error *err)
{
    bool given = text && *text;
    if (k->ndims == 0)
        return given ? cb_error_set(err, CB_USAGE, "%s has no shape; leave --shape out", k->name)
                     : CB_OK;
    if (!given) {
        cb__buf names = CB__BUF_INIT;
        for (int i = 0; i < k->ndims; i++)
            cb__buf_printf(&names, "%s%s", i ? "x" : "", k->dims[i].name);
        cb_status status = cb_error_set(err, CB_USAGE, "%s needs a shape: --shape %s", k->name,
                                        cb__buf_text(&names));
        cb__buf_fini(&names);
        return status;
    }
    char list[TEXT_MAX];
    if (snprintf(list, sizeof list, "%s", text) >= (int)sizeof list)
        return cb_error_set(err, CB_USAGE, "shape is longer than %d bytes", TEXT_MAX - 1);
    if (strchr(list, '='))
        return shape_named(k, text, list, shape, err);
    char *next = list;
    for (int i = 0; i < k->ndims; i++) {
        char *item = strsep(&next, "x");
        if (!item)
            return shape_rule(k, text, err);
        cb_status status = dim_value(k, i, item, &shape[i], err);
        if (status != CB_OK)
            return status;
    }
    return next ? shape_rule(k, text, err) : CB_OK;
}

/* A byte count that is no count would be a bandwidth, and a record. */
static cb_status check_cost(const cb__case *c, cb_error *err)
{
    const cb_cost *cost = &c->cost;
    if (cost->bytes_read >> 46 || cost->bytes_written >> 46)
        return cb_error_set(err, CB_USAGE, "%s: its cost is over 64 TiB a launch", c->kernel->name);
    if (!(cost->flops >= 0 && cost->flops <= FLOPS_MAX))
        return cb_error_set(err, CB_USAGE, "%s: its cost is %g operations, not 0 to %g",
                            c->kernel->name, cost->flops, FLOPS_MAX);
    return CB_OK;
}

static cb_status sizes(cb__case *c, cb_error *err)
{
    const cb_kernel *k = c->kernel;
    cb_problem problem = cb__case_problem(c);
    char why[300] = "the shape is refused";
    if (k->check && k->check(&problem, why, sizeof why) != 0)
        return cb_error_set(err, CB_USAGE, "%s: %s", k->name, why);
    k->cost(&problem, &c->cost);
    for (int i = 0; i < k->noperands; i++) {
        c->logical_bytes[i] = k->bytes(&problem, i);
        c->packed_bytes[i] = c->impl->packed_bytes ? c->impl->packed_bytes(&problem, c->tunables, i)
                                                   : c->logical_bytes[i];
        /* 2^46 keeps every sum over a ring far from overflow. */
        if (c->logical_bytes[i] >> 46 || c->packed_bytes[i] >> 46)
            return cb_error_set(err, CB_USAGE, "%s: operand %s would take over 64 TiB", k->name,
                                k->operands[i].name);
    }
    return check_cost(c, err);
}

/* ---- the whole ---- */

static cb_status variant_parse(const cb__suite *suite, const char *variant, const char *shape,
                               bool with_shape, unsigned isa, cb__case *out, cb_error *err)
{
    char text[TEXT_MAX];
    *out = (cb__case){0};
    if (snprintf(text, sizeof text, "%s", variant) >= (int)sizeof text)
        return cb_error_set(err, CB_USAGE, "variant is longer than %d bytes", TEXT_MAX - 1);
    char *tunables = strchr(text, ':');
    if (tunables)
        *tunables++ = '\0';
    char *impl = strchr(text, '/');
    if (impl)
        *impl++ = '\0';
    char *params = strchr(text, '@');
    if (params)
        *params++ = '\0';
    out->kernel = cb__suite_find(suite, text, &out->module);
    if (!out->kernel)
        return cb__suite_unknown(suite, text, err);
    const cb_kernel *k = out->kernel;
    presets(k->params, k->nparams, out->params);
    cb_status status = CB_OK;
    if (params)
        status = choices_parse("parameter", k->params, k->nparams, params, out->params,
                               &out->spelled, err);
    if (status == CB_OK && with_shape)
        status = shape_parse(k, shape, out->shape, err);
    if (status == CB_OK)
        status = impl_choose(out, impl, isa, err);
    if (status != CB_OK)
        return status;
    presets(out->impl->tunables, out->impl->ntunables, out->tunables);
    unsigned spelled = 0;
    if (tunables)
        status = choices_parse("tunable", out->impl->tunables, out->impl->ntunables, tunables,
                               out->tunables, &spelled, err);
    return status;
}

bool cb__case_overlaps(const cb__case *c, const cb__device_info *device)
{
    return device->overlaps && c->impl->device && c->impl->device->overlaps;
}

bool cb__kernel_streams(const cb_kernel *kernel)
{
    bool streams = false;
    for (int i = 0; i < kernel->noperands; i++)
        streams = streams || kernel->operands[i].role == CB_WEIGHT ||
                  kernel->operands[i].role == CB_STREAM;
    return streams;
}

cb_status cb__case_parse_variant(const cb__suite *suite, const char *variant, unsigned isa,
                                 cb__case *out, cb_error *err)
{
    return variant_parse(suite, variant, NULL, false, isa, out, err);
}

typedef struct parse_call {
    const cb__suite *suite;
    const char *variant, *shape;
    unsigned isa;
    cb__case *out;
} parse_call;

static cb_status parse_call_run(void *arg, cb_error *err)
{
    parse_call *call = arg;
    cb_status status =
        variant_parse(call->suite, call->variant, call->shape, true, call->isa, call->out, err);
    return status == CB_OK ? sizes(call->out, err) : status;
}

cb_status cb__case_parse(const cb__suite *suite, const char *variant, const char *shape,
                         unsigned isa, cb__case *out, cb_error *err)
{
    parse_call call = {suite, variant, shape, isa, out};
    const cb__module *module = NULL;
    char name[TEXT_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(variant, "@/:"), variant);
    /* A user's check, bytes and cost run in a child first: they may crash there, not here. */
    if (suite->rehearse && cb__suite_find(suite, name, &module) && !module->builtin) {
        char what[TEXT_MAX + 64];
        snprintf(what, sizeof what, "sizing %.200s for shape %.100s", variant, shape ? shape : "");
        cb_status status = cb__rehearse(parse_call_run, &call, 10, what, err);
        if (status != CB_OK)
            return status;
    }
    return parse_call_run(&call, err);
}

static void choices_text(const cb_choice *choices, const int64_t *values, int n, char first,
                         cb__buf *out)
{
    for (int i = 0; i < n; i++) {
        cb__buf_printf(out, "%c%s=", i ? ',' : first, choices[i].name);
        cb__choice_text(&choices[i], values[i], out);
    }
}

void cb__case_variant_text(const cb__case *c, cb__buf *out)
{
    cb__buf_puts(out, c->kernel->name);
    choices_text(c->kernel->params, c->params, c->kernel->nparams, '@', out);
    cb__buf_printf(out, "/%s", c->impl->name);
    choices_text(c->impl->tunables, c->tunables, c->impl->ntunables, ':', out);
}

void cb__case_shape_text(const cb__case *c, cb__buf *out)
{
    for (int i = 0; i < c->kernel->ndims; i++)
        cb__buf_printf(out, "%s%" PRId64, i ? "x" : "", c->shape[i]);
}
