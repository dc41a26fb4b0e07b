/*
 * fault-table: runs kernels that must fail on a driver and prints the code of each.
 *
 *   fault-table [--driver PATH] [--faults FOLDER] [--out FILE] [NAME...]
 *     --driver PATH     the driver library: libcuda.so.1 (default), or the soft device
 *     --faults FOLDER   the kernels: fixtures/ptx/faults near the program (default)
 *     --out FILE        writes the record, one line per fault
 *
 * Needs a driver and nothing else. Exit code: 0; 2 for an error.
 */
#include "fault_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fault_table_usage(void) {
    fprintf(stderr,
            "usage: fault-table [--driver PATH] [--faults FOLDER] [--out FILE] [NAME...]\n");
    return 2;
}

static const char *fault_table_find_folder(char *path, size_t bytes) {
    static const char *const roots[] = {"", "../", "../../"};
    char own[3072];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, bytes, "%s%sfixtures/ptx/faults", own, roots[i]);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}

static bool fault_table_is_wanted(const char *name, char **wanted, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, wanted[i]) == 0) return true;
    }
    return count == 0;
}

static void run_one(const char *driver, const struct fault *fault, FILE *out) {
    char message[512];
    const char *name = fault->name;
    struct fault_outcome outcome;
    if (!fault_run(driver, fault, &outcome, message, sizeof message)) {
        printf("%-32s %s\n", name, message);
        return;
    }
    printf("%-32s %3d at %s\n", name, (int)outcome.code, outcome.call);
    if (outcome.log[0] != '\0') printf("%s\n", outcome.log);
    if (out != NULL) fprintf(out, "%s %d %s\n", name, (int)outcome.code, outcome.call);
}

int main(int count, char **arguments) {
    const char *driver = "libcuda.so.1", *folder = NULL, *record = NULL;
    char near[4096];
    int at = 1;
    for (; at < count && strncmp(arguments[at], "--", 2) == 0; at += 2) {
        if (at + 1 == count) return fault_table_usage();
        if (strcmp(arguments[at], "--driver") == 0) {
            driver = arguments[at + 1];
        } else if (strcmp(arguments[at], "--faults") == 0) {
            folder = arguments[at + 1];
        } else if (strcmp(arguments[at], "--out") == 0) {
            record = arguments[at + 1];
        } else {
            return fault_table_usage();
        }
    }
    if (folder == NULL) folder = fault_table_find_folder(near, sizeof near);
    size_t faults = 0;
    struct fault *fault = folder != NULL ? fault_read(folder, &faults) : NULL;
    FILE *out = record != NULL ? fopen(record, "w") : NULL;
    if (fault == NULL || (record != NULL && out == NULL)) {
        fprintf(stderr, "fault-table: %s\n",
                fault == NULL ? "no fixtures/ptx/faults found nearby: use --faults"
                              : "cannot write the record");
        return 2;
    }
    for (size_t i = 0; i < faults; i++) {
        if (fault_table_is_wanted(fault[i].name, arguments + at, count - at))
            run_one(driver, &fault[i], out);
    }
    fault_free(fault, faults);
    if (out != NULL && fclose(out) != 0) {
        fprintf(stderr, "fault-table: cannot write the record\n");
        return 2;
    }
    return 0;
}
