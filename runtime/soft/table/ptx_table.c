/*
 * ptx-table: runs the instruction table on a driver and records the results.
 *
 *   ptx-table [options]
 *     --driver PATH     the driver library: libcuda.so.1 (default), or the soft device
 *     --table FOLDER    the tables: fixtures/ptx/instructions near the program (default)
 *     --row TEXT        only the rows with this text in them
 *     --part I/N        only every Nth row, from row I: 0/4 to 3/4 are all rows
 *     --out FILE        writes the record, one line per row
 *     --raw FILE        writes all results, compressed
 *     --against FILE    compares with such a file and prints what differs, with its operands
 *     --show            prints the operands and results of each tuple
 *     --ptx FOLDER      runs nothing, and writes the kernels, one file per version and target
 *
 * Needs a driver and nothing else. Exit code: 0; 1 where a row differs; 2 for an error.
 */
#include "table_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *driver, *folder, *row, *part, *out, *raw, *against, *ptx;
    size_t first, step;
    bool show;
};

static int ptx_table_usage(void) {
    fprintf(stderr, "usage: ptx-table [--driver PATH] [--table FOLDER] [--row TEXT] [--part I/N]\n"
                    "                 [--out FILE] [--raw FILE] [--against FILE] [--show]\n"
                    "                 [--ptx FOLDER]\n");
    return 2;
}

static bool ptx_table_read_options(int count, char **arguments, struct options *options) {
    const struct {
        const char *name;
        const char **value;
    } named[] = {
        {"--driver", &options->driver},   {"--table", &options->folder}, {"--row", &options->row},
        {"--part", &options->part},       {"--out", &options->out},      {"--raw", &options->raw},
        {"--against", &options->against}, {"--ptx", &options->ptx},
    };
    for (int i = 1; i < count; i++) {
        bool known = strcmp(arguments[i], "--show") == 0;
        options->show |= known;
        for (size_t k = 0; k < sizeof named / sizeof named[0] && !known; k++) {
            if (strcmp(arguments[i], named[k].name) != 0 || i + 1 == count) continue;
            *named[k].value = arguments[++i];
            known = true;
        }
        if (!known) return false;
    }
    options->step = 1;
    if (options->part == NULL) return true;
    char *rest = NULL;
    options->first = strtoul(options->part, &rest, 10);
    if (rest == options->part || *rest++ != '/') return false;
    const char *step = rest;
    options->step = strtoul(step, &rest, 10);
    return rest != step && *rest == '\0' && options->first < options->step;
}

static bool ptx_table_find_folder(char *path, size_t bytes) {
    static const char *const roots[] = {"", "../", "../../"};
    char own[3072];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, bytes, "%s%sfixtures/ptx/instructions", own, roots[i]);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

/* One file per version and target: one ptxas run checks all its rows. */
static bool write_ptx(const struct table *table, const char *folder) {
    for (size_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        char path[4096], entry[32];
        snprintf(path, sizeof path, "%s/%u%s-%u.ptx", folder, row->target,
                 row->suffix == 'a' ? "a" : "", row->version);
        bool first = true;
        for (size_t k = 0; k < i; k++) {
            const struct table_row *other = &table->rows[k];
            first &= other->version != row->version || other->target != row->target ||
                     other->suffix != row->suffix;
        }
        FILE *file = fopen(path, first ? "w" : "a");
        snprintf(entry, sizeof entry, "row_%zu", i);
        char *text = table_kernel(row, entry, first);
        if (file == NULL || text == NULL) {
            fprintf(stderr, "ptx-table: cannot write %s\n", path);
            free(text);
            if (file != NULL) fclose(file);
            return false;
        }
        fputs(text, file);
        free(text);
        fclose(file);
    }
    printf("%zu rows\n", table->count);
    return true;
}

static void print_tuple(const struct table_row *row, const struct table_outcome *outcome,
                        uint32_t tuple, const uint64_t *theirs) {
    printf("  [%u]", tuple);
    for (unsigned s = 0; s < row->source_count; s++) {
        printf(" %0*" PRIx64, row->operands[row->sources[s]].type->store_bits / 4,
               outcome->sources[(size_t)tuple * row->source_count + s]);
    }
    for (unsigned r = 0; r < row->result_count; r++) {
        int digits = row->operands[row->results[r]].type->store_bits / 4;
        size_t at = (size_t)tuple * row->result_count + r;
        printf("%s%0*" PRIx64, r == 0 ? " -> " : " ", digits, outcome->results[at]);
        if (theirs != NULL) printf(" (there %0*" PRIx64 ")", digits, theirs[at]);
    }
    printf("\n");
}

