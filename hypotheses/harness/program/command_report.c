/*
 * report, compare and merge: pages about runs, which are Python. In a clone they are the reports of
 * the clone; elsewhere those of the Python package tollens. The process becomes that of Python.
 */
#include "run/command.h"
#include "harness/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char of_clone[] = "import sys\n"
                               "from reports import __main__ as report\n"
                               "sys.exit(report.command(sys.argv[1], sys.argv[2:], 'tollens'))\n";
static const char of_package[] =
    "import sys\n"
    "try:\n"
    "    from tollens.program import own_command\n"
    "except ImportError:\n"
    "    print('tollens: reports need the Python package tollens, which is not installed\\n'\n"
    "          '  next: install the wheel that ci/package pip makes', file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "sys.exit(own_command(sys.argv[1:]))\n";

/* The interpreter that ci/setup chose for a clone, which has what reports need. */
static void read_interpreter(const char *root, char *name, size_t bytes) {
    char path[4400];
    snprintf(name, bytes, "python3");
    snprintf(path, sizeof path, "%s/build/python", root);
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    if (fgets(path, sizeof path, file) != NULL && path[0] == '/') {
        path[strcspn(path, "\n")] = '\0';
        snprintf(name, bytes, "%s", path);
    }
    fclose(file);
}

/* Whether the program belongs to a clone, which has the reports; lets Python find them. */
static bool is_clone(const char *root) {
    char path[4400];
    if (root == NULL) return false;
    snprintf(path, sizeof path, "%s/reports/__main__.py", root);
    if (access(path, R_OK) != 0) return false;
    const char *others = getenv("PYTHONPATH");
    const bool has_others = others != NULL && others[0] != '\0';
    const size_t bytes = strlen(root) + (has_others ? strlen(others) : 0) + 2;
    char *folders = malloc(bytes);
    if (folders == NULL) return false;
    snprintf(folders, bytes, "%s%s%s", root, has_others ? ":" : "", has_others ? others : "");
    const bool is_set = setenv("PYTHONPATH", folders, 1) == 0;
    free(folders);
    return is_set;
}

static int become_python(const char *command, int count, char **words) {
    char interpreter[4400] = "python3", option[] = "-c", json[] = "--json";
    const char *root = hyp_session_root();
    const bool in_clone = is_clone(root);
    if (in_clone) read_interpreter(root, interpreter, sizeof interpreter);
    char **all = calloc((size_t)count + 6, sizeof *all);
    if (all == NULL) return hyp_command_complain("no memory is left");
    size_t used = 0;
    all[used++] = interpreter;
    all[used++] = option;
    all[used++] = (char *)(uintptr_t)(in_clone ? of_clone : of_package);
    all[used++] = (char *)(uintptr_t)command;
    if (hyp_command_is_json()) all[used++] = json;
    for (int i = 0; i < count; i++) all[used++] = words[i];
    fflush(stdout);
    execvp(interpreter, all);
    free(all);
    hyp_command_next("ci/setup, which finds or installs Python");
    return hyp_command_complain("%s cannot be run: %s", interpreter, strerror(errno));
}

int hyp_command_report(int count, char **words) {
    return become_python("report", count, words);
}

int hyp_command_compare(int count, char **words) {
    return become_python("compare", count, words);
}

int hyp_command_merge(int count, char **words) {
    return become_python("merge", count, words);
}
