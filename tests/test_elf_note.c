/* Notes in ELF files: found wherever they stand, and nothing is read past the end of what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <link.h>

#include "base/buf.h"
#include "host/build_id.h"
#include "host/elf_note.h"

/* ---- files that are made here ---- */

static void note(cb__buf *to, const char *owner, uint32_t type, const char *desc, size_t size)
{
    static const char zeros[4];
    ElfW(Nhdr) head = {
        .n_namesz = (uint32_t)strlen(owner) + 1, .n_descsz = (uint32_t)size, .n_type = type};
    cb__buf_append(to, (const char *)&head, sizeof head);
    cb__buf_append(to, owner, head.n_namesz);
    cb__buf_append(to, zeros, (4 - head.n_namesz % 4) % 4);
    cb__buf_append(to, desc, size);
    cb__buf_append(to, zeros, (4 - size % 4) % 4);
}

enum { HEADERS = 3 };

static ElfW(Ehdr) head_of(void)
{
    return (ElfW(Ehdr)){.e_ident = ELFMAG,
                        .e_phoff = sizeof(ElfW(Ehdr)),
                        .e_phnum = HEADERS,
                        .e_phentsize = sizeof(ElfW(Phdr))};
}

/* A segment of no notes, then two of notes. */
static void object(const ElfW(Ehdr) * head, const cb__buf *first, const cb__buf *second,
                   cb__buf *out)
{
    size_t at = sizeof *head + HEADERS * sizeof(ElfW(Phdr));
    ElfW(Phdr)
        p[HEADERS] = {{.p_type = PT_LOAD, .p_filesz = 1 << 30},
                      {.p_type = PT_NOTE, .p_offset = at, .p_filesz = first->size},
                      {.p_type = PT_NOTE, .p_offset = at + first->size, .p_filesz = second->size}};
    cb__buf_append(out, (const char *)head, sizeof *head);
    cb__buf_append(out, (const char *)p, sizeof p);
    cb__buf_append(out, cb__buf_text(first), first->size);
    cb__buf_append(out, cb__buf_text(second), second->size);
}

static void usual(const ElfW(Ehdr) * head, cb__buf *out)
{
    cb__buf first = CB__BUF_INIT, second = CB__BUF_INIT;
    note(&first, "GNU", NT_GNU_ABI_TAG, "\0\1\2\3", 4);
    note(&first, "other", NT_GNU_BUILD_ID, "not this", 8);
    note(&second, "coldbench", 1, "the sources", 11);
    note(&second, "GNU", NT_GNU_BUILD_ID, "\x01\xab\xff", 3);
    object(head, &first, &second, out);
    cb__buf_fini(&first);
    cb__buf_fini(&second);
}

typedef struct ids {
    char build[64], source[80];
} ids;

/* From a copy of just that size, so that a sanitizer sees a read past it. */
static ids ids_of(const void *bytes, size_t size)
{
    ids found;
    void *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    cb__file_build_id(exact, size, found.build, sizeof found.build);
    cb__file_source_id(exact, size, found.source, sizeof found.source);
    free(exact);
    return found;
}

static void notes_are_found(void **state)
{
    (void)state;
    cb__buf file = CB__BUF_INIT;
    ElfW(Ehdr) head = head_of();
    usual(&head, &file);
    ids found = ids_of(file.text, file.size);
    assert_string_equal(found.build, "01abff");
    assert_string_equal(found.source, "the sources");
    cb__buf_fini(&file);
}

/* A cut file has what lies before the cut, and no more. */
static void a_cut_file_is_read_to_its_end(void **state)
{
    (void)state;
    cb__buf file = CB__BUF_INIT;
    ElfW(Ehdr) head = head_of();
    usual(&head, &file);
    for (size_t size = 0; size < file.size; size++) {
        ids found = ids_of(file.text, size);
        assert_string_equal(found.build, "");
        assert_string_equal(found.source, "");
    }
    cb__buf_fini(&file);
}

typedef struct oddity {
    const char *name;
    size_t at; /* byte of the file that is set */
    unsigned char value;
    bool found; /* all the same */
} oddity;

#define EHDR(member) offsetof(ElfW(Ehdr), member)
#define PHDR(i, member)                                                                            \
    (sizeof(ElfW(Ehdr)) + (i) * sizeof(ElfW(Phdr)) + offsetof(ElfW(Phdr), member))
#define NOTES (sizeof(ElfW(Ehdr)) + HEADERS * sizeof(ElfW(Phdr)))
#define FIRST_NOTES (16 + 4 + 20 + 8) /* of the first segment */

