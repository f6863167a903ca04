/* Any bytes as a kernel module's file, and as the notes of one: ids that are text, or none. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/elf_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void note_lies_within(const uint8_t *data, size_t size, const char *owner, uint32_t type)
{
    size_t n = 0;
    const unsigned char *desc = cb__elf_note(data, size, owner, type, &n);
    require(!desc || (desc >= data && n <= size && desc <= data + size - n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char build[41], source[65];
    cb__file_build_id(data, size, build, sizeof build);
    cb__file_source_id(data, size, source, sizeof source);
    require(strlen(build) % 2 == 0 && strspn(build, "0123456789abcdef") == strlen(build));
    require(strlen(source) < sizeof source);
    note_lies_within(data, size, "GNU", 3);
    note_lies_within(data, size, "coldbench", 1);
    return 0;
}
