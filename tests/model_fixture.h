/* model_fixture.h: the model that the tests of models share. */
#ifndef CB_TESTS_MODEL_FIXTURE_H
#define CB_TESTS_MODEL_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

#define FIXTURES CB_SOURCE_DIR "/tests/fixtures/models/"

static char *fixture_text; /* of fake.json */
static cb_model *fixture;

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file))
        abort();
    fclose(file);
    return text;
}

static int open_fixture(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    fixture_text = slurp(FIXTURES "fake.json");
    return cb_model_open_file(FIXTURES "fake.json", "fake", &fixture, &err);
}

static int close_fixture(void **state)
{
    (void)state;
    free(fixture_text);
    cb_model_free(fixture);
    return 0;
}

static void says(const cb_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("'%s' does not say '%s'", err->message, part);
}

#endif
