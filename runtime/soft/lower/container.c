/*
 * The ELF header, the texts, the names of the sections, the table of sections.
 */
#include "container.h"

#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bytes after the version are padding to readers of cubins; they tell a container from those
 * before anything else of it is read. */
static const unsigned char ident[EI_NIDENT] = {0x7f,       'E',  'L', 'F', ELFCLASS64, ELFDATA2LSB,
                                               EV_CURRENT, 0x33, 7,   't', 'o',        'l',
                                               'l',        'e',  'n', 's'};
static const char names[] = "\0.tollens.ptx\0.shstrtab";
enum { NAME_PTX = 1, NAME_NAMES = 14, MACHINE_CUDA = 190, LINKED = 1, STANDS_IN = 2 };
_Static_assert(sizeof names == NAME_NAMES + sizeof ".shstrtab", "the offsets of the names");

bool soft_container_is(const void *image) {
    const unsigned char *bytes = image;
    int i = 0;
    while (i < EI_NIDENT && bytes[i] == ident[i]) i++;
    return i == EI_NIDENT;
}

size_t soft_container_bytes(const void *image, size_t most) {
    Elf64_Ehdr header;
    if (most < sizeof header || !soft_container_is(image)) return 0;
    memcpy(&header, image, sizeof header);
    const uint64_t table = (uint64_t)header.e_shnum * sizeof(Elf64_Shdr);
    const bool ok = header.e_type == ET_EXEC && header.e_machine == MACHINE_CUDA &&
                    header.e_version == EV_CURRENT && header.e_entry == 0 && header.e_phoff == 0 &&
                    header.e_ehsize == sizeof header && header.e_phnum == 0 &&
                    header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum >= 3 &&
                    header.e_shstrndx == header.e_shnum - 1 && header.e_shoff >= sizeof header &&
                    header.e_shoff <= most && table <= most - header.e_shoff;
    return ok ? (size_t)(header.e_shoff + table) : 0;
}

/* The section of a text. */
static Elf64_Shdr container_section(const struct soft_source *source, uint64_t offset) {
    return (Elf64_Shdr){.sh_name = NAME_PTX,
                        .sh_type = SHT_PROGBITS,
                        .sh_offset = offset,
                        .sh_size = source->length + 1,
                        .sh_info =
                            (source->linked ? LINKED : 0) | (source->stands_in ? STANDS_IN : 0),
                        .sh_addralign = 1};
}

void *soft_container_make(const struct soft_source *sources, unsigned count, unsigned architecture,
                          size_t *bytes) {
    if (count < 1 || count > SOFT_CONTAINER_TEXTS_MAX) return NULL;
    const unsigned sections = count + 2;
    uint64_t end = sizeof(Elf64_Ehdr) + sizeof names;
    for (unsigned i = 0; i < count; i++) end += sources[i].length + 1;
    end = (end + 7) / 8 * 8;
    char *image = calloc(1, end + sections * sizeof(Elf64_Shdr));
    if (image == NULL) return NULL;
    Elf64_Ehdr header = {.e_type = ET_EXEC,
                         .e_machine = MACHINE_CUDA,
                         .e_version = EV_CURRENT,
                         .e_shoff = end,
                         .e_flags = architecture | architecture << 16,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)sections,
                         .e_shstrndx = (Elf64_Half)(sections - 1)};
    memcpy(header.e_ident, ident, sizeof ident);
    memcpy(image, &header, sizeof header);
    uint64_t at = sizeof header;
    char *row = image + end + sizeof(Elf64_Shdr); /* the first section is empty */
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Shdr section = container_section(&sources[i], at);
        memcpy(image + at, sources[i].text, sources[i].length);
        memcpy(row, &section, sizeof section);
        at += section.sh_size;
        row += sizeof section;
    }
    const Elf64_Shdr last = {.sh_name = NAME_NAMES,
                             .sh_type = SHT_STRTAB,
                             .sh_offset = at,
                             .sh_size = sizeof names,
                             .sh_addralign = 1};
    memcpy(image + at, names, sizeof names);
    memcpy(row, &last, sizeof last);
    *bytes = end + sections * sizeof(Elf64_Shdr);
    assert(soft_container_bytes(image, *bytes) == *bytes);
    return image;
}

struct soft_source *soft_container_sources(const void *image, size_t most, unsigned *count) {
    Elf64_Ehdr header;
    Elf64_Shdr section;
    const char *bytes = image;
    const size_t whole = soft_container_bytes(image, most);
    if (whole == 0) return NULL;
    memcpy(&header, image, sizeof header);
    /* Without the first, which is empty, and the last, which has the names. */
    const unsigned texts = header.e_shnum - 2u;
    struct soft_source *sources = calloc(texts, sizeof *sources);
    for (unsigned i = 0; i < texts && sources != NULL; i++) {
        memcpy(&section, bytes + header.e_shoff + (i + 1) * sizeof section, sizeof section);
        const bool inside = section.sh_name == NAME_PTX && section.sh_type == SHT_PROGBITS &&
                            section.sh_size > 0 && section.sh_offset <= whole &&
                            section.sh_size <= whole - section.sh_offset;
        const size_t length = (size_t)section.sh_size - 1;
        if (!inside || memchr(bytes + section.sh_offset, '\0', length + 1) !=
                           bytes + section.sh_offset + length) {
            free(sources);
            return NULL;
        }
        sources[i] = (struct soft_source){.text = bytes + section.sh_offset,
                                          .length = length,
                                          .linked = (section.sh_info & LINKED) != 0,
                                          .is_compiled = true,
                                          .stands_in = (section.sh_info & STANDS_IN) != 0};
    }
    *count = texts;
    return sources;
}
