/*
 * Runs the line programs of a file until one has a row for the address.
 *
 * The file may be damaged: every read is checked against the end of its section, and an invalid
 * value ends the unit.
 */
#include "line_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__) && defined(__LP64__)

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct line_piece {
    const unsigned char *at, *end; /* at NULL: there is none */
};

/* A failed read empties the piece, so that what follows fails as well. */
static uint64_t line_table_take(struct line_piece *piece, unsigned bytes) {
    uint64_t value = 0;
    if ((size_t)(piece->end - piece->at) < bytes) {
        piece->at = piece->end;
        return 0;
    }
    memcpy(&value, piece->at, bytes); /* little-endian, as this machine */
    piece->at += bytes;
    return value;
}

static uint64_t take_leb(struct line_piece *piece, bool is_signed) {
    uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte = 0x80;
    while ((byte & 0x80) != 0 && piece->at < piece->end && shift < 64) {
        byte = *piece->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    }
    if (is_signed && shift < 64 && (byte & 0x40) != 0) value |= ~UINT64_C(0) << shift;
    return value;
}

/* NULL: the text has no end. */
static const char *take_text(struct line_piece *piece) {
    const unsigned char *end = memchr(piece->at, 0, (size_t)(piece->end - piece->at));
    const char *text = (const char *)piece->at;
    piece->at = end != NULL ? end + 1 : piece->end;
    return end != NULL ? text : NULL;
}

static struct line_piece line_table_cut(struct line_piece from, uint64_t offset, uint64_t bytes) {
    const uint64_t room = (uint64_t)(from.end - from.at);
    if (from.at == NULL || offset > room || bytes > room - offset) {
        return (struct line_piece){NULL, NULL};
    }
    return (struct line_piece){from.at + offset, from.at + offset + bytes};
}

static const char *text_at(struct line_piece texts, uint64_t offset) {
    struct line_piece text = line_table_cut(texts, offset, 0);
    if (text.at == NULL) return NULL;
    text.end = texts.end;
    return take_text(&text);
}

/* ---- sections ---- */

struct sections {
    struct line_piece lines, line_texts, texts;
};

static bool read_sections(struct line_piece file, struct sections *sections) {
    Elf64_Ehdr header;
    struct line_piece table, names;
    if ((size_t)(file.end - file.at) < sizeof header) return false;
    memcpy(&header, file.at, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shstrndx >= header.e_shnum) {
        return false;
    }
    table = line_table_cut(file, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    if (table.at == NULL) return false;
    Elf64_Shdr section;
    memcpy(&section, table.at + header.e_shstrndx * sizeof section, sizeof section);
    names = line_table_cut(file, section.sh_offset, section.sh_size);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        memcpy(&section, table.at + i * sizeof section, sizeof section);
        const char *name = text_at(names, section.sh_name);
        if (name == NULL || section.sh_type == SHT_NOBITS) continue;
        if ((section.sh_flags & SHF_COMPRESSED) != 0) continue;
        const struct line_piece bytes = line_table_cut(file, section.sh_offset, section.sh_size);
        if (strcmp(name, ".debug_line") == 0) sections->lines = bytes;
        if (strcmp(name, ".debug_line_str") == 0) sections->line_texts = bytes;
        if (strcmp(name, ".debug_str") == 0) sections->texts = bytes;
    }
    return sections->lines.at != NULL;
}

/* ---- a unit: its folders and files, and its program ---- */

enum { ENTRIES_MAX = 4096, FORMATS_MAX = 16 };

struct line_entry {
    const char *name; /* NULL: it could not be read */
    uint64_t folder;
};

struct unit {
    unsigned version, word; /* bytes of an offset: 4 or 8 */
    unsigned instruction_bytes, line_range, opcode_base;
    int line_base;
    unsigned char lengths[256]; /* operands of each standard opcode */
    struct line_entry *folders, *files;
    uint64_t folder_count, file_count;
};

