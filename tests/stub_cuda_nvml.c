/* A libnvidia-ml.so.1 without a GPU, beside the stub driver (stub_cuda.h). It knows the devices
 * that the stub driver has. The environment scripts it:
 *
 *   STUB_NVML_THROTTLE=BITS   what holds the clocks back (0)
 *   STUB_NVML_SM_MHZ=N        the clock now (1980)
 *   STUB_NVML_FAIL=SYMBOL     this function gives "Insufficient Permissions"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/nvml.h"

enum { OK = 0, NO_PERMISSION = 4, NOT_FOUND = 6 };

#define EXPORTED __attribute__((visibility("default")))
#define DECLARE(need, name, symbol, parameters) EXPORTED cb__nvml_result symbol parameters;
CB__NVML_TABLE(DECLARE)
#undef DECLARE
EXPORTED const char *nvmlErrorString(cb__nvml_result result);

struct cb__nvml_device_st {
    int number;
};

static struct cb__nvml_device_st devices[16];

static cb__nvml_result scripted(const char *symbol)
{
    const char *fail = getenv("STUB_NVML_FAIL");
    return fail && strcmp(fail, symbol) == 0 ? NO_PERMISSION : OK;
}

static unsigned long long number(const char *variable, unsigned long long preset)
{
    const char *text = getenv(variable);
    return text && text[0] ? strtoull(text, NULL, 0) : preset;
}

const char *nvmlErrorString(cb__nvml_result result)
{
    return result == NO_PERMISSION ? "Insufficient Permissions" : "Not Found";
}

cb__nvml_result nvmlInit_v2(void)
{
    return scripted(__func__);
}

cb__nvml_result nvmlShutdown(void)
{
    return OK;
}

cb__nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *id, cb__nvml_device *device)
{
    char known[32];
    for (int i = 0; i < 16 && i < (int)number("STUB_CUDA_DEVICES", 1); i++) {
        snprintf(known, sizeof known, "0000:%02X:00.0", i + 1);
        if (strcmp(known, id) == 0) {
            devices[i].number = i;
            *device = &devices[i];
            return scripted(__func__);
        }
    }
    return NOT_FOUND;
}

cb__nvml_result nvmlDeviceGetClockInfo(cb__nvml_device device, cb__nvml_clock clock, unsigned *mhz)
{
    (void)device;
    *mhz = clock == CB__NVML_CLOCK_SM ? (unsigned)number("STUB_NVML_SM_MHZ", 1980) : 3201;
    return scripted(__func__);
}

cb__nvml_result nvmlDeviceGetMaxClockInfo(cb__nvml_device device, cb__nvml_clock clock,
                                          unsigned *mhz)
{
    (void)device;
    *mhz = clock == CB__NVML_CLOCK_SM ? 1980 : 3201;
    return scripted(__func__);
}

cb__nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(cb__nvml_device device,
                                                          unsigned long long *reasons)
{
    (void)device;
    *reasons = number("STUB_NVML_THROTTLE", 0);
    return scripted(__func__);
}

cb__nvml_result nvmlDeviceGetPowerUsage(cb__nvml_device device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 123456;
    return scripted(__func__);
}

cb__nvml_result nvmlDeviceGetTemperature(cb__nvml_device device, cb__nvml_sensor sensor,
                                         unsigned *celsius)
{
    (void)device;
    *celsius = sensor == CB__NVML_SENSOR_GPU ? 41 : 0;
    return scripted(__func__);
}
