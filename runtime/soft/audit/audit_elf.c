/*
 * Audit ELF: every offset and every index of the file is compared with the file's size before it is
 * used. Structures are copied, because a file may place them at any address.
 */
#include "audit/audit_elf.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE };
#endif

static bool elf_holds(const struct audit_elf *elf, uint64_t offset, uint64_t bytes) {
    return offset <= elf->size && bytes <= elf->size - offset;
}

/* Copies an entry of a table at an offset. false: it is not inside the file. */
static bool elf_copy(const struct audit_elf *elf, uint64_t table, uint64_t index, void *entry,
                     size_t bytes) {
    if (table > elf->size || index >= (elf->size - table) / bytes) return false;
    memcpy(entry, elf->bytes + table + index * bytes, bytes);
    return true;
}

/* A text that ends inside the bytes from offset on. NULL: it does not. */
static const char *elf_text(const struct audit_elf *elf, uint64_t offset, uint64_t bytes) {
    if (!elf_holds(elf, offset, bytes)) return NULL;
    const char *text = (const char *)elf->bytes + offset;
    return memchr(text, '\0', bytes) != NULL ? text : NULL;
}

static bool elf_section(const struct audit_elf *elf, uint64_t index, Elf64_Shdr *section) {
    return index < elf->section_count &&
           elf_copy(elf, elf->sections, index, section, sizeof *section);
}

/* A text of a section of texts, such as .strtab. */
static const char *elf_name(const struct audit_elf *elf, uint64_t section, uint64_t offset) {
    Elf64_Shdr texts;
    if (!elf_section(elf, section, &texts) || texts.sh_type != SHT_STRTAB ||
        !elf_holds(elf, texts.sh_offset, texts.sh_size) || offset >= texts.sh_size) {
        return NULL;
    }
    return elf_text(elf, texts.sh_offset + offset, texts.sh_size - offset);
}

static bool lies_in_code(const struct audit_elf *elf, uint64_t address, uint64_t bytes) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && address >= segment.address &&
            address - segment.address <= segment.file_bytes &&
            bytes <= segment.file_bytes - (address - segment.address)) {
            return true;
        }
    }
    return false;
}

/* The bytes of the file from a mapped address to the end of its segment. */
static bool elf_place(const struct audit_elf *elf, uint64_t address, uint64_t *offset,
                      uint64_t *bytes) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        if (segment.type != PT_LOAD || address < segment.address ||
            address - segment.address >= segment.file_bytes) {
            continue;
        }
        *offset = segment.offset + (address - segment.address);
        *bytes = segment.file_bytes - (address - segment.address);
        return true;
    }
    return false;
}

bool audit_elf_open(struct audit_elf *elf, const void *bytes, size_t size) {
    Elf64_Ehdr header;
    *elf = (struct audit_elf){.bytes = bytes, .size = size};
    if (!elf_copy(elf, 0, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != MACHINE ||
        (header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
        header.e_phentsize != sizeof(Elf64_Phdr) ||
        !elf_holds(elf, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr))) {
        return false;
    }
    elf->segments = header.e_phoff;
    elf->segment_count = header.e_phnum;
    if (header.e_shentsize == sizeof(Elf64_Shdr) &&
        elf_holds(elf, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr))) {
        elf->sections = header.e_shoff;
        elf->section_count = header.e_shnum;
        elf->names = header.e_shstrndx;
    }
    return true;
}

bool audit_elf_has_section(const struct audit_elf *elf, const char *name) {
    Elf64_Shdr section;
    for (uint64_t i = 0; elf_section(elf, i, &section); i++) {
        const char *other = elf_name(elf, elf->names, section.sh_name);
        if (other != NULL && strcmp(other, name) == 0) return true;
    }
    return false;
}

bool audit_elf_segment(const struct audit_elf *elf, uint64_t index, struct audit_segment *segment) {
    Elf64_Phdr header;
    if (index >= elf->segment_count ||
        !elf_copy(elf, elf->segments, index, &header, sizeof header)) {
        return false;
    }
    *segment = (struct audit_segment){.type = header.p_type, .flags = header.p_flags};
    if (!elf_holds(elf, header.p_offset, header.p_filesz) || header.p_memsz < header.p_filesz ||
        header.p_vaddr > UINT64_MAX - header.p_memsz) {
        return true;
    }
    segment->address = header.p_vaddr;
    segment->bytes = header.p_memsz;
    segment->offset = header.p_offset;
    segment->file_bytes = header.p_filesz;
    return true;
}

bool audit_elf_function(const struct audit_elf *elf, struct audit_cursor *at,
                        struct audit_function *function) {
    Elf64_Shdr section;
    for (; elf_section(elf, at->section, &section); at->section++, at->symbol = 0) {
        Elf64_Sym symbol;
        if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) ||
            !elf_holds(elf, section.sh_offset, section.sh_size)) {
            continue;
        }
        while (at->symbol < section.sh_size / sizeof symbol &&
               elf_copy(elf, section.sh_offset, at->symbol, &symbol, sizeof symbol)) {
            at->symbol++;
            const bool is_defined = symbol.st_shndx != SHN_UNDEF;
            if (is_defined && (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
                               !lies_in_code(elf, symbol.st_value, symbol.st_size))) {
                continue;
            }
            const char *name = elf_name(elf, section.sh_link, symbol.st_name);
            if (name == NULL || name[0] == '\0') continue;
            *function = (struct audit_function){name, symbol.st_value, symbol.st_size, is_defined,
                                                section.sh_type == SHT_DYNSYM};
            return true;
        }
    }
    return false;
}

const char *audit_elf_loader(const struct audit_elf *elf) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        if (segment.type == PT_INTERP) return elf_text(elf, segment.offset, segment.file_bytes);
    }
    return NULL;
}

/* The value of the nth entry of a tag of the dynamic section. */
static bool elf_entry(const struct audit_elf *elf, int64_t tag, unsigned nth, uint64_t *value) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        Elf64_Dyn entry = {.d_tag = DT_NULL};
        if (segment.type != PT_DYNAMIC) continue;
        const uint64_t count = segment.file_bytes / sizeof entry;
        for (uint64_t j = 0; j < count && elf_copy(elf, segment.offset, j, &entry, sizeof entry) &&
                             entry.d_tag != DT_NULL;
             j++) {
            if (entry.d_tag != tag || nth-- > 0) continue;
            *value = entry.d_un.d_val;
            return true;
        }
        return false;
    }
    return false;
}

const char *audit_elf_dynamic(const struct audit_elf *elf, int64_t tag, unsigned nth) {
    uint64_t texts = 0, text = 0, offset = 0, bytes = 0;
    if (!elf_entry(elf, tag, nth, &text) || !elf_entry(elf, DT_STRTAB, 0, &texts) ||
        !elf_place(elf, texts, &offset, &bytes) || text >= bytes) {
        return NULL;
    }
    return elf_text(elf, offset + text, bytes - text);
}

/* nvcc's code registers its device code by one function, in a section of its own. */
enum audit_runtime audit_elf_runtime(const struct audit_elf *elf) {
    struct audit_cursor at = {0};
    struct audit_function function;
    bool is_imported = false;
    while (audit_elf_function(elf, &at, &function)) {
        if (strcmp(function.name, "__cudaRegisterFatBinary") != 0) continue;
        if (function.is_defined) return AUDIT_RUNTIME_NAMED;
        is_imported = true;
    }
    return !is_imported && audit_elf_has_section(elf, ".nvFatBinSegment") ? AUDIT_RUNTIME_STRIPPED
                                                                          : AUDIT_RUNTIME_NONE;
}
