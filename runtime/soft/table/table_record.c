/*
 * Writing and reading records.
 */
#include "table_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LINE_MAX_BYTES = 1 << 20 };

uint64_t table_sources_digest(const struct table_row *row, const struct table_outcome *outcome) {
    size_t bytes = (size_t)row->tuples * row->source_count * TABLE_BYTES;
    return table_hash(TABLE_HASH_BEGIN, outcome->sources, bytes);
}

uint64_t table_results_digest(const struct table_row *row, const struct table_outcome *outcome) {
    size_t bytes = (size_t)row->tuples * row->result_count * TABLE_BYTES;
    return table_hash(TABLE_HASH_BEGIN, outcome->results, bytes);
}

void table_line_write(FILE *file, const struct table_row *row,
                      const struct table_outcome *outcome) {
    if (outcome->code != CUDA_SUCCESS) {
        char words[160];
        snprintf(words, sizeof words, "%.150s", outcome->log);
        for (char *at = words; *at != '\0'; at++) {
            if (*at == '\t' || *at == '\n') *at = ' ';
        }
        fprintf(file, "refused\t%d\t%s\t%s\n", (int)outcome->code, words, row->text);
        return;
    }
    fprintf(file, "ok\t%u\t%016" PRIx64 "\t%016" PRIx64 "\t%s", row->tuples,
            table_sources_digest(row, outcome), table_results_digest(row, outcome), row->text);
    for (size_t i = 0; table_is_loose(row) && i < row->tuples * row->result_count; i++) {
        const struct table_operand *operand = &row->operands[row->results[i % row->result_count]];
        fprintf(file, "%s%0*" PRIx64, i == 0 ? "\t" : ",", operand->type->store_bits / 4,
                outcome->results[i]);
    }
    fprintf(file, "\n");
}

/* The field that ends at the next tab; the cursor moves past the tab. */
static char *table_record_field(char **cursor) {
    char *begin = *cursor;
    if (begin == NULL) return NULL;
    char *tab = strchr(begin, '\t');
    if (tab != NULL) *tab = '\0';
    *cursor = tab != NULL ? tab + 1 : NULL;
    return begin;
}

static bool read_values(struct table_line *line, char *text) {
    size_t count = 1;
    for (const char *at = text; *at != '\0'; at++) count += *at == ',';
    line->values = calloc(count, sizeof line->values[0]);
    if (line->values == NULL) return false;
    for (size_t i = 0; i < count; i++) line->values[i] = strtoull(text, &text, 16), text++;
    return true;
}

static bool table_record_read_line(struct table_line *line, char *text) {
    char *cursor = text, *state = table_record_field(&cursor), *first = table_record_field(&cursor);
    char *second = table_record_field(&cursor), *third = table_record_field(&cursor);
    if (third == NULL) return false;
    if (strcmp(state, "refused") == 0) {
        line->code = (int)strtol(first, NULL, 10);
        line->row = strdup(third);
        return line->row != NULL;
    }
    char *row = table_record_field(&cursor);
    if (strcmp(state, "ok") != 0 || row == NULL) return false;
    line->tuples = (uint32_t)strtoul(first, NULL, 10);
    line->sources = strtoull(second, NULL, 16);
    line->results = strtoull(third, NULL, 16);
    line->row = strdup(row);
    char *values = table_record_field(&cursor);
    return line->row != NULL && (values == NULL || read_values(line, values));
}

bool table_record_read(struct table_record *record, const char *path) {
    memset(record, 0, sizeof *record);
    gzFile file = gzopen(path, "rb");
    char *text = malloc(LINE_MAX_BYTES);
    if (file == NULL || text == NULL) {
        snprintf(record->message, sizeof record->message, "cannot open %.200s", path);
        if (file != NULL) gzclose(file);
        free(text);
        return false;
    }
    size_t lines_room = 0;
    bool ok = true;
    for (int number = 1; ok && gzgets(file, text, LINE_MAX_BYTES) != NULL; number++) {
        char *end = strchr(text, '\n');
        ok = end != NULL; /* else it is cut off, or too long */
        if (!ok) {
            snprintf(record->message, sizeof record->message, "line %d has no end", number);
            break;
        }
        *end = '\0';
        if (text[0] == '#') {
            if (number == 1) snprintf(record->device, sizeof record->device, "%.255s", text + 2);
            continue;
        }
        if (record->count == lines_room) {
            lines_room = lines_room * 2 + 256;
            struct table_line *lines = realloc(record->lines, lines_room * sizeof lines[0]);
            ok = lines != NULL;
            if (!ok) break;
            record->lines = lines;
        }
        record->lines[record->count] = (struct table_line){0};
        ok = table_record_read_line(&record->lines[record->count++], text);
        if (!ok)
            snprintf(record->message, sizeof record->message, "line %d is not a record", number);
    }
    int damage = Z_OK;
    gzerror(file, &damage);
    if (ok && damage != Z_OK) {
        snprintf(record->message, sizeof record->message, "%.200s is damaged", path);
        ok = false;
    }
    free(text);
    gzclose(file);
    return ok;
}

const struct table_line *table_record_find(const struct table_record *record, const char *row) {
    for (size_t i = 0; i < record->count; i++) {
        if (strcmp(record->lines[i].row, row) == 0) return &record->lines[i];
    }
    return NULL;
}

void table_record_free(struct table_record *record) {
    for (size_t i = 0; i < record->count; i++) {
        free(record->lines[i].row);
        free(record->lines[i].values);
    }
    free(record->lines);
    *record = (struct table_record){0};
}

/* In memory the results have 8 bytes each, in the file the width of their registers. */
bool table_raw_write(gzFile file, const struct table_row *row,
                     const struct table_outcome *outcome) {
    gzprintf(file, "%s\n%u %u", row->text, row->tuples, row->result_count);
    for (unsigned r = 0; r < row->result_count; r++) {
        gzprintf(file, " %u", row->operands[row->results[r]].type->store_bits / 8);
    }
    gzprintf(file, "\n");
    for (size_t i = 0; i < (size_t)row->tuples * row->result_count; i++) {
        unsigned bytes = row->operands[row->results[i % row->result_count]].type->store_bits / 8;
        if (gzwrite(file, &outcome->results[i], bytes) != (int)bytes) return false;
    }
    return true;
}

bool table_raw_read(gzFile file, char *text, uint32_t *tuples, uint32_t *results,
                    uint64_t **values) {
    char counts[128];
    unsigned bytes[TABLE_RESULTS] = {0};
    if (gzgets(file, text, TABLE_ROW_BYTES + 2) == NULL ||
        gzgets(file, counts, sizeof counts) == NULL) {
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    char *at = counts;
    *tuples = (uint32_t)strtoul(at, &at, 10);
    *results = (uint32_t)strtoul(at, &at, 10);
    if (*results == 0 || *results > TABLE_RESULTS) return false;
    for (unsigned r = 0; r < *results; r++) bytes[r] = (unsigned)strtoul(at, &at, 10);
    size_t count = (size_t)*tuples * *results;
    *values = calloc(count, sizeof(uint64_t));
    if (*values == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        if (gzread(file, &(*values)[i], bytes[i % *results]) != (int)bytes[i % *results]) {
            free(*values);
            return false;
        }
    }
    return true;
}
