#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "coldbench/kernel.h"
#include "host/sysfile.h"
#include "host/topology_reader.h"

/* One range of models. Bytes a cycle are L1 load ports x width: `avx512` where the operating system
 * has AVX-512 on, `avx2` where it has only AVX2; 0: no source known to us, so no ceiling from it.
 * Sources are the makers' optimisation guides, as named. Seen by measurement (2026-11-29):
 * zen4 63.9 of 64 with 256-bit loads, emerald-rapids 115.7 of 128. */
typedef struct uarch_row {
    int family, first, last; /* models, inclusive; of ARM: the part number twice, family 0 */
    const char *name;
    int avx512, avx2;
} uarch_row;

/* Model numbers: Linux, arch/x86/kernel/cpu/amd.c. */
static const uarch_row amd[] = {
    /* Two 128-bit loads. Software Optimization Guide for Family 17h, load-store unit. */
    {0x17, 0x00, 0x2f, "zen", 0, 32},
    /* Two 256-bit loads. Guide for Family 17h Models 30h and Greater, load-store unit. */
    {0x17, 0x30, 0xff, "zen2", 0, 64},
    /* Three loads, of which two 256-bit. Guide for Family 19h, load-store unit. */
    {0x19, 0x00, 0x0f, "zen3", 0, 64},
    {0x19, 0x20, 0x5f, "zen3", 0, 64},
    /* Two 256-bit or one 512-bit load. Guide for the Zen 4 Microarchitecture. */
    {0x19, 0x10, 0x1f, "zen4", 64, 64},
    {0x19, 0x60, 0xaf, "zen4", 64, 64},
    /* Two 512-bit loads; two of 256 bits. Guide for the Zen 5 Microarchitecture. The parts
     * with the halved vector data path (20h to 2fh, 60h to 6fh) have no figure there. */
    {0x1a, 0x20, 0x2f, "zen5", 0, 0},
    {0x1a, 0x60, 0x6f, "zen5", 0, 0},
    {0x1a, 0x00, 0x1f, "zen5", 128, 64},
    {0x1a, 0x40, 0x4f, "zen5", 128, 64},
    {0x1a, 0x70, 0x7f, "zen5", 128, 64},
};

/* Model numbers: Linux, arch/x86/include/asm/intel-family.h. Widths: Intel 64 and IA-32
 * Architectures Optimization Reference Manual, cache parameter tables of each
 * microarchitecture, "peak bandwidth (bytes/cycle)" of the first-level data cache: Haswell to Comet
 * Lake 2 x 32; Skylake server and Ice Lake 2 x 64; Golden Cove 2 x 64 or 3 x 32. */
static const uarch_row intel[] = {
    {6, 0x3c, 0x3c, "haswell", 0, 64},           {6, 0x3f, 0x3f, "haswell", 0, 64},
    {6, 0x45, 0x46, "haswell", 0, 64},           {6, 0x3d, 0x3d, "broadwell", 0, 64},
    {6, 0x47, 0x47, "broadwell", 0, 64},         {6, 0x4f, 0x4f, "broadwell", 0, 64},
    {6, 0x56, 0x56, "broadwell", 0, 64},         {6, 0x4e, 0x4e, "skylake", 0, 64},
    {6, 0x5e, 0x5e, "skylake", 0, 64},           {6, 0x8e, 0x8e, "kaby-lake", 0, 64},
    {6, 0x9e, 0x9e, "kaby-lake", 0, 64},         {6, 0xa5, 0xa6, "comet-lake", 0, 64},
    {6, 0x55, 0x55, "skylake-x", 128, 64},       {6, 0x6a, 0x6a, "icelake-x", 128, 64},
    {6, 0x6c, 0x6c, "icelake-x", 128, 64},       {6, 0x7d, 0x7e, "icelake", 128, 64},
    {6, 0x8c, 0x8d, "tiger-lake", 128, 64},      {6, 0xa7, 0xa7, "rocket-lake", 128, 64},
    {6, 0x8f, 0x8f, "sapphire-rapids", 128, 96}, {6, 0xcf, 0xcf, "emerald-rapids", 128, 96},
    {6, 0xad, 0xae, "granite-rapids", 128, 96},  {6, 0x97, 0x97, "alder-lake", 128, 96},
    {6, 0x9a, 0x9a, "alder-lake", 128, 96},      {6, 0xb7, 0xb7, "raptor-lake", 128, 96},
    {6, 0xba, 0xba, "raptor-lake", 128, 96},     {6, 0xbf, 0xbf, "raptor-lake", 128, 96},
};

/* Part numbers: Arm's technical reference manuals, MIDR_EL1. No load widths: without a vector
 * length in /proc/cpuinfo there is no bound to state. */