static const oddity oddities[] = {
    {"nothing", 0, ELFMAG0, true},
    {"no ELF file", 0, 'X', false},
    {"program headers far behind the end", EHDR(e_phoff) + 4, 0xff, false},
    {"program headers that end behind it", EHDR(e_phnum), 0xff, true},
    {"no program headers", EHDR(e_phnum), 0, false},
    {"of another class", EHDR(e_phentsize), 32, false},
    {"a segment far behind the end", PHDR(1, p_offset) + 6, 0xff, true},
    {"a segment longer than the file", PHDR(1, p_filesz) + 6, 0xff, true},
    {"the segment that counts behind the end", PHDR(2, p_offset) + 6, 0xff, false},
    {"the segment that counts too long", PHDR(2, p_filesz) + 1, 0xff, false},
    {"an owner longer than the segment", NOTES + FIRST_NOTES + 3, 0xff, false},
    {"contents longer than the segment", NOTES + FIRST_NOTES + 7, 0xff, false},
};

static void what_is_odd_is_passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof oddities / sizeof *oddities; i++) {
        const oddity *o = &oddities[i];
        cb__buf file = CB__BUF_INIT;
        ElfW(Ehdr) head = head_of();
        usual(&head, &file);
        file.text[o->at] = (char)o->value;
        ids found = ids_of(file.text, file.size);
        if (!strcmp(found.source, "the sources") != o->found ||
            !strcmp(found.build, "01abff") != o->found)
            fail_msg("%s: build '%s', source '%s'", o->name, found.build, found.source);
        cb__buf_fini(&file);
    }
}

/* The owner and the type both count, and the first of two is taken. */
static void the_first_of_owner_and_type_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        uint32_t type;
        const char *desc; /* NULL: none */
    } rows[] = {{"a", 1, "one"}, {"a", 2, "two"},  {"ab", 1, "three"},
                {"ab", 2, NULL}, {"abc", 1, NULL}, {"", 1, NULL}};
    cb__buf notes = CB__BUF_INIT;
    note(&notes, "a", 2, "two", 3);
    note(&notes, "ab", 1, "three", 5);
    note(&notes, "a", 1, "one", 3);
    note(&notes, "a", 1, "another", 7);
    const ElfW(Nhdr) nobody = {.n_type = 1};
    cb__buf_append(&notes, (const char *)&nobody, sizeof nobody);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size = 0;
        const unsigned char *desc = cb__elf_note((const unsigned char *)notes.text, notes.size,
                                                 rows[i].owner, rows[i].type, &size);
        assert_int_equal(desc != NULL, rows[i].desc != NULL);
        if (!desc)
            continue;
        assert_int_equal(size, strlen(rows[i].desc));
        assert_memory_equal(desc, rows[i].desc, size);
    }
    cb__buf_fini(&notes);
}

static void bytes_are_cut_to_what_fits(void **state)
{
    (void)state;
    static const struct {
        size_t room;
        const char *text;
    } rows[] = {{1, ""}, {2, ""}, {3, "00"}, {4, "00"}, {5, "00ff"}, {7, "00ff10"}, {9, "00ff10"}};
    static const unsigned char bytes[] = {0, 0xff, 0x10};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[16] = "###############";
        cb__hex_text(bytes, sizeof bytes, text, rows[i].room);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(text[rows[i].room], '#');
    }
    cb__buf file = CB__BUF_INIT;
    char text[4];
    ElfW(Ehdr) head = head_of();
    usual(&head, &file);
    cb__file_build_id(file.text, file.size, text, sizeof text);
    assert_string_equal(text, "01");
    cb__file_source_id(file.text, file.size, text, sizeof text);
    assert_string_equal(text, "the");
    cb__buf_fini(&file);
}

/* ---- files of the linker's ---- */

static ids ids_of_file(const char *path)
{
    cb__buf file = CB__BUF_INIT;
    char chunk[4096];
    FILE *from = fopen(path, "re");
    assert_non_null(from);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, from)) > 0;)
        cb__buf_append(&file, chunk, n);
    fclose(from);
    ids found = ids_of(file.text, file.size);
    cb__buf_fini(&file);
    return found;
}

static void this_program_has_the_build_id_it_says(void **state)
{
    (void)state;
    char own[64];
    cb__build_id(own, sizeof own);
    ids found = ids_of_file("/proc/self/exe");
    assert_int_equal(strlen(own), 40); /* of SHA-1 */
    assert_string_equal(found.build, own);
    assert_string_equal(found.source, "");
}

static void a_module_says_its_sources(void **state)
{
    (void)state;
    ids found = ids_of_file(CB_BINARY_DIR "/modules/twin.so");
    assert_int_equal(strspn(found.build, "0123456789abcdef"), 40);
    assert_int_equal(strspn(found.source, "0123456789abcdef"), 64); /* of SHA-256 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_found),
        cmocka_unit_test(a_cut_file_is_read_to_its_end),
        cmocka_unit_test(what_is_odd_is_passed_over),
        cmocka_unit_test(the_first_of_owner_and_type_is_taken),
        cmocka_unit_test(bytes_are_cut_to_what_fits),
        cmocka_unit_test(this_program_has_the_build_id_it_says),
        cmocka_unit_test(a_module_says_its_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
