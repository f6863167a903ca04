#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "device/fake/fake.h"

typedef struct field {
    const char *name;
    size_t offset;
    int integer;
    double preset, min, max;
} field;

#define INTEGER(name, preset, min, max)                                                            \
    {                                                                                              \
#name, offsetof(cb__fake_script, name), 1, preset, min, max                                \
    }
#define REAL(name, preset, min, max)                                                               \
    {                                                                                              \
#name, offsetof(cb__fake_script, name), 0, preset, min, max                                \
    }

static const field fields[] = {
    INTEGER(llc, 8388608, 0, 1e15),
    INTEGER(cache, 0, 0, 1e15),
    INTEGER(memory, 17179869184, 1, 1e15),
    REAL(dram_gbs, 40, 1e-3, 1e6),
    REAL(cache_gbs, 200, 1e-3, 1e6),
    REAL(dram_ns, 100, 1e-3, 1e6),
    REAL(cache_ns, 5, 1e-3, 1e6),
    REAL(peak_gbs, 0, 0, 1e6),
    REAL(peak_dram_gbs, 0, 0, 1e6),
    REAL(solo_ns, 1000, 1, 1e9),
    REAL(batched_ns, 200, 1, 1e9),
    REAL(kernel_factor, 1.05, 1e-3, 1e3),
    REAL(noise, 0.005, 0, 0.9),
    REAL(drift, 0, -0.9, 100),
    REAL(arm_drift, 0, -0.9, 100),
    REAL(place, 0, -0.9, 100),
    INTEGER(process_arm, 2, 0, 64),
    REAL(process, 0, -0.9, 100),
    REAL(process_share, 1, 0, 1),
    INTEGER(fail_launch, 0, 0, 1e15),
    INTEGER(queued, 0, 0, 1),
};

enum { NFIELDS = sizeof fields / sizeof *fields };

static void store(cb__fake_script *script, const field *f, double value)
{
    void *to = (char *)script + f->offset;
    if (f->integer)
        *(int64_t *)to = (int64_t)value;
    else
        *(double *)to = value;
}

static cb_status store_text(cb__fake_script *script, const char *name, const char *text,
                            cb_error *err)
{
    const char *valid[NFIELDS];
    for (int i = 0; i < NFIELDS; i++) {
        const field *f = &fields[i];
        valid[i] = f->name;
        if (strcmp(f->name, name) != 0)
            continue;
        double value = 0;
        int64_t whole = 0;
        cb_status status =
            f->integer ? cb__parse_i64(text, name, (int64_t)f->min, (int64_t)f->max, &whole, err)
                       : cb__parse_real(text, name, f->min, f->max, &value, err);
        if (status == CB_OK)
            store(script, f, f->integer ? (double)whole : value);
        return status;
    }
    return cb__unknown(err, "key of the fake device", name, valid, NFIELDS);
}

cb_status cb__fake_parse(const char *text, cb__fake_script *out, cb_error *err)
{
    char list[512];
    *out = (cb__fake_script){0};
    for (int i = 0; i < NFIELDS; i++)
        store(out, &fields[i], fields[i].preset);
    if (snprintf(list, sizeof list, "%s", text) >= (int)sizeof list)
        return cb_error_set(err, CB_USAGE, "script of the fake device is over %zu bytes",
                            sizeof list - 1);
    char *next = *list ? list : NULL;
    cb_status status = CB_OK;
    while (next && status == CB_OK) {
        char *item = strsep(&next, ",");
        char *equals = strchr(item, '=');
        if (!equals)
            return cb_error_set(err, CB_USAGE, "'%s' in the fake device's script: write key=value",
                                item);
        *equals = '\0';
        status = store_text(out, item, equals + 1, err);
    }
    if (out->cache == 0)
        out->cache = out->llc;
    return status;
}
