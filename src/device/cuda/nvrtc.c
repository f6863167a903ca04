#include "device/cuda/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"

enum { NEWEST_KNOWN = 13, PATH_BYTES = 256, LOG_SHOWN = 700 };

/* ---- one library ---- */

static const struct {
    size_t member; /* its offset in cb__nvrtc */
    const char *symbol;
} entries[] = {
#define ENTRY(name, parameters) {offsetof(cb__nvrtc, name), #name},
    CB__NVRTC_TABLE(ENTRY)
#undef ENTRY
        {offsetof(cb__nvrtc, nvrtcGetErrorString), "nvrtcGetErrorString"},
};

static cb_status check(const cb__nvrtc *nvrtc, cb__nvrtc_result result, const char *call,
                       cb_error *err)
{
    if (!result)
        return CB_OK;
    const char *words = nvrtc->nvrtcGetErrorString(result);
    return cb_error_set(err, result == CB__NVRTC_NO_MEMORY ? CB_NO_MEMORY : CB_INTERNAL, "%s: %s",
                        call, words ? words : "no reason given");
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static cb_status read_archs(cb__nvrtc *nvrtc, cb_error *err)
{
    cb_status status =
        check(nvrtc, nvrtc->nvrtcGetNumSupportedArchs(&nvrtc->narchs), "NVRTC's archs", err);
    if (status == CB_OK && (nvrtc->narchs < 1 || nvrtc->narchs > CB__NVRTC_ARCHS_MAX))
        status = cb_error_set(err, CB_INTERNAL, "NVRTC's archs: %d of them", nvrtc->narchs);
    if (status == CB_OK)
        status = check(nvrtc, nvrtc->nvrtcGetSupportedArchs(nvrtc->archs), "NVRTC's archs", err);
    if (status == CB_OK)
        qsort(nvrtc->archs, (size_t)nvrtc->narchs, sizeof *nvrtc->archs, ascending);
    return status;
}

static cb_status look_up(cb__dl *library, const char *name, cb__nvrtc *nvrtc, cb_error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = cb__dl_symbol(library, entries[i].symbol);
        if (!symbol)
            return cb_error_set(err, CB_UNAVAILABLE, "%s has no %s", name, entries[i].symbol);
        memcpy((char *)nvrtc + entries[i].member, &symbol, sizeof symbol);
    }
    return CB_OK;
}

static cb_status open_file(const char *name, cb__nvrtc *nvrtc, cb_error *err)
{
    int major, minor;
    cb__dl *library = NULL;
    void *code;
    Dl_info place;
    memset(nvrtc, 0, sizeof *nvrtc);
    cb_status status = cb__dl_open(name, &library, err);
    if (status == CB_OK && (status = look_up(library, name, nvrtc, err)) != CB_OK)
        cb__dl_close(library);
    if (status == CB_OK)
        status = check(nvrtc, nvrtc->nvrtcVersion(&major, &minor), "nvrtcVersion", err);
    if (status == CB_OK)
        status = read_archs(nvrtc, err);
    if (status != CB_OK) {
        memset(nvrtc, 0, sizeof *nvrtc);
        return status;
    }
    nvrtc->is_loaded = true;
    nvrtc->version = major * 1000 + minor * 10;
    memcpy(&code, &nvrtc->nvrtcVersion, sizeof code);
    snprintf(nvrtc->path, sizeof nvrtc->path, "%s",
             dladdr(code, &place) && place.dli_fname ? place.dli_fname : name);
    return CB_OK;
}

/* ---- which library ---- */

/* A driver loads what a compiler of its own major version made, or of an earlier one. */
static bool is_understood(const cb__nvrtc *nvrtc, int driver)
{
    return !driver || nvrtc->version / 1000 <= driver / 1000;
}

static cb_status too_new(const cb__nvrtc *nvrtc, int driver, cb_error *err)
{
    return cb_error_set(err, CB_UNAVAILABLE,
                        "NVRTC %d.%d (%s) is newer than the NVIDIA driver, which serves CUDA "
                        "%d.%d: a newer driver is needed, or NVRTC %d (COLDBENCH_NVRTC=FILE)",
                        nvrtc->version / 1000, nvrtc->version % 1000 / 10, nvrtc->path,
                        driver / 1000, driver % 1000 / 10, driver / 1000);
}

