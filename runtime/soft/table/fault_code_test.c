/*
 * The faults on the soft device, compared with an H200's codes.
 */
#include "fault_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[8300], driver[4200];

static void find_files(void) {
    static const char *const roots[] = {"", "../", "../../"};
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 64);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    snprintf(driver, sizeof driver, "%slibtollens-soft.so", own);
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(folder, sizeof folder, "%s%sfixtures/ptx/faults", own, roots[i]);
        if (access(folder, R_OK) == 0) return;
    }
    cr_assert(false, "the faults are missing");
}

/* The code in a record's line that begins with a name; -1 if there is none. */
static int recorded(const char *name) {
    char path[8400], line[256];
    size_t length = strlen(name);
    int code = -1;
    snprintf(path, sizeof path, "%s/h200.record", folder);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s is missing", path);
    while (fgets(line, sizeof line, file) != NULL) {
        bool meant = strncmp(line, name, length) == 0 && line[length] == ' ';
        if (meant) code = (int)strtol(line + length, NULL, 10);
    }
    fclose(file);
    return code;
}

/* What a fault says of the soft device itself, in its second line; -1 if nothing. */
static int excepted(const char *text) {
    static const char mark[] = "\n// soft: ";
    const char *end = strchr(text, '\n');
    bool has = end != NULL && strncmp(end, mark, sizeof mark - 1) == 0;
    return has ? (int)strtol(end + sizeof mark - 1, NULL, 10) : -1;
}

Test(fault_code, the_codes_are_those_of_a_gpu) {
    find_files();
    size_t count = 0;
    struct fault *faults = fault_read(folder, &count);
    cr_assert(count >= 40, "%zu faults", count);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    for (size_t i = 0; i < count; i++) {
        char message[512];
        const char *name = faults[i].name;
        struct fault_outcome outcome = {0};
        int own = excepted(faults[i].text), expected = own >= 0 ? own : recorded(name);
        cr_assert(expected >= 0, "%s is not in the record", name);
        cr_assert(fault_run(driver, &faults[i], &outcome, message, sizeof message), "%s", message);
        cr_expect_eq((int)outcome.code, expected, "%s gave %d at %s, and not %d: %s", name,
                     (int)outcome.code, outcome.call, expected, outcome.log);
    }
    fault_free(faults, count);
    printf("%zu faults\n", count);
}

Test(fault_code, a_folder_without_faults_has_none) {
    size_t count = 1;
    find_files();
    strcat(folder, "/../handwritten"); /* texts without a name */
    cr_assert_null(fault_read(folder, &count));
    strcat(folder, "/none");
    cr_assert_null(fault_read(folder, &count));
}
