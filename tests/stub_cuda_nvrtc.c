/* An NVRTC that compiles nothing, beside the stub driver (stub_cuda.h), which loads what it makes:
 * the head of a PTX file, and the source. A source with "#error WORDS" at the start of a line does
 * not compile. STUB_NVRTC_VERSION, 12040 for 12.4, is set where it is built. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/nvrtc.h"

enum { OK = 0, INVALID_PROGRAM = 4 };

#define EXPORTED __attribute__((visibility("default")))
#define DECLARE(name, parameters) EXPORTED cb__nvrtc_result name parameters;
CB__NVRTC_TABLE(DECLARE)
#undef DECLARE
EXPORTED const char *nvrtcGetErrorString(cb__nvrtc_result result);

struct cb__nvrtc_program_st {
    char *name, *text, *image, *log;
};

static char *joined(const char *format, const char *a, const char *b)
{
    char *text = NULL;
    return asprintf(&text, format, a, b) < 0 ? NULL : text;
}

const char *nvrtcGetErrorString(cb__nvrtc_result result)
{
    return result == CB__NVRTC_DOES_NOT_COMPILE ? "NVRTC_ERROR_COMPILATION"
                                                : "NVRTC_ERROR_INVALID_PROGRAM";
}

cb__nvrtc_result nvrtcVersion(int *major, int *minor)
{
    *major = STUB_NVRTC_VERSION / 1000;
    *minor = STUB_NVRTC_VERSION % 1000 / 10;
    return OK;
}

static const int archs[] = {90, 75, 80, 86};

cb__nvrtc_result nvrtcGetNumSupportedArchs(int *count)
{
    *count = sizeof archs / sizeof *archs;
    return OK;
}

cb__nvrtc_result nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, archs, sizeof archs);
    return OK;
}

cb__nvrtc_result nvrtcCreateProgram(cb__nvrtc_program *program, const char *text, const char *name,
                                    int count, const char *const *headers, const char *const *names)
{
    (void)count, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    (*program)->name = strdup(name);
    (*program)->text = strdup(text);
    (*program)->log = strdup("");
    return OK;
}

cb__nvrtc_result nvrtcDestroyProgram(cb__nvrtc_program *program)
{
    free((*program)->name);
    free((*program)->text);
    free((*program)->image);
    free((*program)->log);
    free(*program);
    *program = NULL;
    return OK;
}

cb__nvrtc_result nvrtcCompileProgram(cb__nvrtc_program program, int count,
                                     const char *const *options)
{
    const char *wrong = strstr(program->text, "\n#error "), *arch = "";
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0)
            arch = options[i] + 19;
    if (wrong) {
        char *words = strndup(wrong + 8, strcspn(wrong + 8, "\n"));
        free(program->log);
        program->log = joined("%s(1): error: #error directive: %s\n\n", program->name, words);
        free(words);
        return CB__NVRTC_DOES_NOT_COMPILE;
    }
    free(program->image);
    program->image = joined(".version 8.0\n.target %s\n%s", arch, program->text);
    return OK;
}

cb__nvrtc_result nvrtcGetProgramLogSize(cb__nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return OK;
}

cb__nvrtc_result nvrtcGetProgramLog(cb__nvrtc_program program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return OK;
}

cb__nvrtc_result nvrtcGetPTXSize(cb__nvrtc_program program, size_t *bytes)
{
    *bytes = program->image ? strlen(program->image) + 1 : 0;
    return program->image ? OK : INVALID_PROGRAM;
}

cb__nvrtc_result nvrtcGetPTX(cb__nvrtc_program program, char *image)
{
    memcpy(image, program->image, strlen(program->image) + 1);
    return OK;
}

cb__nvrtc_result nvrtcGetCUBINSize(cb__nvrtc_program program, size_t *bytes)
{
    return nvrtcGetPTXSize(program, bytes);
}

cb__nvrtc_result nvrtcGetCUBIN(cb__nvrtc_program program, char *image)
{
    return nvrtcGetPTX(program, image);
}