/* The first of the files of this name, by the loader and then in the folders where toolkits are. */
static bool open_named(const char *name, cb__nvrtc *nvrtc)
{
    const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
                           "/usr/local/cuda-*"};
    static const char *const folders[] = {"lib64", "targets/*/lib"};
    bool found = open_file(name, nvrtc, NULL) == CB_OK;
    for (size_t i = 0; i < 2 * sizeof homes / sizeof *homes && !found; i++) {
        const char *home = homes[i / 2];
        char pattern[PATH_BYTES];
        glob_t files;
        if (!home || snprintf(pattern, sizeof pattern, "%s/%s/%s", home, folders[i % 2], name) >=
                         (int)sizeof pattern)
            continue;
        if (!glob(pattern, 0, NULL, &files)) {
            for (size_t k = files.gl_pathc; k > 0 && !found; k--) /* newer versions sort last */
                found = open_file(files.gl_pathv[k - 1], nvrtc, NULL) == CB_OK;
        }
        globfree(&files);
    }
    return found;
}

static cb_status open_chosen(const char *file, int driver, cb__nvrtc *nvrtc, cb_error *err)
{
    cb_status status = open_file(file, nvrtc, err);
    if (status != CB_OK)
        cb_error_prefix(err, "COLDBENCH_NVRTC");
    if (status == CB_OK && !is_understood(nvrtc, driver)) {
        status = too_new(nvrtc, driver, err);
        memset(nvrtc, 0, sizeof *nvrtc);
    }
    return status;
}

/* libnvrtc.so.11.2 is the name in all of 11.2 to 11.8. */
static void name_of(int major, char name[32])
{
    snprintf(name, 32, major == 11 ? "libnvrtc.so.%d.2" : "libnvrtc.so.%d", major);
}

cb_status cb__nvrtc_load(int driver, cb__nvrtc *nvrtc, cb_error *err)
{
    const char *chosen = getenv("COLDBENCH_NVRTC");
    const int newest = driver / 1000 > NEWEST_KNOWN ? driver / 1000 : NEWEST_KNOWN;
    cb_error newer = CB_ERROR_INIT;
    char name[32];
    memset(nvrtc, 0, sizeof *nvrtc);
    if (chosen && chosen[0])
        return open_chosen(chosen, driver, nvrtc, err);
    for (int major = newest; major >= 11; major--) {
        name_of(major, name);
        if (!open_named(name, nvrtc))
            continue;
        if (is_understood(nvrtc, driver))
            return CB_OK;
        too_new(nvrtc, driver, &newer);
        memset(nvrtc, 0, sizeof *nvrtc);
    }
    if (newer.status != CB_OK)
        return cb_error_set(err, newer.status, "%s", newer.message);
    name_of(newest, name);
    return cb_error_set(err, CB_UNAVAILABLE,
                        "no NVRTC, which compiles kernels for NVIDIA GPUs: %s and older ones are "
                        "not on the loader's paths, nor below CUDA_HOME, CUDA_PATH and "
                        "/usr/local/cuda*; install a CUDA toolkit, or the Python package "
                        "nvidia-cuda-nvrtc-cu%d and name its library by COLDBENCH_NVRTC=FILE",
                        name, driver && driver < 12000 ? 11 : 12);
}

/* ---- compiling ---- */

cb_status cb__nvrtc_choose(const cb__nvrtc *nvrtc, int driver, int capability,
                           cb__nvrtc_target *out, cb_error *err)
{
    int below = 0;
    for (int i = 0; i < nvrtc->narchs && nvrtc->archs[i] <= capability; i++)
        below = nvrtc->archs[i];
    out->cubin = below == capability;
    if (!below)
        return cb_error_set(err, CB_UNAVAILABLE,
                            "NVRTC %d.%d (%s) compiles for compute capability %d.%d and later, "
                            "and the device has %d.%d",
                            nvrtc->version / 1000, nvrtc->version % 1000 / 10, nvrtc->path,
                            nvrtc->archs[0] / 10, nvrtc->archs[0] % 10, capability / 10,
                            capability % 10);
    /* The driver reads machine code of every compiler of its major version, PTX only of those that
     * are no newer than itself. */
    if (!out->cubin && driver && nvrtc->version > driver)
        return cb_error_set(err, CB_UNAVAILABLE,
                            "NVRTC %d.%d (%s) does not know compute capability %d.%d, and its PTX "
                            "is too new for the NVIDIA driver, which serves CUDA %d.%d",
                            nvrtc->version / 1000, nvrtc->version % 1000 / 10, nvrtc->path,
                            capability / 10, capability % 10, driver / 1000, driver % 1000 / 10);
    const char *suffix = out->cubin && capability >= 90 && nvrtc->version >= 12000 ? "a" : "";
    snprintf(out->arch, sizeof out->arch, "%s_%d%s", out->cubin ? "sm" : "compute", below, suffix);
    return CB_OK;
}

