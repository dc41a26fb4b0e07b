/*
 * Reading the table: lines to rows.
 *
 *     line      = instruction (";" instruction)* attribute*
 *     operand   = mark? (number "*")? type ("." part)? (":" set)? | "#" text | "$" number
 *     mark      = ">" | "~" | "!" | "-" | "[" | "[<" | "[>"
 *
 * Alternatives, {a|b|}, are expanded before anything else is parsed. If they have a name, {x=a|b},
 * every later {x} is the chosen one.
 */
#include "table.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 2048 };

static bool table_read_fail(struct table *table, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(table->message, sizeof table->message, format, list);
    va_end(list);
    return false;
}

bool table_has(const struct table_instruction *instruction, const char *word) {
    for (int i = 1; i < instruction->word_count; i++) {
        if (instruction->words[i][0] == word[0] && strcmp(instruction->words[i], word) == 0)
            return true;
    }
    return false;
}

static bool read_spelling(struct table *table, struct table_instruction *instruction,
                          const char *text) {
    if (strlen(text) >= sizeof instruction->spelling)
        return table_read_fail(table, "'%s' is too long", text);
    strcpy(instruction->spelling, text);
    for (const char *at = text; at != NULL;) {
        const char *dot = strchr(at, '.');
        size_t length = dot != NULL ? (size_t)(dot - at) : strlen(at);
        if (instruction->word_count == TABLE_WORDS || length >= sizeof instruction->words[0]) {
            return table_read_fail(table, "'%s' has too many words or too long ones", text);
        }
        char *word = instruction->words[instruction->word_count++];
        memcpy(word, at, length);
        word[length] = '\0';
        const struct table_type *type = table_type_find(word, length);
        if (type != NULL && instruction->type_count < 4) {
            instruction->types[instruction->type_count++] = type;
        }
        at = dot != NULL ? dot + 1 : NULL;
    }
    return true;
}

/* "1" is the first type of the spelling, "w" the integer or bits of twice its width, or a name. */
static const struct table_type *table_read_type_of(const struct table_instruction *instruction,
                                                   const char *name, size_t length) {
    if (length == 1 && name[0] >= '1' && name[0] <= '4') {
        return instruction->types[name[0] - '1'];
    }
    if (length == 1 && name[0] == 'w' && instruction->type_count > 0) {
        char wide[8];
        const struct table_type *type = instruction->types[0];
        snprintf(wide, sizeof wide, "%c%d", type->kind == 'S' ? 's' : 'u', 2 * type->bits);
        return table_type_find(wide, strlen(wide));
    }
    return table_type_find(name, length);
}

static bool read_typed(struct table *table, const struct table_instruction *instruction,
                       struct table_operand *operand, const char *text, size_t length) {
    const char *colon = memchr(text, ':', length);
    size_t type_length = colon != NULL ? (size_t)(colon - text) : length;
    const char *dot = memchr(text, '.', type_length);
    if (dot != NULL) {
        snprintf(operand->part, sizeof operand->part, "%.*s",
                 (int)(type_length - (size_t)(dot - text)) - 1, dot + 1);
        type_length = (size_t)(dot - text);
    }
    operand->type = table_read_type_of(instruction, text, type_length);
    if (operand->type == NULL)
        return table_read_fail(table, "unknown type '%.*s'", (int)length, text);
    if (colon == NULL) return true;
    size_t set_length = length - (size_t)(colon - text) - 1;
    if (set_length >= sizeof operand->set)
        return table_read_fail(table, "unknown value set '%s'", colon);
    memcpy(operand->set, colon + 1, set_length);
    bool floats = strncmp(operand->set, "probe_", 6) == 0 || strcmp(operand->set, "finite") == 0;
    return !floats || (operand->type->exponent_bits > 0 && operand->type->fraction_bits > 0) ||
           table_read_fail(table, "'%s' is a set of floating-point values", operand->set);
}

