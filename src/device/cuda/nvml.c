#include "device/cuda/nvml.h"

#include <stdio.h>
#include <string.h>

#define TEXT_OF(symbol) #symbol
static const struct {
    size_t member; /* its offset in cb__nvml */
    const char *symbol;
    bool need;
} entries[] = {
#define ENTRY(need, name, symbol, parameters) {offsetof(cb__nvml, name), TEXT_OF(symbol), need},
    CB__NVML_TABLE(ENTRY)
#undef ENTRY
        {offsetof(cb__nvml, nvmlErrorString), "nvmlErrorString", true},
};

static cb_status look_up(const char *name, cb__nvml *nvml, cb_error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = cb__dl_symbol(nvml->loaded, entries[i].symbol);
        if (!symbol && entries[i].need)
            return cb_error_set(err, CB_UNAVAILABLE, "%s has no %s", name, entries[i].symbol);
        memcpy((char *)nvml + entries[i].member, &symbol, sizeof symbol);
    }
    return CB_OK;
}

static cb_status check(const cb__nvml *nvml, cb__nvml_result result, const char *call,
                       cb_error *err)
{
    if (!result)
        return CB_OK;
    const char *words = nvml->nvmlErrorString(result);
    return cb_error_set(err, CB_UNAVAILABLE, "%s: %s", call, words ? words : "no reason given");
}

cb_status cb__nvml_open_from(const char *library, const char *pci_bus_id, cb__nvml *nvml,
                             cb_error *err)
{
    memset(nvml, 0, sizeof *nvml);
    cb_status status = cb__dl_open(library, &nvml->loaded, err);
    if (status != CB_OK)
        return status;
    status = look_up(library, nvml, err);
    if (status == CB_OK)
        status = check(nvml, nvml->nvmlInit(), "nvmlInit", err);
    if (status != CB_OK)
        goto out;
    cb__nvml_result found = nvml->nvmlDeviceGetHandleByPciBusId(pci_bus_id, &nvml->device);
    status = check(nvml, found, "nvmlDeviceGetHandleByPciBusId", err);
    if (status != CB_OK)
        nvml->nvmlShutdown();
out:
    if (status != CB_OK) {
        cb__dl_close(nvml->loaded);
        memset(nvml, 0, sizeof *nvml);
    }
    return status;
}

cb_status cb__nvml_open(const char *pci_bus_id, cb__nvml *nvml, cb_error *err)
{
    return cb__nvml_open_from("libnvidia-ml.so.1", pci_bus_id, nvml, err);
}

void cb__nvml_close(cb__nvml *nvml)
{
    if (!nvml->loaded)
        return;
    nvml->nvmlShutdown();
    cb__dl_close(nvml->loaded);
    memset(nvml, 0, sizeof *nvml);
}

static int clock_mhz(const cb__nvml *nvml,
                     cb__nvml_result (*get)(cb__nvml_device, cb__nvml_clock, unsigned *),
                     cb__nvml_clock clock)
{
    unsigned mhz;
    return get && !get(nvml->device, clock, &mhz) ? (int)mhz : -1;
}

void cb__nvml_read(const cb__nvml *nvml, cb__nvml_reading *out)
{
    unsigned value;
    unsigned long long reasons;
    *out = (cb__nvml_reading){-1, -1, -1, -1, -1, -1, -1};
    out->sm_mhz = clock_mhz(nvml, nvml->nvmlDeviceGetClockInfo, CB__NVML_CLOCK_SM);
    out->memory_mhz = clock_mhz(nvml, nvml->nvmlDeviceGetClockInfo, CB__NVML_CLOCK_MEMORY);
    out->sm_max_mhz = clock_mhz(nvml, nvml->nvmlDeviceGetMaxClockInfo, CB__NVML_CLOCK_SM);
    out->memory_max_mhz = clock_mhz(nvml, nvml->nvmlDeviceGetMaxClockInfo, CB__NVML_CLOCK_MEMORY);
    if (nvml->nvmlDeviceGetPowerUsage && !nvml->nvmlDeviceGetPowerUsage(nvml->device, &value))
        out->power_milliwatts = (int)value;
    if (nvml->nvmlDeviceGetTemperature &&
        !nvml->nvmlDeviceGetTemperature(nvml->device, CB__NVML_SENSOR_GPU, &value))
        out->celsius = (int)value;
    if (nvml->nvmlDeviceGetCurrentClocksThrottleReasons &&
        !nvml->nvmlDeviceGetCurrentClocksThrottleReasons(nvml->device, &reasons))
        out->throttle = (int64_t)(reasons & INT64_MAX);
}

static void add(char *text, size_t size, const char *words)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? ", " : "", words);
}

void cb__nvml_throttle_text(int64_t throttle, char *text, size_t size)
{
    static const struct {
        int64_t bit;
        const char *words;
    } reasons[] = {
#define REASON(name, bit, words) {bit, words},
        CB__NVML_REASONS(REASON)
#undef REASON
    };
    char number[32];
    snprintf(text, size, "%s", throttle < 0 ? "unknown" : throttle ? "" : "none");
    if (throttle < 0)
        return;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (throttle & reasons[i].bit)
            add(text, size, reasons[i].words);
        throttle &= ~reasons[i].bit;
    }
    snprintf(number, sizeof number, "0x%llx", (unsigned long long)throttle);
    if (throttle)
        add(text, size, number);
}