/* The lines of a log that say what is wrong, on one line; else the log's end. */
static void errors_of(const char *log, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *line = log; *line && used + 1 < size;) {
        const char *end = strchrnul(line, '\n'), *word = strstr(line, ": error");
        if (!word)
            word = strstr(line, "error:");
        if (word && word < end) {
            int wrote = snprintf(text + used, size - used, "%s%.*s", used ? "; " : "",
                                 (int)(end - line), line);
            used += (size_t)wrote;
        }
        line = *end ? end + 1 : end;
    }
    if (!used) {
        size_t length = strlen(log);
        snprintf(text, size, "%s", log + (length > size - 1 ? length - (size - 1) : 0));
    }
}

static cb_status log_error(const cb__nvrtc *nvrtc, cb__nvrtc_program program,
                           cb__nvrtc_result result, const char *name, cb_error *err)
{
    char shown[LOG_SHOWN];
    size_t bytes = 0;
    char *log = NULL;
    if (!nvrtc->nvrtcGetProgramLogSize(program, &bytes) && bytes)
        log = calloc(bytes + 1, 1);
    if (log && nvrtc->nvrtcGetProgramLog(program, log))
        log[0] = '\0';
    errors_of(log ? log : "", shown, sizeof shown);
    free(log);
    const char *words = nvrtc->nvrtcGetErrorString(result);
    cb_status status = result == CB__NVRTC_DOES_NOT_COMPILE ? CB_USAGE
                       : result == CB__NVRTC_NO_MEMORY      ? CB_NO_MEMORY
                                                            : CB_INTERNAL;
    return cb_error_set(err, status, "cannot compile %.100s with NVRTC %d.%d: %s%s%s", name,
                        nvrtc->version / 1000, nvrtc->version % 1000 / 10,
                        words ? words : "no reason given", shown[0] ? ": " : "", shown);
}

static cb_status take_image(const cb__nvrtc *nvrtc, cb__nvrtc_program program, bool cubin,
                            cb__buf *image, cb_error *err)
{
    size_t bytes = 0;
    cb_status status =
        cubin ? check(nvrtc, nvrtc->nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize", err)
              : check(nvrtc, nvrtc->nvrtcGetPTXSize(program, &bytes), "nvrtcGetPTXSize", err);
    char *bytes_of = status == CB_OK ? calloc(bytes + 1, 1) : NULL;
    if (status == CB_OK && !bytes_of)
        status = cb_error_set(err, CB_NO_MEMORY, "no memory for %zu bytes of code", bytes);
    if (status == CB_OK)
        status = cubin ? check(nvrtc, nvrtc->nvrtcGetCUBIN(program, bytes_of), "nvrtcGetCUBIN", err)
                       : check(nvrtc, nvrtc->nvrtcGetPTX(program, bytes_of), "nvrtcGetPTX", err);
    if (status == CB_OK) {
        cb__buf_append(image, bytes_of, bytes);
        if (image->failed)
            status = cb_error_set(err, CB_NO_MEMORY, "no memory for %zu bytes of code", bytes);
    }
    free(bytes_of);
    return status;
}

cb_status cb__nvrtc_compile(const cb__nvrtc *nvrtc, const char *name, const char *text,
                            const char *const *options, int noptions, bool cubin, cb__buf *image,
                            cb_error *err)
{
    cb__nvrtc_program program = NULL;
    char file[128];
    snprintf(file, sizeof file, "%.100s.cu", name);
    cb_status status = check(nvrtc, nvrtc->nvrtcCreateProgram(&program, text, file, 0, NULL, NULL),
                             "nvrtcCreateProgram", err);
    if (status != CB_OK)
        return status;
    cb__nvrtc_result result = nvrtc->nvrtcCompileProgram(program, noptions, options);
    status = result ? log_error(nvrtc, program, result, name, err)
                    : take_image(nvrtc, program, cubin, image, err);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}