/* The prefix of the type; its length. */
static size_t table_read_read_kind(struct table_operand *operand, const char *text) {
    operand->kind = text[0] == '>'   ? TABLE_RESULT
                    : text[0] == '~' ? TABLE_SPARE
                    : text[0] == '[' ? TABLE_CELL
                                     : TABLE_SOURCE;
    operand->negated = text[0] == '!';
    operand->minus = text[0] == '-';
    operand->read = operand->kind == TABLE_CELL && text[1] == '<';
    operand->written = operand->kind == TABLE_CELL && text[1] == '>';
    bool plain = operand->kind == TABLE_SOURCE && !operand->negated && !operand->minus;
    return plain ? 0 : operand->read || operand->written ? 2 : 1;
}

/* Gives the operand its places among the sources and results. */
static bool number_operand(struct table *table, struct table_row *row,
                           struct table_operand *operand) {
    bool source = operand->kind == TABLE_SOURCE || operand->kind == TABLE_CELL || operand->read;
    bool result = operand->kind == TABLE_RESULT || operand->kind == TABLE_CELL || operand->written;
    operand->source = row->source_count;
    operand->result = row->result_count;
    for (unsigned i = 0; i < table_width(operand) && source; i++) {
        if (row->source_count == TABLE_SOURCES) return table_read_fail(table, "too many sources");
        row->sources[row->source_count++] = row->operand_count;
    }
    for (unsigned i = 0; i < table_width(operand) && result; i++) {
        if (row->result_count == TABLE_RESULTS) return table_read_fail(table, "too many results");
        row->results[row->result_count++] = row->operand_count;
    }
    return true;
}

/* One operand, without the punctuation of pairs and vectors. */
static bool read_operand(struct table *table, struct table_row *row,
                         const struct table_instruction *instruction, const char *text,
                         size_t length, struct table_operand *operand) {
    if (text[0] == '#') {
        operand->kind = TABLE_NUMBER;
        if (length > sizeof operand->text) return table_read_fail(table, "'%s' is too long", text);
        memcpy(operand->text, text + 1, length - 1);
        return true;
    }
    if (text[0] == '$') {
        operand->kind = TABLE_AGAIN;
        operand->source = (uint8_t)strtoul(text + 1, NULL, 10);
        return operand->source < row->operand_count ||
               table_read_fail(table, "'%s' is not an operand", text);
    }
    size_t skip = table_read_read_kind(operand, text);
    if (skip > length) return table_read_fail(table, "'%s' has no type", text);
    if (operand->kind == TABLE_CELL && text[length - 1] == ']') length--;
    if (operand->read || operand->written) operand->kind = TABLE_TILE;
    const char *star = memchr(text, '*', length);
    if (star != NULL) {
        operand->count = (uint8_t)strtoul(text + skip, NULL, 10);
        skip = (size_t)(star - text) + 1;
    }
    return read_typed(table, instruction, operand, text + skip, length - skip) &&
           number_operand(table, row, operand);
}

/* A token of operands: one, a pair a|b, or a vector <a,b>. */
static bool table_read_read_operands(struct table *table, struct table_row *row,
                                     struct table_instruction *instruction, const char *text) {
    bool vector = text[0] == '<';
    char before = vector ? '{' : 0;
    size_t end = strlen(text) - (vector ? 1 : 0);
    for (size_t at = vector ? 1 : 0; at < end;) {
        size_t length = strcspn(text + at, vector ? ",>" : "|");
        if (vector && text[at] == '>') length = 1 + strcspn(text + at + 1, ",>");
        if (row->operand_count == TABLE_OPERANDS)
            return table_read_fail(table, "too many operands");
        struct table_operand operand = {.before = before};
        if (!read_operand(table, row, instruction, text + at, length, &operand)) return false;
        at += length + 1;
        if (vector && at >= end) operand.after = '}';
        row->operands[row->operand_count++] = operand;
        instruction->operand_count++;
        before = vector ? 0 : '|';
    }
    return true;
}

/* "22.9", or "2^-22.9", of which the exponent is meant. */
static bool table_read_read_number(struct table *table, const char *text, double *number) {
    char *end = NULL;
    *number = strtod(strncmp(text, "2^-", 3) == 0 ? text + 3 : text, &end);
    return (end != text && *end == '\0' && *number >= 0 && *number < 1e6) ||
           table_read_fail(table, "'%s' is not a number from 0 to a million", text);
}

