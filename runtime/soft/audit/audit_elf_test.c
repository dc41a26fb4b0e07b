/*
 * Audit ELF: an object made here, each mistake that it may have, and this program's own file, cut
 * and changed.
 */
#include "audit/audit_elf.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object with everything that audit_elf.c reads. Its one segment maps the whole file, and so the
 * code of its function. */
struct object {
    Elf64_Ehdr header;
    Elf64_Phdr segments[3]; /* code, loader, dynamic section */
    Elf64_Shdr sections[4]; /* none, texts, symbols, .nvFatBinSegment */
    Elf64_Sym symbols[3];
    Elf64_Dyn entries[4];
    char texts[96];
    unsigned char code[32];
};

enum { REGISTER = 1, SECTION = 25, LIBRARY = 42, LOADER = 58 };

#define AT(member) offsetof(struct object, member)

static struct object whole(void) {
    struct object object = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_DYN,
#if defined(__aarch64__)
                   .e_machine = EM_AARCH64,
#else
                   .e_machine = EM_X86_64,
#endif
                   .e_phoff = AT(segments),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 3,
                   .e_shoff = AT(sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 4,
                   .e_shstrndx = 1},
        .segments =
            {{.p_type = PT_LOAD,
              .p_flags = PF_R | PF_X,
              .p_filesz = sizeof(struct object),
              .p_memsz = sizeof(struct object) + 100},
             {.p_type = PT_INTERP, .p_offset = AT(texts) + LOADER, .p_filesz = 18, .p_memsz = 18},
             {.p_type = PT_DYNAMIC,
              .p_offset = AT(entries),
              .p_filesz = sizeof(Elf64_Dyn[4]),
              .p_memsz = sizeof(Elf64_Dyn[4])}},
        .sections = {{0},
                     {.sh_type = SHT_STRTAB, .sh_offset = AT(texts), .sh_size = 96},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = AT(symbols),
                      .sh_link = 1,
                      .sh_size = sizeof(Elf64_Sym[3])},
                     {.sh_type = SHT_PROGBITS, .sh_name = SECTION}},
        .symbols = {{0},
                    {.st_name = REGISTER,
                     .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                     .st_shndx = 1,
                     .st_value = AT(code),
                     .st_size = 32},
                    {.st_name = LIBRARY,
                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                     .st_shndx = 1,
                     .st_value = AT(code),
                     .st_size = 8}},
        .entries = {{.d_tag = DT_NEEDED, .d_un.d_val = LIBRARY},
                    {.d_tag = DT_STRTAB, .d_un.d_val = AT(texts)},
                    {.d_tag = DT_NEEDED, .d_un.d_val = LOADER}},
    };
    memcpy(object.texts + REGISTER, "__cudaRegisterFatBinary", 24);
    memcpy(object.texts + SECTION, ".nvFatBinSegment", 17);
    memcpy(object.texts + LIBRARY, "libcudart.so.13", 16);
    memcpy(object.texts + LOADER, "/lib/ld-linux.so.2", 19);
    return object;
}

/* Reads all that a file says. Returns the number of functions, or -1 where it is refused. */
static int read_all(const void *bytes, size_t size) {
    struct audit_elf elf;
    struct audit_cursor at = {0};
    struct audit_function function;
    int count = 0;
    size_t length = 0;
    if (!audit_elf_open(&elf, bytes, size)) return -1;
    while (audit_elf_function(&elf, &at, &function)) {
        length += strlen(function.name);
        count += function.is_defined;
    }
    const char *loader = audit_elf_loader(&elf);
    if (loader != NULL) length += strlen(loader);
    for (unsigned i = 0; i < 4; i++) {
        const char *needed = audit_elf_dynamic(&elf, DT_NEEDED, i);
        if (needed != NULL) length += strlen(needed);
    }
    (void)audit_elf_runtime(&elf);
    (void)audit_elf_has_section(&elf, ".none");
    cr_assert(length < (1u << 30));
    return count;
}

Test(audit_elf, an_object_is_read) {
    const struct object object = whole();
    struct audit_elf elf;
    struct audit_cursor at = {0};
    struct audit_function function;
    cr_assert(audit_elf_open(&elf, &object, sizeof object));
    cr_assert(audit_elf_function(&elf, &at, &function));
    cr_assert_str_eq(function.name, "__cudaRegisterFatBinary");
    cr_assert(function.address == AT(code) && function.bytes == 32);
    cr_assert(function.is_defined && !function.is_exported);
    /* The first row of every table is undefined; data is no function. */
    cr_assert(!audit_elf_function(&elf, &at, &function));
    cr_assert_str_eq(audit_elf_dynamic(&elf, DT_NEEDED, 0), "libcudart.so.13");
    cr_assert_str_eq(audit_elf_dynamic(&elf, DT_NEEDED, 1), "/lib/ld-linux.so.2");
    cr_assert(audit_elf_dynamic(&elf, DT_NEEDED, 2) == NULL);
    cr_assert(audit_elf_dynamic(&elf, DT_RPATH, 0) == NULL);
    cr_assert(audit_elf_has_section(&elf, ".nvFatBinSegment"));
    cr_assert(!audit_elf_has_section(&elf, ".nvFatBin"));
}

Test(audit_elf, a_runtime_is_known_by_what_registers_device_code) {
    struct object object = whole();
    struct audit_elf elf;
    cr_assert(audit_elf_open(&elf, &object, sizeof object));
    cr_assert(audit_elf_runtime(&elf) == AUDIT_RUNTIME_NAMED);
    object.texts[REGISTER]++; /* as if it had been stripped */
    cr_assert(audit_elf_runtime(&elf) == AUDIT_RUNTIME_STRIPPED);
    object.texts[REGISTER]--;
    object.symbols[1].st_shndx = SHN_UNDEF; /* a shared runtime defines it */
    cr_assert(audit_elf_runtime(&elf) == AUDIT_RUNTIME_NONE);
    object.symbols[1] = (Elf64_Sym){0};
    object.texts[SECTION + 3]++;
    cr_assert(audit_elf_runtime(&elf) == AUDIT_RUNTIME_NONE);
}

