/* What the device says of itself while it is measured. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda.h"

/* What cuCtxGetLimit says where L2 has no such part: none is set aside there. */
enum { UNSUPPORTED_LIMIT = 215, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

/* The first answer is what there was at the start. */
static cb_status persisting_bytes(cb__device *device, size_t *bytes, cb_error *err)
{
    *bytes = 0;
    cb__cu_result result = device->driver.cuCtxGetLimit(bytes, CB__CU_LIMIT_PERSISTING_L2_BYTES);
    if (result == UNSUPPORTED_LIMIT || result == NOT_FOUND || result == NOT_SUPPORTED)
        *bytes = 0, result = 0;
    cb_status status = cb__cuda_did(device, result, "cuCtxGetLimit", err);
    if (status == CB_OK && !device->persisting_known) {
        device->persisting_known = true;
        device->persisting_bytes = *bytes;
    }
    return status;
}

cb_status cb__cuda_evicts(cb__device *device, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    size_t bytes = 0;
    if (persisting_bytes(device, &bytes, &own) == CB_OK)
        return CB_OK;
    return cb_error_set(err, CB_UNDECIDED,
                        "whether L2 is set aside for lines that stay cannot be asked: %s",
                        own.message);
}

cb_status cb__cuda_unkept(cb__device *device, cb_error *err)
{
    cb_error ignored = CB_ERROR_INIT; /* evicts() tells */
    size_t now = 0;
    if (persisting_bytes(device, &now, &ignored) != CB_OK || now == device->persisting_bytes)
        return CB_OK;
    return cb_error_set(err, CB_WRONG,
                        "cuda:%d: %zu bytes of L2 are set aside for lines that stay, and %zu were "
                        "at the start: what rotates is not cold",
                        device->ordinal, now, device->persisting_bytes);
}

/* "sm 1980 of 1980 MHz"; nothing where it is unknown. */
static void clocks(char *text, size_t size, const char *name, int now, int max)
{
    if (now >= 0)
        snprintf(text, size, "%s %d of %d MHz, ", name, now, max);
}

/* Nothing where the library that reads them cannot be loaded. */
static void sensors(cb__device *device, char *text, size_t size)
{
    char bus[32], reasons[96], sm[48] = "", memory[48] = "", power[48] = "", heat[32] = "";
    cb__nvml_reading r;
    text[0] = '\0';
    if (!device->nvml_tried &&
        device->driver.cuDeviceGetPCIBusId(bus, sizeof bus, device->handle) == 0)
        cb__nvml_open(bus, &device->nvml, NULL);
    device->nvml_tried = true;
    if (!device->nvml.loaded)
        return;
    cb__nvml_read(&device->nvml, &r);
    cb__nvml_throttle_text(r.throttle, reasons, sizeof reasons);
    clocks(sm, sizeof sm, "sm", r.sm_mhz, r.sm_max_mhz);
    clocks(memory, sizeof memory, "memory", r.memory_mhz, r.memory_max_mhz);
    if (r.power_milliwatts >= 0)
        snprintf(power, sizeof power, "%.0f W, ", r.power_milliwatts * 1e-3);
    if (r.celsius >= 0)
        snprintf(heat, sizeof heat, "%d C, ", r.celsius);
    snprintf(text, size, "%s%s%s%sheld back by: %s", sm, memory, power, heat, reasons);
}

void cb__cuda_telemetry(cb__device *device, char *text, size_t size)
{
    sensors(device, text, size);
    /* As it was found: a driver may allow some unasked. Nothing need stay there: the proof of
     * coldness is made in the same state. */
    const size_t used = strlen(text);
    if (device->persisting_bytes > 0)
        snprintf(text + used, size - used, "%s%zu bytes of L2 allowed for lines that stay",
                 used ? "; " : "", device->persisting_bytes);
}
