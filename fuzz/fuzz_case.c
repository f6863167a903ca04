/* Any text as a variant and a shape of a fixed suite: refused with a message, or a case whose own
 * spelling is the same case. The input is split at its first line feed. */
#include <stdlib.h>

#include "../tests/toy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    require(text);
    if (size)
        memcpy(text, data, size);
    char *shape = strchr(text, '\n');
    if (shape)
        *shape++ = '\0';
    cb__case c, again;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__case_parse(&toy_suite, text, shape, CB_ISA_AVX2, &c, &err);
    require(status == err.status && (status == CB_OK) == !*err.message);
    if (status == CB_OK) {
        cb__buf variant = CB__BUF_INIT, dims = CB__BUF_INIT;
        cb__case_variant_text(&c, &variant);
        cb__case_shape_text(&c, &dims);
        require(cb__case_parse(&toy_suite, cb__buf_text(&variant), cb__buf_text(&dims), CB_ISA_AVX2,
                               &again, &err) == CB_OK);
        require(again.impl == c.impl && !memcmp(again.shape, c.shape, sizeof c.shape) &&
                !memcmp(again.params, c.params, sizeof c.params) &&
                !memcmp(again.tunables, c.tunables, sizeof c.tunables));
        cb__buf_fini(&variant);
        cb__buf_fini(&dims);
    }
    free(text);
    return 0;
}
