#include "host/environment.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "host/sysfile.h"

/* Variables that steer math libraries, and no others: the rest may be secrets. */
static const char *const whitelist[8] = {
    "OMP_NUM_THREADS",   "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS",
    "GOMP_CPU_AFFINITY", "CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES",    "MALLOC_ARENA_MAX"};

/* FNV-1a of a fixed prefix and the id: stable for a machine, and not the id itself. */
static uint64_t hash_id(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = "coldbench machine "; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    for (const char *at = id; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

static void read_machine_id(const char *root, cb__environment *out)
{
    char id[64];
    if ((cb__sysfile_line(id, sizeof id, root, "/etc/machine-id") && id[0]) ||
        (cb__sysfile_line(id, sizeof id, root, "/proc/sys/kernel/random/boot_id") && id[0]))
        snprintf(out->machine_id_hash, sizeof out->machine_id_hash, "%016llx",
                 (unsigned long long)hash_id(id));
}

static void read_os(const char *root, cb__environment *out)
{
    cb__buf text = CB__BUF_INIT;
    char name[96], release[64];
    size_t length;
    if (cb__sysfile_read(&text, root, "/etc/os-release")) {
        for (char *at = text.text; at && *at; at++)
            if (*at == '=')
                *at = ' ';
        if (cb__sysfile_value(cb__buf_text(&text), "PRETTY_NAME", name, sizeof name)) {
            length = strlen(name);
            bool quoted = length >= 2 && name[0] == '"' && name[length - 1] == '"';
            snprintf(out->os, sizeof out->os, "%.*s", (int)(quoted ? length - 2 : length),
                     quoted ? name + 1 : name);
        }
    }
    cb__buf_fini(&text);
    struct utsname uts;
    if (cb__sysfile_line(release, sizeof release, root, "/proc/sys/kernel/osrelease"))
        snprintf(out->kernel, sizeof out->kernel, "Linux %s", release);
    else if (root[0] == '\0' && uname(&uts) == 0)
        snprintf(out->kernel, sizeof out->kernel, "%.30s %.60s", uts.sysname, uts.release);
}

/* "always [madvise] never" -> "madvise". */
static void selected_word(const char *root, const char *path, char word[16])
{
    char line[128];
    if (!cb__sysfile_line(line, sizeof line, root, "%s", path))
        return;
    const char *open = strchr(line, '[');
    if (open)
        snprintf(word, 16, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

typedef struct sign {
    const char *text, *name;
} sign;

static const char *find_sign(const char *text, const sign *signs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, signs[i].text))
            return signs[i].name;
    return NULL;
}

static const char *container_name(const char *root)
{
    static const sign groups[] = {{"kubepods", "kubernetes"},
                                  {"docker", "docker"},
                                  {"libpod", "podman"},
                                  {"lxc", "lxc"},
                                  {"containerd", "containerd"}};
    if (cb__sysfile_exists(root, "/.dockerenv"))
        return "docker";
    if (cb__sysfile_exists(root, "/run/.containerenv"))
        return "podman";
    if (cb__sysfile_exists(root, "/run/systemd/container"))
        return "systemd-nspawn";
    cb__buf text = CB__BUF_INIT;
    const char *name = NULL;
    if (cb__sysfile_read(&text, root, "/proc/self/cgroup"))
        name = find_sign(cb__buf_text(&text), groups, sizeof groups / sizeof *groups);
    cb__buf_fini(&text);
    return name;
}

/* The hypervisor's own signature, leaf 0x40000000, of the real system only. */
static const char *hypervisor_of_processor(void)
{
#if defined(__x86_64__)
    static const sign vendors[] = {{"KVMKVMKVM", "kvm"},       {"Microsoft Hv", "hyper-v"},
                                   {"VMwareVMware", "vmware"}, {"XenVMMXenVMM", "xen"},
                                   {"TCGTCGTCGTCG", "qemu"},   {"bhyve bhyve ", "bhyve"}};
    unsigned a = 0, word[4] = {0};
    char text[13] = "";
    __cpuid(0x40000000, a, word[0], word[1], word[2]);
    memcpy(text, word, 12);
    return find_sign(text, vendors, sizeof vendors / sizeof *vendors);
#else
    return NULL;
#endif
}

static const char *hypervisor_of_firmware(const char *root)
{
    static const sign vendors[] = {{"QEMU", "qemu"},         {"Amazon EC2", "amazon"},
                                   {"Google", "google"},     {"VMware", "vmware"},
                                   {"Microsoft", "hyper-v"}, {"Xen", "xen"},
                                   {"innotek", "virtualbox"}};
    char text[64];
    if (!cb__sysfile_line(text, sizeof text, root, "/sys/class/dmi/id/sys_vendor"))
        return NULL;
    return find_sign(text, vendors, sizeof vendors / sizeof *vendors);
}

/* x86 says so in the flags; elsewhere the device tree or the firmware's vendor must. A vendor alone
 * proves nothing on x86: clouds rent bare metal under the same name. */
static bool in_virtual_machine(const char *root)
{
    cb__buf text = CB__BUF_INIT;
    char flags[8192];
    bool virtual = false;
    cb__sysfile_read(&text, root, "/proc/cpuinfo");
    if (cb__sysfile_value(cb__buf_text(&text), "flags", flags, sizeof flags))
        virtual = strstr(flags, " hypervisor") != NULL;
    else
        virtual = cb__sysfile_exists(root, "/proc/device-tree/hypervisor") ||
                  cb__sysfile_exists(root, "/sys/hypervisor/type") ||
                  hypervisor_of_firmware(root) != NULL;
    cb__buf_fini(&text);
    return virtual;
}

/* The innermost layer gives the name. */
static void read_virtualization(const char *root, cb__environment *out)
{
    const char *container = container_name(root), *machine = NULL;
    out->container = container != NULL;
    out->virtual_machine = in_virtual_machine(root);
    if (out->virtual_machine) {
        machine = root[0] == '\0' ? hypervisor_of_processor() : NULL;
        if (!machine)
            machine = hypervisor_of_firmware(root);
        if (!machine)
            machine = "unknown hypervisor";
    }
    snprintf(out->virtualization, sizeof out->virtualization, "%s",
             container ? container
             : machine ? machine
                       : "none");
}

void cb__environment_read(const char *root, cb__environment *out)
{
    char load[64];
    memset(out, 0, sizeof *out);
    read_os(root, out);
    read_machine_id(root, out);
    read_virtualization(root, out);
    cb__sysfile_line(out->governor, sizeof out->governor, root,
                     "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    selected_word(root, "/sys/kernel/mm/transparent_hugepage/enabled", out->thp);
    selected_word(root, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", out->thp_shmem);
    if (cb__sysfile_line(load, sizeof load, root, "/proc/loadavg"))
        out->load1 = strtod(load, NULL);
    snprintf(out->libc, sizeof out->libc, "glibc %s", gnu_get_libc_version());
    for (size_t i = 0; i < sizeof whitelist / sizeof *whitelist; i++) {
        const char *value = getenv(whitelist[i]);
        if (value)
            snprintf(out->variables[out->nvariables++], sizeof out->variables[0], "%s=%s",
                     whitelist[i], value);
    }
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

cb__interference cb__interference_now(void)
{
    cb__interference now = {0};
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        now.involuntary = usage.ru_nivcsw;
        now.major_faults = usage.ru_majflt;
        now.other_busy_s = -seconds(usage.ru_utime) - seconds(usage.ru_stime);
    }
    char line[256];
    double user, nice, system, idle, iowait, irq, softirq, steal;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    if (cb__sysfile_line(line, sizeof line, "", "/proc/stat") &&
        sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &iowait,
               &irq, &softirq, &steal) == 8) {
        now.steal_s = steal * tick;
        now.other_busy_s += (user + nice + system + irq + softirq) * tick;
    }
    return now;
}

/* The two sources tick differently, so that little work can come out below zero. */
static double at_least_zero(double value)
{
    return value > 0 ? value : 0;
}

cb__interference cb__interference_since(const cb__interference *before)
{
    cb__interference now = cb__interference_now();
    now.steal_s = at_least_zero(now.steal_s - before->steal_s);
    now.other_busy_s = at_least_zero(now.other_busy_s - before->other_busy_s);
    now.involuntary -= before->involuntary;
    now.major_faults -= before->major_faults;
    return now;
}
