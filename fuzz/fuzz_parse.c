/* Any text through the number readers and the nearest word. What is accepted must be what strtoll
 * and strtod make of it; what is refused must leave the value alone. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void integer(const char *text)
{
    int64_t value = 77;
    cb_error err = CB_ERROR_INIT;
    if (cb__parse_i64(text, "--n", INT64_MIN, INT64_MAX, &value, &err) != CB_OK) {
        require(value == 77 && err.status == CB_USAGE && strlen(err.message) > 0);
        return;
    }
    char *end;
    errno = 0;
    __int128 expected = strtoll(text, &end, 10);
    require(!errno && end != text);
    if (*end)
        expected <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
    require(expected == value);
}

static void real(const char *text)
{
    double value = 77;
    cb_error err = CB_ERROR_INIT;
    if (cb__parse_real(text, "--x", -DBL_MAX, DBL_MAX, &value, &err) != CB_OK) {
        require(value == 77 && err.status == CB_USAGE && strlen(err.message) > 0);
        return;
    }
    char *end;
    double expected = strtod(text, &end);
    require(isfinite(value) && (*end == '%' ? expected / 100 : expected) == value);
    require(!end[*end == '%']);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"gemv_q4", "stream_read", "alu_chain", "cold", "", "a"};
    char *text = calloc(size + 1, 1);
    require(text);
    if (size)
        memcpy(text, data, size);
    integer(text);
    real(text);
    const char *own[] = {text, "x"};
    cb_error err = CB_ERROR_INIT;
    require(cb__unknown(&err, "word", text, words, 6) == CB_USAGE);
    if (strlen(text) <= 64)
        require(cb__nearest(text, own, 2) == text);
    free(text);
    return 0;
}