static bool read_attribute(struct table *table, struct table_row *row, const char *text) {
    static const char *const bounds[] = {"@exact=", "@ulp=", "@abs=", "@rel=", "@sum="};
    const char *value = strchr(text, '=');
    double number = 0;
    value = value != NULL ? value + 1 : "";
    if (strcmp(text, "@warp") == 0) {
        row->warp = true;
        return true;
    }
    if (strcmp(text, "@group") == 0) {
        row->warp = row->group = true;
        return true;
    }
    if (strcmp(text, "@target=90a") == 0) {
        row->suffix = 'a';
        return true;
    }
    if (strcmp(text, "@shared") == 0) {
        row->shared = true;
        return true;
    }
    if (strncmp(text, "@lanes=", 7) == 0) {
        row->lanes = (uint32_t)strtoul(value, NULL, 0);
        row->warp = true;
        return true;
    }
    if (!table_read_read_number(table, value, &number)) return false;
    for (int i = 1; i < 5; i++) {
        if (strncmp(text, bounds[i], strlen(bounds[i])) != 0) continue;
        row->bound = (enum table_bound_kind)i;
        row->bound_size = number;
        return true;
    }
    if (strncmp(text, "@version=", 9) == 0) {
        row->version = (uint32_t)(number * 10 + 0.5);
    } else if (strncmp(text, "@target=", 8) == 0) {
        row->target = (uint32_t)number;
    } else {
        return table_read_fail(table, "unknown attribute '%s'", text);
    }
    return true;
}

/* Attributes that say what is done, and not how it is judged, belong to the row's name. */
static bool is_of_name(const char *token) {
    return token[0] != '@' || strncmp(token, "@lanes=", 7) == 0 || strcmp(token, "@shared") == 0;
}

/* A line without alternatives. */
static bool table_read_read_row(struct table *table, const char *line) {
    struct table_row row = {.version = 78, .target = 90, .lanes = UINT32_MAX};
    char copy[LINE_BYTES], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", line);
    struct table_instruction *instruction = NULL;
    size_t used = 0;
    for (char *token = strtok_r(copy, " \t", &rest); token != NULL;
         token = strtok_r(NULL, " \t", &rest)) {
        if (token[0] == '@') {
            if (!read_attribute(table, &row, token)) return false;
            if (!is_of_name(token)) continue;
        }
        int wrote =
            snprintf(row.text + used, sizeof row.text - used, "%s%s", used > 0 ? " " : "", token);
        used += (size_t)wrote;
        if (used >= sizeof row.text) return table_read_fail(table, "the row is too long");
        if (token[0] == '@') continue;
        if (strcmp(token, ";") == 0) {
            instruction = NULL;
        } else if (instruction == NULL) {
            if (row.instruction_count == TABLE_INSTRUCTIONS)
                return table_read_fail(table, "too many instructions");
            instruction = &row.instructions[row.instruction_count++];
            instruction->first_operand = row.operand_count;
            if (!read_spelling(table, instruction, token)) return false;
        } else if (!table_read_read_operands(table, &row, instruction, token)) {
            return false;
        }
    }
    row.seed = table_hash(TABLE_HASH_BEGIN, row.text, strlen(row.text));
    if (row.result_count == 0) return table_read_fail(table, "the row has no result");
    row.tuples = row.bound != TABLE_EXACT ? 256 : row.source_count < 2 ? 1024 : 2048;
    if (row.bound == TABLE_SUM) row.tuples = 1024;
    for (unsigned i = 0; i < row.operand_count; i++) {
        if (row.operands[i].kind == TABLE_TILE) row.tuples = 512; /* 16 warps: it is the places */
        if (strcmp(row.operands[i].set, "probe_a") == 0) row.tuples = 32 * table_probe_count();
    }
    if (row.source_count == 0) row.tuples = 128;
    if (table->count == table->room) {
        size_t room = table->room * 2 + 64;
        struct table_row *rows = realloc(table->rows, room * sizeof rows[0]);
        if (rows == NULL) return table_read_fail(table, "out of memory");
        table->rows = rows;
        table->room = room;
    }
    table->rows[table->count++] = row;
    return true;
}

