/* nvml.h: NVIDIA's management library, opened at run time and only read from: clocks, what holds
 * them back, power, temperature. It is not everywhere, and not everything is readable where it is:
 * each value may be unknown. */
#ifndef CB_DEVICE_CUDA_NVML_H
#define CB_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "coldbench/status.h"

typedef int cb__nvml_result, cb__nvml_clock, cb__nvml_sensor;
typedef struct cb__nvml_device_st *cb__nvml_device;

enum { CB__NVML_CLOCK_SM = 1, CB__NVML_CLOCK_MEMORY = 2, CB__NVML_SENSOR_GPU = 0 };

/* X(need, name, symbol, (parameters)); need 0: NULL where the library has none. */
#define CB__NVML_TABLE(X)                                                                          \
    X(1, nvmlInit, nvmlInit_v2, (void))                                                            \
    X(1, nvmlShutdown, nvmlShutdown, (void))                                                       \
    X(1, nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2,                          \
      (const char *id, cb__nvml_device *device))                                                   \
    X(0, nvmlDeviceGetClockInfo, nvmlDeviceGetClockInfo,                                           \
      (cb__nvml_device device, cb__nvml_clock clock, unsigned *mhz))                               \
    X(0, nvmlDeviceGetMaxClockInfo, nvmlDeviceGetMaxClockInfo,                                     \
      (cb__nvml_device device, cb__nvml_clock clock, unsigned *mhz))                               \
    X(0, nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksThrottleReasons,     \
      (cb__nvml_device device, unsigned long long *reasons))                                       \
    X(0, nvmlDeviceGetPowerUsage, nvmlDeviceGetPowerUsage,                                         \
      (cb__nvml_device device, unsigned *milliwatts))                                              \
    X(0, nvmlDeviceGetTemperature, nvmlDeviceGetTemperature,                                       \
      (cb__nvml_device device, cb__nvml_sensor sensor, unsigned *celsius))

typedef struct cb__nvml {
    cb__dl *loaded; /* NULL: not open */
    cb__nvml_device device;
#define CB__NVML_MEMBER(need, name, symbol, parameters) cb__nvml_result(*name) parameters;
    CB__NVML_TABLE(CB__NVML_MEMBER)
#undef CB__NVML_MEMBER
    const char *(*nvmlErrorString)(cb__nvml_result result);
} cb__nvml;

/* Why clocks are below what they could be, as bits of `throttle`. The first two are no fault: an
 * idle device, and clocks that its owner set. */
#define CB__NVML_REASONS(X)                                                                        \
    X(IDLE, 0x1, "idle")                                                                           \
    X(APPLICATION_CLOCKS, 0x2, "clocks set by the owner")                                          \
    X(POWER_CAP, 0x4, "power cap")                                                                 \
    X(HW_SLOWDOWN, 0x8, "hardware slowdown")                                                       \
    X(SYNC_BOOST, 0x10, "sync boost")                                                              \
    X(SW_THERMAL, 0x20, "thermal slowdown by the driver")                                          \
    X(HW_THERMAL, 0x40, "thermal slowdown by the hardware")                                        \
    X(POWER_BRAKE, 0x80, "power brake")                                                            \
    X(DISPLAY_CLOCKS, 0x100, "display clocks")

enum {
#define CB__NVML_REASON(name, bit, words) CB__NVML_##name = bit,
    CB__NVML_REASONS(CB__NVML_REASON)
#undef CB__NVML_REASON
};

/* -1: unknown. */
typedef struct cb__nvml_reading {
    int sm_mhz, sm_max_mhz, memory_mhz, memory_max_mhz;
    int power_milliwatts, celsius;
    int64_t throttle; /* bits of CB__NVML_REASONS */
} cb__nvml_reading;

/* The device at a PCI bus id, as cuDeviceGetPCIBusId spells it. CB_UNAVAILABLE with the reason when
 * there is no NVML, or it does not know the device; `nvml` then reads as unknown throughout. */
cb_status cb__nvml_open(const char *pci_bus_id, cb__nvml *nvml, cb_error *err);
/* The same from a library of another name. */
cb_status cb__nvml_open_from(const char *library, const char *pci_bus_id, cb__nvml *nvml,
                             cb_error *err);
void cb__nvml_close(cb__nvml *nvml);

void cb__nvml_read(const cb__nvml *nvml, cb__nvml_reading *out);
/* "power cap, thermal slowdown by the hardware"; "none"; "unknown". Bits without a name are shown
 * as a number. */
void cb__nvml_throttle_text(int64_t throttle, char *text, size_t size);

#endif
