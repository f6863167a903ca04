#include "host/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct found {
    char *text;
    size_t size;
} found;

static void hex(const unsigned char *bytes, size_t n, found *f)
{
    for (size_t i = 0; i < n && 2 * i + 2 < f->size; i++)
        snprintf(f->text + 2 * i, 3, "%02x", bytes[i]);
}

static void notes(const unsigned char *at, const unsigned char *end, found *f)
{
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const unsigned char *name = at + sizeof note;
        const unsigned char *desc = name + (note.n_namesz + 3) / 4 * 4;
        const unsigned char *next = desc + (note.n_descsz + 3) / 4 * 4;
        if (next > end)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(name, "GNU", 4)) {
            hex(desc, note.n_descsz, f);
            return;
        }
        at = next;
    }
}

/* The first object reported is the program itself. */
static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_NOTE)
            continue;
        const unsigned char *at = (const unsigned char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
        notes(at, at + p->p_memsz, arg);
    }
    return 1;
}

void cb__build_id(char *text, size_t size)
{
    found f = {text, size};
    text[0] = '\0';
    dl_iterate_phdr(visit, &f);
}
