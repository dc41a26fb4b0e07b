/*
 * A folder, an environment and popen.
 */
#include "shell_scene.h"

#include "files/atomic_file.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char program_output[65536];
static char folder[64];

void program_begin(void) {
    snprintf(folder, sizeof folder, "/tmp/tollens_program_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    setenv("TOLLENS_DEVICE", "soft", 1);
    setenv("TOLLENS_SEED", "1", 1); /* one seed, which takes half as long as two */
    unsetenv("BXFI_MAP"); /* by it Criterion's programs know that they are workers of a test */
}

void program_end(void) {
    cr_assert(hyp_directory_remove(folder), "%s", hyp_error());
}

bool program_says(const char *text) {
    return strstr(program_output, text) != NULL;
}

int program_shell(const char *command) {
    char line[4200], text[6000];
    snprintf(line, sizeof line, "%s/tollens", hyp_session_program_folder());
    setenv("T", line, 1);
    setenv("D", folder, 1);
    cr_assert(hyp_session_root() != NULL, "the fixtures are missing");
    setenv("R", hyp_session_root(), 1);
    snprintf(text, sizeof text, "{ %s; } 2>&1", command);
    FILE *pipe = popen(text, "r");
    cr_assert(pipe != NULL);
    size_t length = fread(program_output, 1, sizeof program_output - 1, pipe);
    program_output[length] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void program_write(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *strrchr(path, '/') = '\0';
    cr_assert(hyp_directory_make(path), "%s", hyp_error());
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert(hyp_file_write(path, text), "%s", hyp_error());
}

json_t *program_json(const char *name) {
    char path[256];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *object = json_load_file(path, 0, &error);
    cr_assert(object != NULL, "%s: %s", path, error.text);
    return object;
}
