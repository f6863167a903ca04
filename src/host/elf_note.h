/* elf_note.h: notes in ELF objects: the linker's build id, and the source id of a kernel module. */
#ifndef CB_HOST_ELF_NOTE_H
#define CB_HOST_ELF_NOTE_H

#include <stddef.h>
#include <stdint.h>

/* The contents of the first note of `owner` and `type` among the notes at `notes`; NULL: none.
 * Points into them. */
const unsigned char *cb__elf_note(const unsigned char *notes, size_t size, const char *owner,
                                  uint32_t type, size_t *desc_size);
/* Of the bytes of a whole file, which may be anything: lower-case hexadecimal build id; the source
 * id that cmake/source_note.cmake puts into modules. "" where there is none. */
void cb__file_build_id(const void *file, size_t size, char *text, size_t text_size);
void cb__file_source_id(const void *file, size_t size, char *text, size_t text_size);
/* Bytes as lower-case hexadecimal, as many as fit. */
void cb__hex_text(const unsigned char *bytes, size_t n, char *text, size_t text_size);

#endif
