#include "host/elf_note.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_NOTE = 1 };

static size_t padded(size_t size)
{
    return (size + 3) / 4 * 4;
}

const unsigned char *cb__elf_note(const unsigned char *notes, size_t size, const char *owner,
                                  uint32_t type, size_t *desc_size)
{
    size_t at = 0, owner_size = strlen(owner) + 1;
    ElfW(Nhdr) note;
    while (size - at >= sizeof note) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, desc = name + padded(note.n_namesz);
        size_t next = desc + padded(note.n_descsz);
        if (next > size)
            return NULL;
        if (note.n_type == type && note.n_namesz == owner_size &&
            !memcmp(notes + name, owner, owner_size)) {
            *desc_size = note.n_descsz;
            return notes + desc;
        }
        at = next;
    }
    return NULL;
}

/* In all note segments of a file of this machine's ELF class. */
static const unsigned char *find(const void *file, size_t size, const char *owner, uint32_t type,
                                 size_t *desc_size)
{
    const unsigned char *bytes = file;
    ElfW(Ehdr) head;
    if (size < sizeof head || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return NULL;
    memcpy(&head, bytes, sizeof head);
    for (size_t i = 0; i < head.e_phnum && head.e_phentsize == sizeof(ElfW(Phdr)); i++) {
        ElfW(Phdr) p;
        if (head.e_phoff > size || (i + 1) * sizeof p > size - head.e_phoff)
            return NULL;
        memcpy(&p, bytes + head.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_NOTE || p.p_offset > size || p.p_filesz > size - p.p_offset)
            continue;
        const unsigned char *desc =
            cb__elf_note(bytes + p.p_offset, p.p_filesz, owner, type, desc_size);
        if (desc)
            return desc;
    }
    return NULL;
}

void cb__hex_text(const unsigned char *bytes, size_t n, char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < n && 2 * i + 2 < text_size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

void cb__file_build_id(const void *file, size_t size, char *text, size_t text_size)
{
    size_t n = 0;
    const unsigned char *id = find(file, size, "GNU", NT_GNU_BUILD_ID, &n);
    cb__hex_text(id, id ? n : 0, text, text_size);
}

void cb__file_source_id(const void *file, size_t size, char *text, size_t text_size)
{
    size_t n = 0;
    const unsigned char *id = find(file, size, "coldbench", SOURCE_NOTE, &n);
    int length = !id ? 0 : n < text_size ? (int)n : (int)text_size; /* what is longer is cut */
    snprintf(text, text_size, "%.*s", length, id ? (const char *)id : "");
}