/* Puts a choice in the place of every {name} of a line. */
static void put_choice(char *line, const char *name, size_t name_length, const char *choice,
                       size_t choice_length) {
    for (char *at = strchr(line, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t braces = name_length + 2;
        if (strncmp(at + 1, name, name_length) != 0 || at[name_length + 1] != '}') continue;
        size_t used = (size_t)(at - line), rest = strlen(at + braces);
        if (used + choice_length + rest >= LINE_BYTES) continue; /* stays, and is no instruction */
        memmove(at + choice_length, at + braces, rest + 1);
        memcpy(at, choice, choice_length);
    }
}

/* Multiplies out the first alternatives of a line, and so on until there are none. */
static bool table_read_expand(struct table *table, const char *line) {
    const char *open = strchr(line, '{');
    if (open == NULL) return table_read_read_row(table, line);
    const char *close = strchr(open, '}');
    if (close == NULL) return table_read_fail(table, "'{' is never closed");
    size_t name_length = strcspn(open + 1, "=|}");
    bool named = open[1 + name_length] == '=';
    for (const char *at = open + 1 + (named ? name_length + 1 : 0); at <= close;) {
        size_t length = strcspn(at, "|}");
        char one[LINE_BYTES];
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(open - line), line, (int)length, at,
                 close + 1);
        if (named) put_choice(one, open + 1, name_length, at, length);
        if (!table_read_expand(table, one)) return false;
        at += length + 1;
    }
    return true;
}

/* A line, and the following ones while the last ends with a backslash. */
static bool table_read_read_line(FILE *file, char *line, int *number) {
    size_t length = 0;
    for (;; ++*number) {
        if (fgets(line + length, LINE_BYTES - (int)length, file) == NULL) return length > 0;
        length += strcspn(line + length, "\n");
        while (length > 0 && line[length - 1] == ' ') length--;
        line[length] = '\0';
        if (length == 0 || line[length - 1] != '\\') return true;
        line[--length] = '\0';
    }
}

bool table_read(struct table *table, const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return table_read_fail(table, "cannot open %s", path);
    char line[LINE_BYTES];
    bool ok = true;
    for (int number = 1; ok && table_read_read_line(file, line, &number); number++) {
        char *begin = line + strspn(line, " ");
        if (begin[0] == '\0' || strncmp(begin, "//", 2) == 0) continue;
        ok = table_read_expand(table, begin);
        if (ok) continue;
        char why[sizeof table->message];
        memcpy(why, table->message, sizeof why);
        table_read_fail(table, "%.200s:%d: %.250s", path, number, why);
    }
    fclose(file);
    return ok;
}

static int table_read_by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static int by_text(const void *a, const void *b) {
    const struct table_row *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

/* A row's text is its name. */
static bool check_unique(struct table *table) {
    const struct table_row **rows = calloc(table->count, sizeof(struct table_row *));
    if (rows == NULL) return table_read_fail(table, "out of memory");
    for (size_t i = 0; i < table->count; i++) rows[i] = &table->rows[i];
    qsort(rows, table->count, sizeof(struct table_row *), by_text);
    bool unique = true;
    for (size_t i = 1; i < table->count && unique; i++) {
        unique = strcmp(rows[i - 1]->text, rows[i]->text) != 0 ||
                 table_read_fail(table, "duplicate row '%s'", rows[i]->text);
    }
    free(rows);
    return unique;
}

bool table_read_folder(struct table *table, const char *folder) {
    enum { FILES = 64, NAME = 256 };
    static char names[FILES][NAME];
    DIR *directory = opendir(folder);
    if (directory == NULL) return table_read_fail(table, "cannot open %s", folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".table") != 0 || count == FILES) continue;
        snprintf(names[count++], NAME, "%s", entry->d_name);
    }
    closedir(directory);
    if (count == 0) return table_read_fail(table, "%s contains no table", folder);
    qsort(names, count, NAME, table_read_by_name);
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (length >= (int)sizeof path)
            return table_read_fail(table, "the path %s is too long", folder);
        if (!table_read(table, path)) return false;
    }
    return check_unique(table);
}

void table_free(struct table *table) {
    free(table->rows);
    *table = (struct table){0};
}
