/*
 * case-table: runs cases on a driver and writes the result of each.
 *
 *   case-table [--driver PATH] [--out FILE] [--processes N] [--seconds N] FILE...
 *     --driver PATH   the driver library: libcuda.so.1 (default), or the soft device
 *     --out FILE      writes the record, one line per case; default: stdout
 *     --processes N   how many at a time; 8 if not given
 *     --seconds N     starts no case after that time; 60 if not given
 *
 * Needs a driver and nothing else. Exit code: 0; 2 for an error.
 */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int case_table_usage(void) {
    fprintf(stderr, "usage: case-table [--driver PATH] [--out FILE] [--processes N] [--seconds N] "
                    "FILE...\n");
    return 2;
}

int main(int count, char **arguments) {
    const char *driver = "libcuda.so.1", *record = NULL;
    unsigned processes = 8, seconds = 60;
    int at = 1;
    for (; at < count && strncmp(arguments[at], "--", 2) == 0; at += 2) {
        if (at + 1 == count) return case_table_usage();
        if (strcmp(arguments[at], "--driver") == 0) {
            driver = arguments[at + 1];
        } else if (strcmp(arguments[at], "--out") == 0) {
            record = arguments[at + 1];
        } else if (strcmp(arguments[at], "--processes") == 0) {
            processes = (unsigned)strtoul(arguments[at + 1], NULL, 10);
        } else if (strcmp(arguments[at], "--seconds") == 0) {
            seconds = (unsigned)strtoul(arguments[at + 1], NULL, 10);
        } else {
            return case_table_usage();
        }
    }
    if (at == count || processes == 0) return case_table_usage();
    FILE *out = record != NULL ? fopen(record, "w") : stdout;
    if (out == NULL) {
        fprintf(stderr, "case-table: cannot write %s\n", record);
        return 2;
    }
    int code = 0;
    for (; at < count; at++) {
        char message[512] = "";
        size_t cases = 0;
        char **lines = case_read(arguments[at], &cases);
        char *results = lines != NULL ? calloc(cases, CASE_SAID) : NULL;
        if (results == NULL || !case_run_all(driver, lines, cases, processes, seconds, results,
                                             message, sizeof message)) {
            fprintf(stderr, "case-table: %s: %s\n", arguments[at],
                    results == NULL ? "it cannot be read" : message);
            code = 2;
        }
        for (size_t i = 0; i < cases; i++) {
            if (results != NULL) fprintf(out, "%s : %s\n", lines[i], results + i * CASE_SAID);
            free(lines[i]);
        }
        fflush(out);
        fprintf(stderr, "%s: %zu cases\n", arguments[at], cases);
        free(lines);
        free(results);
    }
    if (out != stdout && fclose(out) != 0) code = 2;
    return code;
}
