/*
 * Source lines. Of an inlined function, a compiler writes
 *
 *     .loc 1 17 9
 *     .loc 1 10 5, function_name $L__info_string0, inlined_at 1 17 9
 *
 * before its instructions: line 10 runs as a part of line 17. If the call at line 17 was inlined
 * too, the directive before says where. The directives are looked for in the text when there is
 * something to report, so that an instruction keeps the first two numbers alone.
 *
 * Source: PTX ISA 9.0, section 11.5.3.
 */
#include "source_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A position in a source. */
struct source_place {
    unsigned long file, line, column;
};

struct source_loc {
    struct source_place place, call; /* call.file is 0 if it is not inlined */
};

static void source_line_read_place(const char **at, struct source_place *place) {
    char *end = NULL;
    place->file = strtoul(*at, &end, 10);
    place->line = strtoul(end, &end, 10);
    place->column = strtoul(end, &end, 10);
    *at = end;
}

/* Reads a line of the text that begins at an offset. false: it is no .loc. */
static bool source_line_read(const struct soft_unit *unit, size_t begin, struct source_loc *loc) {
    char line[400];
    size_t length = 0;
    while (begin + length < unit->length && unit->text[begin + length] != '\n') length++;
    snprintf(line, sizeof line, "%.*s", (int)(length < 399 ? length : 399), unit->text + begin);
    const char *at = line + strspn(line, " \t");
    if (strncmp(at, ".loc", 4) != 0) return false;
    *loc = (struct source_loc){.call.file = 0};
    at += 4;
    source_line_read_place(&at, &loc->place);
    at = strstr(at, "inlined_at");
    if (at == NULL) return true;
    at += strlen("inlined_at");
    source_line_read_place(&at, &loc->call);
    return true;
}

/* Moves an offset to the begin of the line before its own. false: there is none. */
static bool source_line_step_back(const struct soft_unit *unit, size_t *offset) {
    size_t at = *offset;
    while (at > 0 && unit->text[at - 1] != '\n') at--;
    if (at == 0) return false;
    at--;
    while (at > 0 && unit->text[at - 1] != '\n') at--;
    *offset = at;
    return true;
}

/* The last .loc before an offset that is of a place; any column if column is 0. Moves the offset to
 * it. false: there is none. */
static bool source_line_find(const struct soft_unit *unit, const struct source_place *place,
                             size_t *offset, struct source_loc *loc) {
    while (source_line_step_back(unit, offset)) {
        if (!source_line_read(unit, *offset, loc)) continue;
        if (loc->place.file == place->file && loc->place.line == place->line &&
            (place->column == 0 || loc->place.column == place->column)) {
            return true;
        }
    }
    return false;
}

static const char *source_line_file(const struct soft_unit *unit, unsigned long number) {
    for (const struct ptx_file *file = unit->ptx.files; file != NULL; file = file->next) {
        if (number != 0 && file->number == number) return file->name;
    }
    return NULL;
}

/* The calls, from the innermost to that of the kernel's own text. */
static void source_line_add_calls(const struct soft_unit *unit, const struct soft_origin *origin,
                                  struct soft_report *report) {
    enum { DEPTH_MAX = 16 };
    struct source_loc loc;
    struct source_place place = {.file = origin->file, .line = origin->line};
    size_t offset = origin->offset, used = 0, room = sizeof report->inlined_at;
    for (int depth = 0; depth < DEPTH_MAX && used < room; depth++) {
        if (!source_line_find(unit, &place, &offset, &loc) || loc.call.file == 0) return;
        const char *file = source_line_file(unit, loc.call.file);
        if (file == NULL) return;
        used += (size_t)snprintf(report->inlined_at + used, room - used, "%s%s:%lu",
                                 used > 0 ? ", " : "", file, loc.call.line);
        place = loc.call;
    }
}

/* Consecutive blanks, tabs and line ends become one blank: a report is one readable line. */
static void source_line_fold_blanks(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        bool blank = *from == ' ' || *from == '\t' || *from == '\r' || *from == '\n';
        if (blank && to > text && to[-1] == ' ') continue;
        *to++ = blank ? ' ' : *from;
    }
    *to = '\0';
}

void soft_source_line_of(const struct soft_unit *unit, const struct soft_origin *origin,
                         struct soft_report *report) {
    size_t end = origin->offset;
    while (end < unit->length && unit->text[end] != ';') end++;
    snprintf(report->instruction, sizeof report->instruction, "%.*s", (int)(end - origin->offset),
             unit->text + origin->offset);
    source_line_fold_blanks(report->instruction);
    report->ptx_line = soft_line_of(unit->text, unit->length, origin->offset);
    const char *file = source_line_file(unit, origin->file);
    if (file == NULL) return;
    snprintf(report->source, sizeof report->source, "%s:%u", file, origin->line);
    source_line_add_calls(unit, origin, report);
}