enum { /* DW_LNCT_..., DW_FORM_... */
       CONTENT_PATH = 1,
       CONTENT_FOLDER = 2,
       FORM_DATA2 = 0x05,
       FORM_DATA4 = 0x06,
       FORM_DATA8 = 0x07,
       FORM_STRING = 0x08,
       FORM_DATA1 = 0x0b,
       FORM_STRP = 0x0e,
       FORM_UDATA = 0x0f,
       FORM_DATA16 = 0x1e,
       FORM_LINE_STRP = 0x1f
};

static bool line_table_take_value(struct line_piece *from, const struct sections *sections,
                                  unsigned word, uint64_t form, const char **text,
                                  uint64_t *number) {
    switch (form) {
    case FORM_STRING:
        *text = take_text(from);
        return true;
    case FORM_LINE_STRP:
        *text = text_at(sections->line_texts, line_table_take(from, word));
        return true;
    case FORM_STRP:
        *text = text_at(sections->texts, line_table_take(from, word));
        return true;
    case FORM_UDATA:
        *number = take_leb(from, false);
        return true;
    case FORM_DATA1:
        *number = line_table_take(from, 1);
        return true;
    case FORM_DATA2:
        *number = line_table_take(from, 2);
        return true;
    case FORM_DATA4:
        *number = line_table_take(from, 4);
        return true;
    case FORM_DATA8:
        *number = line_table_take(from, 8);
        return true;
    case FORM_DATA16:
        (void)line_table_take(from, 8), (void)line_table_take(from, 8);
        return true;
    default:
        return false;
    }
}

/* Version 5: the formats of an entry, then the entries. */
static bool take_entries(struct line_piece *from, const struct sections *sections, unsigned word,
                         struct line_entry *entries, uint64_t *count) {
    uint64_t formats[FORMATS_MAX][2];
    const uint64_t format_count = line_table_take(from, 1);
    if (format_count > FORMATS_MAX) return false;
    for (uint64_t f = 0; f < format_count; f++) {
        formats[f][0] = take_leb(from, false);
        formats[f][1] = take_leb(from, false);
    }
    *count = take_leb(from, false);
    if (*count > ENTRIES_MAX) return false;
    for (uint64_t i = 0; i < *count; i++) {
        for (uint64_t f = 0; f < format_count; f++) {
            const char *text = NULL;
            uint64_t number = 0;
            if (!line_table_take_value(from, sections, word, formats[f][1], &text, &number))
                return false;
            if (formats[f][0] == CONTENT_PATH) entries[i].name = text;
            if (formats[f][0] == CONTENT_FOLDER) entries[i].folder = number;
        }
    }
    return true;
}

/* Before it: names, ended by an empty one, which count from 1; 0 is the compiler's folder. */
static bool take_names(struct line_piece *from, struct line_entry *entries, uint64_t *count,
                       bool are_files) {
    *count = 1;
    for (;;) {
        const char *name = take_text(from);
        if (name == NULL || *count == ENTRIES_MAX) return false;
        if (name[0] == '\0') return true;
        entries[*count].name = name;
        if (are_files) {
            entries[*count].folder = take_leb(from, false);
            (void)take_leb(from, false); /* when it was changed, and its length */
            (void)take_leb(from, false);
        }
        ++*count;
    }
}

static bool line_table_read_header(struct line_piece *program, const struct sections *sections,
                                   struct unit *unit) {
    unit->version = (unsigned)line_table_take(program, 2);
    if (unit->version < 2 || unit->version > 5) return false;
    if (unit->version == 5)
        (void)line_table_take(program, 2); /* sizes of addresses and selectors */
    struct line_piece names = *program;
    const uint64_t bytes = line_table_take(&names, unit->word);
    const struct line_piece header = line_table_cut(names, 0, bytes);
    if (header.at == NULL) return false;
    program->at = header.end;
    names = header;
    unit->instruction_bytes = (unsigned)line_table_take(&names, 1);
    if (unit->version >= 4) (void)line_table_take(&names, 1);
    (void)line_table_take(&names, 1);
    unit->line_base = (signed char)line_table_take(&names, 1);
    unit->line_range = (unsigned)line_table_take(&names, 1);
    unit->opcode_base = (unsigned)line_table_take(&names, 1);
    if (unit->line_range == 0 || unit->opcode_base == 0) return false;
    for (unsigned i = 1; i < unit->opcode_base; i++)
        unit->lengths[i] = (unsigned char)line_table_take(&names, 1);
    if (unit->version == 5) {
        return take_entries(&names, sections, unit->word, unit->folders, &unit->folder_count) &&
               take_entries(&names, sections, unit->word, unit->files, &unit->file_count);
    }
    return take_names(&names, unit->folders, &unit->folder_count, false) &&
           take_names(&names, unit->files, &unit->file_count, true);
}

