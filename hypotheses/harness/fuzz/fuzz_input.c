/*
 * A folder in memory, and how a target ends.
 */
#include "fuzz_input.h"

#include "files/atomic_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

void fuzz_complain(const char *file, int line, const char *property) {
    fprintf(stderr, "fuzz: %s:%d: this does not hold: %s; the last error was: %s\n", file, line,
            property, hyp_error());
    hyp_directory_remove(folder);
}

static void remove_folder(void) {
    hyp_directory_remove(folder);
}

const char *fuzz_folder(void) {
    if (folder[0] != '\0') return folder;
    snprintf(folder, sizeof folder, "%s/tollens_fuzz_XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(2);
    }
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t size) {
    static char path[256];
    const char *slash = strrchr(name, '/');
    snprintf(path, sizeof path, "%s/%.*s", fuzz_folder(), slash != NULL ? (int)(slash - name) : 0,
             name);
    bool ok = hyp_directory_make(path);
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *file = ok ? fopen(path, "wb") : NULL;
    ok = file != NULL && fwrite(data, 1, size, file) == size;
    if (file == NULL || fclose(file) != 0 || !ok) {
        perror(path);
        exit(2);
    }
    return path;
}

char *fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL) exit(2);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