Test(audit_elf, a_function_outside_the_code_is_none) {
    struct object object = whole();
    static const struct {
        uint64_t address, bytes;
    } outside[] = {{sizeof object, 1},      {AT(code), 1000},         {UINT64_MAX, 1},
                   {AT(code), UINT64_MAX},  {UINT64_MAX, UINT64_MAX}, {sizeof object + 50, 20},
                   {sizeof object - 13, 14}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        object.symbols[1].st_value = outside[i].address;
        object.symbols[1].st_size = outside[i].bytes;
        cr_assert(read_all(&object, sizeof object) == 0, "%zu", i);
    }
    object = whole();
    object.segments[0].p_flags = PF_R | PF_W;
    cr_assert(read_all(&object, sizeof object) == 0);
}

#define SPOIL(member, value)                                                                       \
    do {                                                                                           \
        struct object spoiled = whole();                                                           \
        spoiled.member = (value);                                                                  \
        cr_expect(read_all(&spoiled, sizeof spoiled) == -1, #member);                              \
    } while (0)
#define HIDE(member, value)                                                                        \
    do {                                                                                           \
        struct object spoiled = whole();                                                           \
        spoiled.member = (value);                                                                  \
        cr_expect(read_all(&spoiled, sizeof spoiled) == 0, #member);                               \
    } while (0)

Test(audit_elf, what_is_no_object_is_refused) {
    SPOIL(header.e_ident[1], 'M');
    SPOIL(header.e_ident[EI_CLASS], ELFCLASS32);
    SPOIL(header.e_ident[EI_DATA], ELFDATA2MSB);
    SPOIL(header.e_machine, EM_CUDA);
    SPOIL(header.e_type, ET_REL);
    SPOIL(header.e_phentsize, 32);
    SPOIL(header.e_phoff, UINT64_MAX - 100);
    SPOIL(header.e_phnum, 60000);
    HIDE(header.e_shentsize, 40);
    HIDE(header.e_shoff, UINT64_MAX);
    HIDE(header.e_shnum, 60000);
    HIDE(sections[2].sh_offset, UINT64_MAX);
    HIDE(sections[2].sh_size, UINT64_MAX);
    HIDE(sections[2].sh_link, 2);
    HIDE(sections[2].sh_link, 9);
    HIDE(sections[1].sh_offset, sizeof(struct object));
    HIDE(symbols[1].st_name, 5000);
    HIDE(segments[0].p_offset, UINT64_MAX);
    HIDE(segments[0].p_filesz, sizeof(struct object) + 1);
    HIDE(segments[0].p_memsz, 10);
    HIDE(segments[0].p_vaddr, UINT64_MAX - 5);
}

Test(audit_elf, texts_end_inside_the_file) {
    struct object object = whole();
    struct audit_elf elf;
    object.segments[1].p_filesz = 17; /* without its last byte */
    object.entries[0].d_un.d_val = sizeof object;
    object.entries[1].d_un.d_val = UINT64_MAX;
    cr_assert(audit_elf_open(&elf, &object, sizeof object));
    cr_assert(audit_elf_loader(&elf) == NULL);
    cr_assert(audit_elf_dynamic(&elf, DT_NEEDED, 0) == NULL);
    object = whole();
    object.entries[0].d_un.d_val = sizeof object;
    cr_assert(audit_elf_dynamic(&elf, DT_NEEDED, 0) == NULL);
    object = whole();
    memset(object.texts, 'x', sizeof object.texts);
    object.sections[1].sh_size = 90;
    cr_assert(read_all(&object, sizeof object) == 0);
}

/* Copies end where the file does, so that the sanitizers see what is read past it. */
Test(audit_elf, any_part_of_an_object_is_read_safely) {
    const struct object object = whole();
    for (size_t size = 0; size <= sizeof object; size++) {
        unsigned char *copy = malloc(size + 1);
        cr_assert(copy != NULL);
        memcpy(copy, &object, size);
        copy = realloc(copy, size > 0 ? size : 1);
        (void)read_all(copy, size);
        for (size_t i = 0; size == sizeof object && i < size; i++) {
            for (int bit = 0; bit < 8; bit++) {
                copy[i] ^= (unsigned char)(1 << bit);
                (void)read_all(copy, size);
                copy[i] ^= (unsigned char)(1 << bit);
            }
        }
        free(copy);
    }
}

Test(audit_elf, this_program_is_read) {
    FILE *file = fopen("/proc/self/exe", "rb");
    cr_assert(file != NULL && fseek(file, 0, SEEK_END) == 0);
    const size_t size = (size_t)ftell(file);
    unsigned char *bytes = malloc(size);
    rewind(file);
    cr_assert(bytes != NULL && fread(bytes, 1, size, file) == size);
    fclose(file);
    struct audit_elf elf;
    cr_assert(audit_elf_open(&elf, bytes, size) && read_all(bytes, size) > 100);
    const char *loader = audit_elf_loader(&elf), *needed = NULL;
    cr_assert(loader != NULL && strstr(loader, "/ld") != NULL);
    bool has_libc = false;
    for (unsigned i = 0; (needed = audit_elf_dynamic(&elf, DT_NEEDED, i)) != NULL; i++)
        has_libc |= strncmp(needed, "libc.", 5) == 0;
    cr_assert(has_libc);
    free(bytes);
}
