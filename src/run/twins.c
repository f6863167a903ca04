#include "run/twins.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/case.h"

/* Every value of every tunable of the two best implementations that run here, the rest at their
 * defaults, then the best pairs: which of them wins changes from machine to machine, which is why
 * none is fixed. */
static int add(char (*texts)[96], int n, const char *kernel, const cb_impl *impl,
               const char *tunables)
{
    if (n < CB__TWINS_MAX)
        snprintf(texts[n++], 96, "%s/%s%s%s", kernel, impl->name, *tunables ? ":" : "", tunables);
    return n;
}

/* On a GPU as many checksums as there are warps: to make them one would cost as much as reading 9
 * MB. */
static const char *definition(const char *kernel, unsigned isa)
{
    bool many = isa & CB_ISA_CUDA && strcmp(kernel, "twin_read") == 0;
    return many ? "twin_read@slices=4096" : kernel;
}

static bool fits(const cb__suite *suite, const char *kernel, const cb_impl *impl, unsigned isa)
{
    char text[96];
    cb__case c;
    snprintf(text, sizeof text, "%s/%s", kernel, impl->name);
    return cb__case_parse_variant(suite, text, isa, &c, NULL) == CB_OK;
}

int cb__twin_candidates(const cb__suite *suite, const char *kernel, unsigned isa, char (*texts)[96])
{
    const cb_kernel *k = cb__suite_find(suite, kernel, NULL);
    int n = 0, impls = 0;
    kernel = definition(kernel, isa);
    for (int i = 0; k && i < k->nimpls && impls < 2; i++) {
        const cb_impl *impl = &k->impls[i];
        if (!fits(suite, kernel, impl, isa))
            continue;
        impls++;
        n = add(texts, n, kernel, impl, "");
        for (int t = 0; t < impl->ntunables; t++) {
            const cb_choice *c = &impl->tunables[t];
            for (int v = 0; v < c->count; v++) {
                char text[64];
                snprintf(text, sizeof text, "%s=%" PRId64, c->name, c->values[v]);
                if (c->values[v] != c->preset)
                    n = add(texts, n, kernel, impl, text);
            }
        }
    }
    return n;
}