/* The rows of the file are in the order in which they ran, so it is usually the next one. */
static bool find_raw(gzFile against, const char *row, uint32_t *tuples, uint32_t *results,
                     uint64_t **values) {
    char text[TABLE_ROW_BYTES + 2];
    for (int pass = 0; pass < 2; pass++) {
        while (table_raw_read(against, text, tuples, results, values)) {
            if (strcmp(text, row) == 0) return true;
            free(*values);
        }
        gzrewind(against);
    }
    return false;
}

static bool ptx_table_compare(gzFile against, const struct table_row *row,
                              const struct table_outcome *outcome) {
    uint32_t tuples = 0, results = 0;
    uint64_t *values = NULL;
    if (!find_raw(against, row->text, &tuples, &results, &values)) {
        printf("not there: %s\n", row->text);
        return true;
    }
    if (tuples != row->tuples || results != row->result_count) {
        printf("recorded with other tuples: %s\n", row->text);
        free(values);
        return false;
    }
    uint32_t differ = 0;
    for (uint32_t i = 0; i < tuples; i++) {
        size_t at = (size_t)i * results;
        if (memcmp(values + at, outcome->results + at, results * sizeof values[0]) == 0) continue;
        if (differ++ == 0) printf("differs: %s\n", row->text);
        if (differ <= 8) print_tuple(row, outcome, i, values);
    }
    if (differ > 8) printf("  %u tuples differ\n", differ);
    free(values);
    return differ == 0;
}

static int ptx_table_run(const struct table *table, const struct options *options) {
    struct table_device device;
    if (!table_device_open(&device, options->driver)) {
        fprintf(stderr, "ptx-table: %s\n", device.message);
        return 2;
    }
    printf("%s, driver %d, compute capability %d\n", device.name, device.version,
           device.capability);
    FILE *out = options->out != NULL ? fopen(options->out, "w") : NULL;
    gzFile raw = options->raw != NULL ? gzopen(options->raw, "wb") : NULL;
    gzFile against = options->against != NULL ? gzopen(options->against, "rb") : NULL;
    if ((options->out != NULL && out == NULL) || (options->raw != NULL && raw == NULL) ||
        (options->against != NULL && against == NULL)) {
        fprintf(stderr, "ptx-table: cannot open a file\n");
        return 2;
    }
    if (out != NULL) {
        fprintf(out, "# %s, driver %d, compute capability %d\n", device.name, device.version,
                device.capability);
    }
    size_t ran = 0, refused = 0, differ = 0;
    for (size_t i = options->first; i < table->count; i += options->step) {
        const struct table_row *row = &table->rows[i];
        if (options->row != NULL && strstr(row->text, options->row) == NULL) continue;
        struct table_outcome outcome;
        if (!table_device_run(&device, row, &outcome)) {
            fprintf(stderr, "ptx-table: %s: %s\n", row->text, device.message);
            return 2;
        }
        if (outcome.code != CUDA_SUCCESS) {
            refused++;
            printf("refused with code %d: %s\n  %s\n", (int)outcome.code, row->text, outcome.log);
        }
        ran += outcome.code == CUDA_SUCCESS;
        if (out != NULL) {
            table_line_write(out, row, &outcome);
            fflush(out); /* an interrupted run keeps its results so far */
        }
        if (raw != NULL && outcome.code == CUDA_SUCCESS) table_raw_write(raw, row, &outcome);
        for (uint32_t t = 0; options->show && t < row->tuples; t++) {
            print_tuple(row, &outcome, t, NULL);
        }
        if (against != NULL && outcome.code == CUDA_SUCCESS) {
            differ += !ptx_table_compare(against, row, &outcome);
        }
        table_outcome_free(&outcome);
    }
    if (out != NULL) fclose(out);
    if (raw != NULL) gzclose(raw);
    if (against != NULL) gzclose(against);
    table_device_close(&device);
    printf("%zu rows ran, %zu were refused", ran, refused);
    if (against != NULL) printf(", %zu differ", differ);
    printf("\n");
    return differ > 0 ? 1 : 0;
}

int main(int count, char **arguments) {
    struct options options = {.driver = "libcuda.so.1"};
    char folder[4096];
    struct table table = {0};
    if (!ptx_table_read_options(count, arguments, &options)) return ptx_table_usage();
    if (options.folder == NULL && ptx_table_find_folder(folder, sizeof folder))
        options.folder = folder;
    if (options.folder == NULL || !table_read_folder(&table, options.folder)) {
        fprintf(stderr, "ptx-table: %s\n",
                options.folder == NULL ? "no fixtures/ptx/instructions found nearby: use --table"
                                       : table.message);
        return 2;
    }
    int code = options.ptx == NULL              ? ptx_table_run(&table, &options)
               : write_ptx(&table, options.ptx) ? 0
                                                : 2;
    table_free(&table);
    return code;
}
