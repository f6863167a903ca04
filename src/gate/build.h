/* build.h: one side of a gate: the kernel modules of one build, wherever they come from. */
#ifndef CB_GATE_BUILD_H
#define CB_GATE_BUILD_H

#include "kernel/module.h"

typedef struct cb__build_module {
    char name[80]; /* of its file, without .so */
    char path[480];
    char build_id[64], source_id[72]; /* "" where there is none */
    cb__suite suite;                  /* this module alone */
} cb__build_module;

typedef struct cb__build {
    const char *asked; /* borrowed */
    char folder[400];  /* exported to; removed by cb__build_close */
    bool exported;
    char tool_source_id[72]; /* of the program that exported; "" */
    cb__build_module modules[CB__SUITE_MAX];
    int nmodules;
} cb__build;

/* `path` is a kernel module (NAME.so); a folder that `coldbench kernels --export` wrote, or one of
 * NAME.so files; a coldbench program, or its build folder: its modules are exported to a folder of
 * their own first. Modules are loaded in a child before they are loaded here. `side` ("base") is
 * what messages begin with. CB_USAGE: nothing of these; a program or a module of a build folder
 * that is older than its sources; an index or a module of another ABI. cb__build_close after, also
 * on failure; *out is zero before. */
cb_status cb__build_open(const char *path, const char *side, cb__build *out, cb_error *err);
void cb__build_close(cb__build *build);

/* The kernel and the module it is in; NULL: none. */
const cb_kernel *cb__build_find(const cb__build *build, const char *kernel, int *module);

/* program.c. Runs PROGRAM kernels --export FOLDER. */
cb_status cb__program_export(const char *program, const char *folder, cb_error *err);
/* CB_USAGE where the program stands in a CMake build folder and a source is newer than it: names
 * the source and the command that rebuilds it. */
cb_status cb__program_is_fresh(const char *program, cb_error *err);
/* The same of BUILD/modules/NAME.so, where its build has left the list of the module's sources
 * (cmake/source_note.cmake); CB_OK where there is none. */
cb_status cb__module_is_fresh(const char *module, const char *name, cb_error *err);

#endif
