/* embed_cuda ROOT: writes the PTX that the program carries (src/device/cuda/embedded.h) into the
 * tree at ROOT, by the NVRTC that coldbench would take (COLDBENCH_NVRTC=FILE names another). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "default_codes.h"
#include "device/cuda/cuda.h"

/* PTX runs on its architecture and on all later ones. An entry for a later one is written where the
 * code for it is another, be it by the source or by the compiler. */
static const int archs[] = {75, 80, 90};
enum { NARCHS = sizeof archs / sizeof *archs, DONE_MAX = 4096 };

typedef struct ptx_file {
    char path[512];
    cb__buf text;
} ptx_file;

typedef struct embedding {
    const char *root;
    cb__nvrtc nvrtc;
    ptx_file files[CB__SUITE_MAX + 1];
    uint64_t done[DONE_MAX];
    int nfiles, ndone, entries;
} embedding;

/* ---- files ---- */

static cb_status write_file(const ptx_file *f, cb_error *err)
{
    FILE *file = f->text.failed ? NULL : fopen(f->path, "w");
    bool written = file && fwrite(f->text.text, 1, f->text.size, file) == f->text.size;
    if ((file && fclose(file)) || !written)
        return cb_error_set(err, CB_IO, "cannot write %s: %s", f->path, strerror(errno));
    printf("%8zu bytes  %s\n", f->text.size, f->path);
    return CB_OK;
}

/* Of the backend's own kernels without a module. */
static cb__buf *file_of(embedding *e, const cb__module *module)
{
    char path[sizeof e->files->path];
    int i = 0;
    if (module)
        snprintf(path, sizeof path, "%.200s/src/kernel/%.200s/cuda.ptx", e->root, module->origin);
    else
        snprintf(path, sizeof path, "%.200s/src/device/cuda/support.ptx", e->root);
    while (i < e->nfiles && strcmp(e->files[i].path, path) != 0)
        i++;
    if (i == e->nfiles)
        memcpy(e->files[e->nfiles++].path, path, sizeof path);
    return &e->files[i].text;
}

/* ---- one code ---- */

/* NVRTC 12 puts 50 constants of its own into every image, which no code of ours names. */
static bool is_code(const char *line, size_t size)
{
    return size > 0 && strncmp(line, "//", 2) != 0 &&
           !(strncmp(line, ".global", 7) == 0 && memmem(line, size, "nv6target", 9));
}

/* Without comments, blank lines and indentation. */
static void add_lines(const char *ptx, cb__buf *out)
{
    for (const char *line = ptx, *end; *line; line = end + (*end != '\0')) {
        line += strspn(line, "\t ");
        end = line + strcspn(line, "\n");
        size_t size = (size_t)(end - line);
        if (is_code(line, size))
            cb__buf_printf(out, "%.*s\n", (int)size, line);
    }
}

/* What is behind the lines that name version and architecture. */
static const char *body(const cb__buf *lines)
{
    const char *at = strstr(cb__buf_text(lines), "\n.address_size");
    return at ? at : cb__buf_text(lines);
}

static cb_status compile(const embedding *e, const cb__cuda_source *source, int arch,
                         cb__buf *lines, cb_error *err)
{
    char option[40];
    const char *const options[] = {option, "--std=c++17"};
    cb__buf text = CB__BUF_INIT, ptx = CB__BUF_INIT;
    snprintf(option, sizeof option, "--gpu-architecture=compute_%d", arch);
    cb__cuda_source_text(source, &text);
    cb_status status = cb__nvrtc_compile(&e->nvrtc, source->name, cb__buf_text(&text), options, 2,
                                         false, &ptx, err);
    if (status == CB_OK)
        add_lines(ptx.text, lines);
    cb__buf_fini(&text);
    cb__buf_fini(&ptx);
    return status;
}

static void head(const embedding *e, const cb__cuda_source *source, int arch, cb__buf *out)
{
    cb__buf_printf(out, "//@ %016llx %d %d %s", (unsigned long long)cb__cuda_source_digest(source),
                   arch, e->nvrtc.version, source->name);
    for (const char *const *macro = source->macros; macro && *macro; macro++)
        cb__buf_printf(out, " %s", *macro);
    cb__buf_puts(out, "\n");
}

static cb_status add(embedding *e, const cb__cuda_source *source, int least, cb__buf *out,
                     cb_error *err)
{
    cb__buf before = CB__BUF_INIT;
    cb_status status = CB_OK;
    for (int i = 0; i < NARCHS && status == CB_OK; i++) {
        cb__buf lines = CB__BUF_INIT;
        if (archs[i] < least)
            continue;
        status = compile(e, source, archs[i], &lines, err);
        if (status == CB_OK && strcmp(body(&before), body(&lines)) != 0) {
            head(e, source, archs[i], out);
            cb__buf_append(out, lines.text, lines.size);
            e->entries++;
        }
        cb__buf_fini(&before);
        before = lines;
    }
    cb__buf_fini(&before);
    return status;
}

static bool is_done(embedding *e, uint64_t digest)
{
    for (int i = 0; i < e->ndone; i++)
        if (e->done[i] == digest)
            return true;
    if (e->ndone < DONE_MAX)
        e->done[e->ndone++] = digest;
    return false;
}

static cb_status embed(void *arg, const char *text, const cb__case *c, cb_error *err)
{
    embedding *e = arg;
    cb__cuda_constants constants = {0};
    cb__cuda_source source = cb__cuda_support_source;
    int least = archs[0];
    cb_status status = CB_OK;
    (void)text;
    if (c) {
        const cb__code code = cb__case_code(c);
        status = cb__cuda_source_of(&code, &constants, &source, err);
        least = c->impl->device->least;
    }
    if (status == CB_OK && !is_done(e, cb__cuda_source_digest(&source)))
        status = add(e, &source, least, file_of(e, c ? c->module : NULL), err);
    cb__cuda_constants_fini(&constants);
    return status;
}

static cb_status load_nvrtc(embedding *e, cb_error *err)
{
    cb_status status = cb__nvrtc_load(0, &e->nvrtc, err);
    if (status == CB_OK && e->nvrtc.version != EMBEDDED_VERSION)
        return cb_error_set(err, CB_USAGE, "%s is NVRTC %d.%d, and PTX of %d.%d is wanted",
                            e->nvrtc.path, e->nvrtc.version / 1000, e->nvrtc.version % 1000 / 10,
                            EMBEDDED_VERSION / 1000, EMBEDDED_VERSION % 1000 / 10);
    return status;
}

int main(int argc, char **argv)
{
    static embedding e;
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    if (argc != 2) {
        fprintf(stderr, "usage: embed_cuda ROOT\n");
        return 2;
    }
    e.root = argv[1];
    cb_status status = cb__suite_open(NULL, 0, false, &suite, &err);
    if (status == CB_OK) {
        status = load_nvrtc(&e, &err);
        if (status == CB_OK)
            status = each_default_code(&suite, embed, &e, &err);
        for (int i = 0; i < e.nfiles && status == CB_OK; i++)
            status = write_file(&e.files[i], &err);
        cb__suite_close(&suite);
    }
    for (int i = 0; i < e.nfiles; i++)
        cb__buf_fini(&e.files[i].text);
    if (status != CB_OK) {
        fprintf(stderr, "embed_cuda: %s\n", err.message);
        return 1;
    }
    printf("%d entries of %d codes by NVRTC %d.%d (%s)\n", e.entries, e.ndone,
           e.nvrtc.version / 1000, e.nvrtc.version % 1000 / 10, e.nvrtc.path);
    return 0;
}
