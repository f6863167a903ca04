#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "device/device.h"

static const cb__backend *const backends[] = {&cb__backend_cpu, &cb__backend_cuda,
                                              &cb__backend_fake};

enum { NBACKENDS = sizeof backends / sizeof *backends };

/* Names that scripts may use from the start; a backend joins the array above and leaves this one.
 */
static const char *const later[] = {"opencl"};

const cb__backend *const *cb__backends(int *n)
{
    *n = NBACKENDS;
    return backends;
}

cb_status cb__backend_validate(const cb__backend *b, cb_error *err)
{
    const struct {
        const char *name;
        bool there;
    } needed[] = {
        {"name", b->name && b->help},
        {"open", b->open},
        {"close", b->close},
        {"identify", b->identify},
        {"info", b->info},
        {"alloc", b->alloc && b->free},
        {"write", b->write},
        {"read", b->read},
        {"digest", b->digest},
        {"launch", b->launch},
        {"sync", b->sync},
        {"now_ns", b->now_ns},
        {"batch_new", b->batch_new && b->batch_free},
        {"batch_run", b->batch_run},
        {"batch_span_ns", b->batch_span_ns},
        {"map", b->map && b->unmap},
        {"unbuild", !b->build == !b->unbuild},
    };
    if (b->version != CB__BACKEND_VERSION)
        return cb_error_set(err, CB_INTERNAL, "backend %s has interface version %u, not %u",
                            b->name ? b->name : "?", b->version, CB__BACKEND_VERSION);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return cb_error_set(err, CB_INTERNAL, "backend %s lacks %s", b->name ? b->name : "?",
                                needed[i].name);
    return CB_OK;
}

cb_status cb__backend_find(const char *device, const cb__backend **out, const char **script,
                           cb_error *err)
{
    const char *colon = strchr(device, ':');
    size_t length = colon ? (size_t)(colon - device) : strlen(device);
    *script = colon ? colon + 1 : "";
    const char *valid[NBACKENDS + sizeof later / sizeof *later];
    size_t n = 0;
    for (int i = 0; i < NBACKENDS; i++) {
        valid[n++] = backends[i]->name;
        if (strlen(backends[i]->name) == length && !strncmp(backends[i]->name, device, length)) {
            *out = backends[i];
            return CB_OK;
        }
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        valid[n++] = later[i];
        if (strlen(later[i]) == length && !strncmp(later[i], device, length))
            return cb_error_set(err, CB_UNAVAILABLE,
                                "device '%s': this version of coldbench has no %s backend", device,
                                later[i]);
    }
    char name[64]; /* what is compared is without the script */
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name,
             device);
    return cb__unknown(err, "device", name, valid, n);
}
