#include "record/envelope.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cb_build_info.h"
#include "host/build_id.h"
#include "host/environment.h"
#include "host/topology.h"

void cb__record_now(char text[32])
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void cb__put_interval(cb__json_writer *w, const char *key, cb__interval x)
{
    cb__json_key(w, key);
    if (!isfinite(x.mid)) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    cb__json_put_real(w, "lo", x.lo);
    cb__json_put_real(w, "mid", x.mid);
    cb__json_put_real(w, "hi", x.hi);
    cb__json_put_real(w, "coverage", x.coverage);
    cb__json_end(w);
}

void cb__put_shape(cb__json_writer *w, const cb__case *c)
{
    cb__json_key(w, "shape");
    cb__json_object(w);
    for (int i = 0; i < c->kernel->ndims; i++)
        cb__json_put_int(w, c->kernel->dims[i].name, c->shape[i]);
    cb__json_end(w);
}

void cb__put_check(cb__json_writer *w, const char *side, const cb__check *check)
{
    cb__json_object(w);
    if (side)
        cb__json_put_text(w, "side", side);
    cb__json_put_text(w, "name", check->name);
    cb__json_put_text(w, "status", cb__check_status_name(check->status));
    cb__json_put_bool(w, "required", check->required);
    cb__json_put_text(w, "detail", check->detail);
    cb__json_end(w);
}

void cb__put_checks(cb__json_writer *w, const cb__check *checks, int n)
{
    cb__json_key(w, "checks");
    cb__json_array(w);
    for (int i = 0; i < n; i++)
        cb__put_check(w, NULL, &checks[i]);
    cb__json_end(w);
}

void cb__csv_number(cb__buf *out, double value)
{
    cb__buf_puts(out, ",");
    if (isfinite(value))
        cb__buf_printf(out, "%.9g", value);
}

static void tool(cb__json_writer *w)
{
    char id[64];
    cb__build_id(id, sizeof id);
    cb__json_key(w, "tool");
    cb__json_object(w);
    cb__json_put_text(w, "version", CB_VERSION);
    cb__json_put_text(w, "build_id", *id ? id : NULL);
    cb__json_put_text(w, "source_id", CB_SOURCE_ID);
    cb__json_put_text(w, "compiler", CB_COMPILER);
    cb__json_put_text(w, "flags", CB_C_FLAGS);
    cb__json_end(w);
}

static void caches(cb__json_writer *w, const cb__topology *t)
{
    cb__json_key(w, "caches");
    cb__json_array(w);
    for (int i = 0; i < t->ncaches; i++) {
        cb__json_object(w);
        cb__json_put_int(w, "level", t->caches[i].level);
        cb__json_put_bool(w, "data", t->caches[i].data);
        cb__json_put_int(w, "bytes", (int64_t)t->caches[i].bytes);
        cb__json_put_int(w, "shared_by", t->caches[i].shared_by);
        cb__json_put_int(w, "instances", t->caches[i].instances);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void host(cb__json_writer *w)
{
    static cb__topology t;
    static cb__environment e;
    cb_error ignored = CB_ERROR_INIT;
    cb__environment_read("", &e);
    cb__json_key(w, "host");
    cb__json_object(w);
    if (cb__topology_read("", &t, &ignored) == CB_OK) {
        cb__json_put_text(w, "cpu", t.model_name);
        cb__json_put_text(w, "vendor", t.vendor);
        cb__json_put_int(w, "family", t.family);
        cb__json_put_int(w, "model", t.model);
        cb__json_put_int(w, "stepping", t.stepping);
        cb__json_put_text(w, "microarchitecture", t.uarch);
        cb__json_put_int(w, "cpus", t.ncpus);
        cb__json_put_int(w, "cores", t.ncores);
        cb__json_put_real(w, "quota_cpus", t.quota > 0 ? t.quota : (double)NAN);
        cb__json_put_int(w, "numa_nodes", t.numa_nodes);
        caches(w, &t);
    }
    cb__json_put_text(w, "os", e.os);
    cb__json_put_text(w, "kernel", e.kernel);
    cb__json_put_text(w, "libc", e.libc);
    cb__json_put_text(w, "machine_id_hash", e.machine_id_hash);
    cb__json_put_text(w, "virtualization", e.virtualization);
    cb__json_put_bool(w, "container", e.container);
    cb__json_put_text(w, "governor", *e.governor ? e.governor : NULL);
    cb__json_put_text(w, "thp", e.thp);
    cb__json_put_text(w, "thp_shmem", e.thp_shmem);
    cb__json_put_real(w, "load1", e.load1);
    cb__json_key(w, "variables");
    cb__json_array(w);
    for (int i = 0; i < e.nvariables; i++)
        cb__json_string(w, e.variables[i]);
    cb__json_end(w);
    cb__json_end(w);
}

static void device(cb__json_writer *w, const cb__record *record)
{
    const cb__device_info *d = record->device;
    cb__json_key(w, "device");
    if (!d) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    cb__json_put_text(w, "device", record->device_name);
    cb__json_put_text(w, "name", d->name);
    cb__json_put_text(w, "identity", d->identity);
    cb__json_put_text(w, "clock", d->clock);
    cb__json_put_text(w, "code", *d->code ? d->code : NULL);
    cb__json_put_int(w, "threads", d->threads);
    cb__json_put_int(w, "llc_bytes", (int64_t)d->llc_bytes);
    cb__json_put_real(w, "peak_gb_per_s",
                      d->peak_bytes_per_s > 0 ? d->peak_bytes_per_s * 1e-9 : (double)NAN);
    cb__json_put_real(w, "peak_memory_gb_per_s",
                      d->peak_dram_bytes_per_s > 0 ? d->peak_dram_bytes_per_s * 1e-9 : (double)NAN);
    cb__json_end(w);
}

void cb__envelope_begin(cb__json_writer *w, const cb__record *record)
{
    cb__json_object(w);
    cb__json_put_text(w, "schema", "coldbench/1");
    cb__json_put_text(w, "kind", record->kind);
    cb__json_put_bool(w, "complete", record->complete);
    cb__json_put_int(w, "seed", (int64_t)record->seed);
    cb__json_put_text(w, "started", record->started);
    cb__json_put_real(w, "startup_s", fmax(record->wall_s - record->measure_s, 0));
    cb__json_put_real(w, "measure_s", record->measure_s);
    tool(w);
    host(w);
    device(w, record);
}