static const uarch_row arm[] = {
    {0, 0xd08, 0xd08, "cortex-a72", 0, 0},  {0, 0xd0c, 0xd0c, "neoverse-n1", 0, 0},
    {0, 0xd40, 0xd40, "neoverse-v1", 0, 0}, {0, 0xd49, 0xd49, "neoverse-n2", 0, 0},
    {0, 0xd4f, 0xd4f, "neoverse-v2", 0, 0},
};

static void look_up(cb__topology *t, const uarch_row *rows, size_t n, int family, int model)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].family != family || model < rows[i].first || model > rows[i].last)
            continue;
        snprintf(t->uarch, sizeof t->uarch, "%s", rows[i].name);
        if (t->isa & CB_ISA_AVX512)
            t->load_bytes_per_cycle = rows[i].avx512;
        else if (t->isa & CB_ISA_AVX2)
            t->load_bytes_per_cycle = rows[i].avx2;
        return;
    }
}
#define LOOK_UP(t, rows, family, model)                                                            \
    look_up(t, rows, sizeof(rows) / sizeof *(rows), family, model)

static unsigned isa_bits(bool avx2, bool avx512, bool vnni)
{
    unsigned isa = CB_ISA_PORTABLE;
    if (avx2)
        isa |= CB_ISA_AVX2;
    if (avx2 && avx512)
        isa |= CB_ISA_AVX512;
    if (avx2 && avx512 && vnni)
        isa |= CB_ISA_AVX512_VNNI;
    return isa;
}

/* The flags line lists what the kernel lets programs use. */
static bool has_flags(const char *flags, const char *const *words)
{
    for (; *words; words++) {
        size_t length = strlen(*words);
        const char *at = flags;
        while ((at = strstr(at, *words)) != NULL) {
            if ((at == flags || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                break;
            at += length;
        }
        if (!at)
            return false;
    }
    return true;
}

static unsigned isa_of_flags(const char *flags)
{
    static const char *const avx2[] = {"avx2", "fma", "f16c", NULL};
    static const char *const avx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl", NULL};
    static const char *const vnni[] = {"avx512_vnni", NULL};
    return isa_bits(has_flags(flags, avx2), has_flags(flags, avx512), has_flags(flags, vnni));
}

static unsigned isa_of_processor(void)
{
#if defined(__x86_64__)
    /* clang 14 does not know "f16c" here; the builtin's avx2 has asked the operating system. */
    unsigned a, b, c = 0, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return isa_bits(avx2, avx512, __builtin_cpu_supports("avx512vnni"));
#else
    return CB_ISA_PORTABLE;
#endif
}

static int number(const char *text, const char *key)
{
    char value[32];
    return cb__sysfile_value(text, key, value, sizeof value) ? (int)strtol(value, NULL, 0) : 0;
}

static void read_x86(const char *text, cb__topology *t)
{
    cb__sysfile_value(text, "model name", t->model_name, sizeof t->model_name);
    t->family = number(text, "cpu family");
    t->model = number(text, "model");
    t->stepping = number(text, "stepping");
    if (strcmp(t->vendor, "AuthenticAMD") == 0)
        LOOK_UP(t, amd, t->family, t->model);
    else if (strcmp(t->vendor, "GenuineIntel") == 0)
        LOOK_UP(t, intel, t->family, t->model);
}

static void read_arm(const char *text, cb__topology *t)
{
    int implementer = number(text, "CPU implementer"), part = number(text, "CPU part");
    snprintf(t->model_name, sizeof t->model_name, "implementer 0x%02x part 0x%03x",
             (unsigned)implementer, (unsigned)part);
    if (implementer != 0x41)
        return;
    snprintf(t->vendor, sizeof t->vendor, "ARM");
    LOOK_UP(t, arm, 0, part);
}

void cb__uarch_read(const char *root, cb__topology *t)
{
    snprintf(t->vendor, sizeof t->vendor, "unknown");
    snprintf(t->uarch, sizeof t->uarch, "unknown");
    cb__buf text = CB__BUF_INIT;
    cb__sysfile_read(&text, root, "/proc/cpuinfo");
    const char *info = cb__buf_text(&text);
    char flags[8192] = "", value[32];
    cb__sysfile_value(info, "flags", flags, sizeof flags);
    t->isa = root[0] == '\0' ? isa_of_processor() : isa_of_flags(flags);
    if (cb__sysfile_value(info, "vendor_id", t->vendor, sizeof t->vendor))
        read_x86(info, t);
    else if (cb__sysfile_value(info, "CPU implementer", value, sizeof value))
        read_arm(info, t);
    cb__buf_fini(&text);
}
