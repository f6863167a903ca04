#include "host/build_id.h"

#include <link.h>

#include "host/elf_note.h"

typedef struct found {
    char *text;
    size_t size;
} found;

/* The first object reported is the program itself. */
static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    found *f = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        size_t n = 0;
        if (p->p_type != PT_NOTE)
            continue;
        const unsigned char *notes =
            (const unsigned char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
        const unsigned char *id = cb__elf_note(notes, p->p_memsz, "GNU", NT_GNU_BUILD_ID, &n);
        if (id)
            cb__hex_text(id, n, f->text, f->size);
    }
    return 1;
}

void cb__build_id(char *text, size_t size)
{
    found f = {text, size};
    text[0] = '\0';
    dl_iterate_phdr(visit, &f);
}
