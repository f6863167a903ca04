/* What the device says of itself while it is measured. */
#include <stdio.h>

#include "device/cuda/cuda.h"

static size_t persisting_bytes(const cb__device *device)
{
    size_t bytes = 0;
    return device->driver.cuCtxGetLimit(&bytes, CB__CU_LIMIT_PERSISTING_L2_BYTES) == 0
               ? bytes
               : device->persisting_bytes;
}

cb_status cb__cuda_unkept(cb__device *device, cb_error *err)
{
    size_t now = persisting_bytes(device);
    if (now == device->persisting_bytes)
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

void cb__cuda_telemetry(cb__device *device, char *text, size_t size)
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
