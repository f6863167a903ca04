#include "base/options.h"

#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum { LINE_COLUMNS = 100, HELP_COLUMN_MAX = 32, NAMES_MAX = 128 };

static void *place(const cb__option *option, void *into)
{
    return (char *)into + option->offset;
}

static bool limited(const cb__option *option)
{
    return option->min < 0 || option->min > 0 || option->max < 0 || option->max > 0;
}

static int64_t to_i64(double value)
{
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

static cb_status set_choice(const cb__option *option, const char *what, const char *text, int *into,
                            cb_error *err)
{
    int n = 0;
    for (; option->choices[n]; n++)
        if (!strcmp(option->choices[n], text)) {
            *into = n;
            return CB_OK;
        }
    return cb__unknown(err, what, text, option->choices, (size_t)n);
}

static cb_status add_item(const char *what, const char *text, cb__option_list *list, cb_error *err)
{
    if (list->count == CB__OPTION_LIST_MAX)
        return cb_error_set(err, CB_USAGE, "%s: '%.100s' is one too many, at most %d can be given",
                            what, text, CB__OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return CB_OK;
}

/* Any kind that takes a value. */
static cb_status set_value(const cb__option *option, const char *text, void *into, cb_error *err)
{
    const bool limits = limited(option);
    void *to = place(option, into);
    char what[80];
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->kind) {
    case CB__OPT_TEXT:
        *(const char **)to = text;
        return CB_OK;
    case CB__OPT_INT:
        return cb__parse_i64(text, what, limits ? to_i64(option->min) : INT64_MIN,
                             limits ? to_i64(option->max) : INT64_MAX, to, err);
    case CB__OPT_REAL:
        return cb__parse_real(text, what, limits ? option->min : -DBL_MAX,
                              limits ? option->max : DBL_MAX, to, err);
    case CB__OPT_CHOICE:
        return set_choice(option, what, text, to, err);
    case CB__OPT_LIST:
        return add_item(what, text, to, err);
    case CB__OPT_FLAG:
        break;
    }
    return cb_error_set(err, CB_USAGE, "%s takes no value, got '%.100s'", what, text);
}

static const cb__option *by_letter(const cb__option *table, size_t n, char letter)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

static const cb__option *by_name(const cb__option *table, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(table[i].name) == length && !memcmp(table[i].name, name, length))
            return &table[i];
    return NULL;
}

static cb_status unknown_option(const cb__option *table, size_t n, const char *given, size_t length,
                                cb_error *err)
{
    char word[128], spelled[NAMES_MAX][64];
    const char *valid[NAMES_MAX];
    size_t count = n < NAMES_MAX ? n : NAMES_MAX;
    for (size_t i = 0; i < count; i++) {
        snprintf(spelled[i], sizeof spelled[i], "--%s", table[i].name);
        valid[i] = spelled[i];
    }
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1,
             given);
    return cb__unknown(err, "option", word, valid, count);
}

/* The option at argv[*i], with its value; *i moves past a value in an argument of its own. */
static cb_status parse_one(const cb__option *table, size_t n, void *into, int argc, char **argv,
                           int *i, cb_error *err)
{
    const char *given = argv[*i];
    const bool is_long = given[1] == '-';
    const char *equals = is_long ? strchr(given, '=') : NULL;
    const size_t length = equals ? (size_t)(equals - given) : strlen(given);
    const cb__option *option = NULL;
    if (is_long)
        option = by_name(table, n, given + 2, length - 2);
    else if (length == 2)
        option = by_letter(table, n, given[1]);
    if (!option)
        return unknown_option(table, n, given, length, err);
    if (equals)
        return set_value(option, equals + 1, into, err);
    if (option->kind == CB__OPT_FLAG) {
        *(bool *)place(option, into) = true;
        return CB_OK;
    }
    /* "--threads --json -" is a forgotten value, not a value that looks like an option. */
    if (*i + 1 >= argc || !strncmp(argv[*i + 1], "--", 2))
        return cb_error_set(err, CB_USAGE,
                            "--%s needs a value (%s); one that begins with -- is written "
                            "--%s=VALUE",
                            option->name, option->arg ? option->arg : "VALUE", option->name);
    return set_value(option, argv[++*i], into, err);
}

static cb_status apply_presets(const cb__option *table, size_t n, void *into, cb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!table[i].preset)
            continue;
        cb_status status = set_value(&table[i], table[i].preset, into, err);
        if (status != CB_OK) {
            cb_error_prefix(err, "default");
            return status;
        }
    }
    return CB_OK;
}

cb_status cb__options_parse(const cb__option *table, size_t n, void *into, int argc, char **argv,
                            const char **positionals, int *npositionals, cb_error *err)
{
    bool ended = false;
    *npositionals = 0;
    cb_status status = apply_presets(table, n, into, err);
    for (int i = 0; status == CB_OK && i < argc; i++) {
        if (ended || argv[i][0] != '-' || !argv[i][1])
            positionals[(*npositionals)++] = argv[i];
        else if (!strcmp(argv[i], "--"))
            ended = true;
        else
            status = parse_one(table, n, into, argc, argv, &i, err);
    }
    return status;
}

static void left_column(const cb__option *option, cb__buf *out)
{
    cb__buf_clear(out);
    cb__buf_puts(out, "  ");
    if (option->letter)
        cb__buf_printf(out, "-%c, ", option->letter);
    cb__buf_printf(out, "--%s", option->name);
    if (option->arg)
        cb__buf_printf(out, " %s", option->arg);
}

static void right_column(const cb__option *option, cb__buf *out)
{
    cb__buf_clear(out);
    cb__buf_puts(out, option->help);
    if (option->kind == CB__OPT_CHOICE) {
        cb__buf_puts(out, " One of:");
        for (int i = 0; option->choices[i]; i++)
            cb__buf_printf(out, "%s %s", i ? "," : "", option->choices[i]);
        cb__buf_puts(out, ".");
    }
    if (option->kind == CB__OPT_LIST)
        cb__buf_puts(out, " May be repeated.");
    if (option->preset)
        cb__buf_printf(out, " Default: %s.", option->preset);
}

/* Words of `text`, wrapped; the cursor stands at column `at`, lines go on at `indent`. */
static void wrap(const char *text, size_t at, size_t indent, cb__buf *out)
{
    bool first = true;
    for (; *text; first = false) {
        size_t word = strcspn(text, " ");
        if (!first && at + 1 + word > LINE_COLUMNS) {
            cb__buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            cb__buf_puts(out, " ");
            at++;
        }
        cb__buf_append(out, text, word);
        at += word;
        text += word;
        text += strspn(text, " ");
    }
    cb__buf_puts(out, "\n");
}

void cb__options_help(const cb__option *table, size_t n, cb__buf *out)
{
    cb__buf text = CB__BUF_INIT;
    size_t column = 0;
    for (size_t i = 0; i < n; i++) {
        left_column(&table[i], &text);
        size_t width = text.size + 2;
        if (width > column && width <= HELP_COLUMN_MAX)
            column = width;
    }
    for (size_t i = 0; i < n; i++) {
        left_column(&table[i], &text);
        cb__buf_puts(out, cb__buf_text(&text));
        if (text.size + 2 > column)
            cb__buf_printf(out, "\n%*s", (int)column, "");
        else
            cb__buf_printf(out, "%*s", (int)(column - text.size), "");
        right_column(&table[i], &text);
        wrap(cb__buf_text(&text), column, column, out);
    }
    out->failed |= text.failed;
    cb__buf_fini(&text);
}