static const char *folder_of(const struct unit *unit, uint64_t file) {
    const uint64_t folder = unit->files[file].folder;
    const char *name = folder < unit->folder_count ? unit->folders[folder].name : NULL;
    return name != NULL ? name : "";
}

/* Whether a file is a header of CUDA's with wrappers of the runtime's calls. */
static bool line_table_is_wrapper(const struct unit *unit, uint64_t file) {
    if (file >= unit->file_count || unit->files[file].name == NULL) return true;
    const char *name = strrchr(unit->files[file].name, '/');
    name = name != NULL ? name + 1 : unit->files[file].name;
    return strncmp(name, "cuda_runtime", strlen("cuda_runtime")) == 0 ||
           strstr(unit->files[file].name, "/crt/") != NULL ||
           strstr(folder_of(unit, file), "/crt") != NULL;
}

/* ---- the program ---- */

struct row {
    uint64_t address, file;
    int64_t line; /* 0: there is no row */
};

struct line_search {
    uint64_t lowest, address;
    struct row last;  /* before the address */
    struct row own;   /* likewise, in the function and of no wrapper */
    struct row after; /* the first one after the address that is not of a wrapper */
};

/* Looks at a row, in the order of addresses. true: the address is before it, and found. */
static bool line_table_look_at(struct line_search *search, const struct unit *unit,
                               const struct row *row) {
    if (row->address > search->address) {
        if (search->last.line != 0 && row->line > 0 && !line_table_is_wrapper(unit, row->file)) {
            search->after = *row;
        }
        return search->last.line != 0;
    }
    if (row->line <= 0) return false;
    search->last = *row;
    if (row->address >= search->lowest && !line_table_is_wrapper(unit, row->file))
        search->own = *row;
    return false;
}

static const struct row first_row = {.address = 0, .file = 1, .line = 1};

/* An opcode of more than one byte. true: the sequence of rows ends. */
static bool run_extended(struct line_piece *program, struct row *row) {
    const uint64_t bytes = take_leb(program, false);
    struct line_piece operands = line_table_cut(*program, 0, bytes);
    if (operands.at == NULL || bytes == 0) {
        program->at = program->end;
        return true;
    }
    program->at = operands.end;
    const uint64_t opcode = line_table_take(&operands, 1);
    if (opcode == 2) row->address = line_table_take(&operands, 8); /* DW_LNE_set_address */
    return opcode == 1;                                            /* DW_LNE_end_sequence */
}

/* An opcode without a row of its own. */
static void run_standard(struct line_piece *program, const struct unit *unit, unsigned opcode,
                         struct row *row) {
    const unsigned last = (255 - unit->opcode_base) / unit->line_range;
    switch (opcode) {
    case 2:
        row->address += take_leb(program, false) * unit->instruction_bytes;
        return;
    case 3:
        row->line += (int64_t)take_leb(program, true);
        return;
    case 4:
        row->file = take_leb(program, false);
        return;
    case 8:
        row->address += (uint64_t)last * unit->instruction_bytes;
        return;
    case 9:
        row->address += line_table_take(program, 2);
        return;
    default:
        for (unsigned i = 0; i < unit->lengths[opcode]; i++) (void)take_leb(program, false);
    }
}

