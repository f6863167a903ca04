#include "base/parse.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a user's word a message repeats. */
#define SHOWN "'%.100s'"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The power of two that a suffix stands for; -1 for one that is not known. */
static int suffix_shift(const char *suffix)
{
    static const struct {
        const char *text;
        int shift;
    } table[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(suffix, table[i].text))
            return table[i].shift;
    return -1;
}

cb_status cb__parse_i64(const char *text, const char *what, int64_t min, int64_t max,
                        int64_t *value, cb_error *err)
{
    bool negative = text[0] == '-', overflow = false;
    const char *p = text + negative;
    const char *digits = p;
    int64_t result = 0; /* negative or zero on the way: INT64_MIN has no positive twin */
    for (; is_digit(*p); p++) {
        overflow |= __builtin_mul_overflow(result, 10, &result);
        overflow |= __builtin_sub_overflow(result, *p - '0', &result);
    }
    int shift = suffix_shift(p);
    if (p == digits || shift < 0)
        return cb_error_set(err, CB_USAGE,
                            "%s: " SHOWN " is not an integer (digits, then KiB, MiB, GiB or "
                            "nothing)",
                            what, text);
    overflow |= __builtin_mul_overflow(result, INT64_C(1) << shift, &result);
    if (!negative)
        overflow |= __builtin_sub_overflow(0, result, &result);
    if (overflow || result < min || result > max)
        return cb_error_set(err, CB_USAGE,
                            "%s: " SHOWN " is out of range, must be %" PRId64 " to %" PRId64, what,
                            text, min, max);
    *value = result;
    return CB_OK;
}

/* The end of [-]digits[.digits][e[+-]digits] with a digit before the exponent; NULL where the text
 * does not begin so. strtod alone would let in spaces, "0x10", "inf" and "nan". */
static const char *decimal_end(const char *p)
{
    p += *p == '-';
    bool some = is_digit(*p);
    while (is_digit(*p))
        p++;
    if (*p == '.') {
        p++;
        some |= is_digit(*p);
        while (is_digit(*p))
            p++;
    }
    if (!some)
        return NULL;
    if (*p != 'e' && *p != 'E')
        return p;
    p++;
    p += *p == '+' || *p == '-';
    if (!is_digit(*p))
        return NULL;
    while (is_digit(*p))
        p++;
    return p;
}

cb_status cb__parse_real(const char *text, const char *what, double min, double max, double *value,
                         cb_error *err)
{
    const char *end = decimal_end(text);
    bool percent = end && *end == '%';
    if (!end || end[percent])
        return cb_error_set(err, CB_USAGE, "%s: " SHOWN " is not a decimal number", what, text);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return cb_error_set(err, CB_NO_MEMORY, "%s: no memory for the C locale", what);
    double result = strtod_l(text, NULL, c);
    freelocale(c);
    if (percent)
        result /= 100;
    if (!isfinite(result) || result < min || result > max)
        return cb_error_set(err, CB_USAGE, "%s: " SHOWN " is out of range, must be %g to %g", what,
                            text, min, max);
    *value = result;
    return CB_OK;
}

enum { WORD_MAX = 64 }; /* longer words are nobody's typing error */

/* Damerau-Levenshtein distance with adjacent transpositions, in which a transposed pair may be
 * edited again (Lowrance and Wagner 1975). d[i + 1][j + 1] is the distance of the first i and j
 * letters; row and column 0 hold a value larger than any distance. */
static int distance(const char *a, int na, const char *b, int nb)
{
    unsigned char d[WORD_MAX + 2][WORD_MAX + 2];
    unsigned char last_row[256] = {0}; /* of each letter in a */
    const int far = na + nb;
    d[0][0] = (unsigned char)far;
    for (int i = 0; i <= na; i++) {
        d[i + 1][0] = (unsigned char)far;
        d[i + 1][1] = (unsigned char)i;
    }
    for (int j = 0; j <= nb; j++) {
        d[0][j + 1] = (unsigned char)far;
        d[1][j + 1] = (unsigned char)j;
    }
    for (int i = 1; i <= na; i++) {
        int last_match = 0; /* column in this row */
        for (int j = 1; j <= nb; j++) {
            int row = last_row[(unsigned char)b[j - 1]], column = last_match;
            bool same = a[i - 1] == b[j - 1];
            int best = d[i][j] + !same;
            int step = 1 + (d[i + 1][j] < d[i][j + 1] ? d[i + 1][j] : d[i][j + 1]);
            int swap = d[row][column] + (i - row - 1) + 1 + (j - column - 1);
            best = step < best ? step : best;
            best = swap < best ? swap : best;
            d[i + 1][j + 1] = (unsigned char)best;
            if (same)
                last_match = j;
        }
        last_row[(unsigned char)a[i - 1]] = (unsigned char)i;
    }
    return d[na + 1][nb + 1];
}

static const char *only_completion(const char *word, const char *const *valid, size_t n)
{
    const char *found = NULL;
    size_t length = strlen(word);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(word, valid[i], length) || !valid[i][length])
            continue;
        if (found)
            return NULL;
        found = valid[i];
    }
    return found;
}

const char *cb__nearest(const char *word, const char *const *valid, size_t n)
{
    const char *best = NULL;
    int best_distance = 0;
    size_t length = strlen(word);
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(valid[i]);
        size_t longer = length > other ? length : other;
        if (longer > WORD_MAX)
            continue;
        int allowed = longer >= 6 ? (int)(longer / 3) : 1;
        int edits = distance(word, (int)length, valid[i], (int)other);
        if (edits <= allowed && (!best || edits < best_distance)) {
            best = valid[i];
            best_distance = edits;
        }
    }
    return best ? best : only_completion(word, valid, n);
}

/* "a, b, c", cut with "..." so that what follows it in the message is never lost. */
static void join(const char *const *words, size_t n, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *comma = i ? ", " : "";
        if (used + strlen(comma) + strlen(words[i]) + sizeof ", ..." > bytes) {
            snprintf(text + used, bytes - used, "%s...", comma);
            return;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", comma, words[i]);
    }
}

cb_status cb__unknown(cb_error *err, const char *what, const char *word, const char *const *valid,
                      size_t n)
{
    char list[600];
    join(valid, n, list, sizeof list);
    const char *nearest = cb__nearest(word, valid, n);
    if (!nearest)
        return cb_error_set(err, CB_USAGE, "unknown %s " SHOWN "; valid: %s", what, word, list);
    return cb_error_set(err, CB_USAGE, "unknown %s " SHOWN "; valid: %s; did you mean " SHOWN "?",
                        what, word, list, nearest);
}
