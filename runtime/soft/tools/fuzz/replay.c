/*
 * Drives a fuzz target with files instead of a fuzzer: the committed inputs in ci/check, what a
 * fuzzer found, and fuzzers that start a program for each input, as AFL++ does.
 *
 *   replay-ptx FILE-OR-FOLDER...    or one input on stdin
 *
 * Exit code 0: every property held. An input that crashes the target or takes longer than a minute
 * is named, and the process ends by that signal. It links with targets of any room, and includes
 * none of their headers.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>

/* Without it UBSan exits, and no input is named. The name is the sanitizer's. */
const char *__ubsan_default_options(void); /* NOLINT(bugprone-reserved-identifier) */
__attribute__((visibility("default"))) const char *__ubsan_default_options(void) {
    return "abort_on_error=1";
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECONDS_MAX = 60 };

static char current[4096] = "the input on stdin";
static unsigned long inputs;

/* Only calls that a signal handler may make. */
static void name_input(void) {
    static const char words[] = "replay: this input ended the target: ";
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0 ||
        write(STDERR_FILENO, current, strlen(current)) < 0 || write(STDERR_FILENO, "\n", 1) < 0) {
        _exit(2);
    }
}

static void replay_end(int signal_number) {
    name_input();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The sanitizers have handlers of their own, which say where it was. */
static void replay_prepare(void) {
    signal(SIGABRT, replay_end);
    signal(SIGALRM, replay_end);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(name_input);
#else
    signal(SIGSEGV, replay_end);
    signal(SIGBUS, replay_end);
    signal(SIGFPE, replay_end);
    signal(SIGILL, replay_end);
#endif
}

static int replay(FILE *file) {
    size_t size = 0, room = 1 << 16, got = 0;
    uint8_t *data = malloc(room);
    while (data != NULL && (got = fread(data + size, 1, room - size, file)) > 0) {
        size += got;
        if (size < room) continue;
        uint8_t *more = realloc(data, room *= 2);
        if (more == NULL) free(data);
        data = more;
    }
    if (data == NULL || ferror(file)) {
        fprintf(stderr, "replay: %s cannot be read\n", current);
        free(data);
        return 2;
    }
    /* As long as the input and no longer, for the sanitizers. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) return 2;
    if (size > 0) memcpy(exact, data, size);
    free(data);
    alarm(SECONDS_MAX);
    LLVMFuzzerTestOneInput(exact, size);
    alarm(0);
    free(exact);
    inputs++;
    return 0;
}

static int replay_path(const char *path);

static int replay_folder(const char *path) {
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort), result = 0;
    if (count < 0) {
        perror(path);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (result == 0 && entries[i]->d_name[0] != '.') result = replay_path(inner);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int replay_path(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) return replay_folder(path);
    snprintf(current, sizeof current, "%s", path);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return 2;
    }
    int result = replay(file);
    fclose(file);
    return result;
}

int main(int argc, char **argv) {
    replay_prepare();
    int result = argc < 2 ? replay(stdin) : 0;
    for (int i = 1; i < argc && result == 0; i++) result = replay_path(argv[i]);
    if (result == 0) printf("replay: %lu inputs\n", inputs);
    return result;
}