static bool line_table_run(struct line_piece program, const struct unit *unit,
                           struct line_search *search) {
    struct row row = first_row;
    while (program.at < program.end) {
        const unsigned opcode = (unsigned)line_table_take(&program, 1);
        if (opcode >= unit->opcode_base) {
            const unsigned advance = opcode - unit->opcode_base;
            row.address += (uint64_t)(advance / unit->line_range) * unit->instruction_bytes;
            row.line += unit->line_base + (int)(advance % unit->line_range);
            if (line_table_look_at(search, unit, &row)) return true;
        } else if (opcode == 1) { /* DW_LNS_copy */
            if (line_table_look_at(search, unit, &row)) return true;
        } else if (opcode != 0) {
            run_standard(&program, unit, opcode, &row);
        } else if (run_extended(&program, &row)) {
            /* The end of a sequence is the address after its last row, and has no line. */
            row.line = 0;
            if (line_table_look_at(search, unit, &row)) return true;
            row = first_row;
            search->last = search->own = search->after = (struct row){.line = 0};
        }
    }
    return false;
}

static void line_table_write_line(const struct unit *unit, const struct row *row,
                                  struct soft_line *line) {
    const char *name = row->file < unit->file_count ? unit->files[row->file].name : NULL;
    const char *folder = name != NULL && name[0] != '/' ? folder_of(unit, row->file) : "";
    snprintf(line->file, sizeof line->file, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
             name != NULL ? name : "?");
    line->line = (unsigned)row->line;
}

/* A unit; its tables are cleared. false: the address is not in it. */
static bool search_unit(struct line_piece program, const struct sections *sections,
                        struct unit *unit, struct line_search *search, struct soft_line *line) {
    search->last = search->own = search->after = (struct row){.line = 0};
    if (!line_table_read_header(&program, sections, unit) || !line_table_run(program, unit, search))
        return false;
    const struct row *row = &search->last;
    const bool inlined = line_table_is_wrapper(unit, row->file) && search->own.line != 0;
    if (inlined) row = search->after.line != 0 ? &search->after : &search->own;
    line_table_write_line(unit, row, line);
    line->is_wrapper = !inlined && line_table_is_wrapper(unit, row->file);
    return true;
}

static bool search_file(struct line_piece file, struct line_search *search,
                        struct soft_line *line) {
    struct sections sections = {.lines = {NULL, NULL}};
    struct unit unit;
    bool found = false;
    if (!read_sections(file, &sections)) return false;
    struct line_entry *entries = calloc(2 * ENTRIES_MAX, sizeof *entries);
    if (entries == NULL) return false;
    while (!found && sections.lines.at < sections.lines.end) {
        memset(entries, 0, 2 * ENTRIES_MAX * sizeof *entries);
        unit = (struct unit){.word = 4, .folders = entries, .files = entries + ENTRIES_MAX};
        uint64_t bytes = line_table_take(&sections.lines, 4);
        if (bytes == UINT32_MAX) {
            unit.word = 8;
            bytes = line_table_take(&sections.lines, 8);
        }
        const struct line_piece program = line_table_cut(sections.lines, 0, bytes);
        if (program.at == NULL) break;
        sections.lines.at = program.end;
        found = search_unit(program, &sections, &unit, search, line);
    }
    free(entries);
    return found;
}

bool soft_line_find(const char *path, uint64_t lowest, uint64_t address, struct soft_line *line) {
    bool found = false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const off_t end = lseek(file, 0, SEEK_END);
    if (end > 0) {
        const size_t bytes = (size_t)end;
        void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (map != MAP_FAILED) {
            const struct line_piece whole = {map, (const unsigned char *)map + bytes};
            struct line_search search = {.lowest = lowest, .address = address};
            found = search_file(whole, &search, line);
            munmap(map, bytes);
        }
    }
    close(file);
    return found;
}

#else

bool soft_line_find(const char *path, uint64_t lowest, uint64_t address, struct soft_line *line) {
    (void)path, (void)lowest, (void)address;
    *line = (struct soft_line){.line = 0};
    return false;
}

#endif
