/*
 * A child process opens the driver, runs the kernel and sends the result through a pipe.
 */
#include "fault_run.h"

#include "joined_text.h"
#include "table_device.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_S = 60, TEXT_MAX = 1 << 16 };

static void fault_run_ended(struct fault_outcome *outcome, const char *call, CUresult code) {
    outcome->code = code;
    snprintf(outcome->call, sizeof outcome->call, "%s", code == CUDA_SUCCESS ? "none" : call);
}

static void fault_run_run(struct table_device *device, const char *ptx,
                          struct fault_outcome *outcome) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {outcome->log, (void *)(uintptr_t)(sizeof outcome->log - 1)};
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr data = 0;
    void *parameters[] = {&data};
    CUresult code = device->cuModuleLoadDataEx(&module, ptx, 2, options, values);
    fault_run_ended(outcome, "load", code);
    if (code != CUDA_SUCCESS) return;
    code = device->cuModuleGetFunction(&function, module, "fault");
    if (code == CUDA_SUCCESS) code = device->cuMemAlloc_v2(&data, FAULT_BYTES);
    if (code == CUDA_SUCCESS) code = device->cuMemsetD8_v2(data, 0, FAULT_BYTES);
    if (code == CUDA_SUCCESS) {
        code = device->cuLaunchKernel(function, 1, 1, 1, FAULT_THREADS, 1, 1, 0, NULL, parameters,
                                      NULL);
    }
    fault_run_ended(outcome, "launch", code);
    if (code == CUDA_SUCCESS) fault_run_ended(outcome, "synchronize", device->cuCtxSynchronize());
}

static void fault_run_be_child(const char *driver, const char *ptx, int out) {
    struct {
        struct fault_outcome outcome;
        char message[512];
    } told = {0};
    struct table_device device;
    alarm(DEADLINE_S);
    if (table_device_open(&device, driver)) {
        fault_run_run(&device, ptx, &told.outcome);
    } else {
        snprintf(told.message, sizeof told.message, "%s", device.message);
    }
    /* The driver cleans up the rest of the context. */
    _exit(write(out, &told, sizeof told) == (ssize_t)sizeof told ? 0 : 1);
}

bool fault_run(const char *driver, const struct fault *fault, struct fault_outcome *outcome,
               char *message, size_t message_bytes) {
    struct {
        struct fault_outcome outcome;
        char message[512];
    } told = {0};
    int ends[2], status = 0;
    if (pipe(ends) != 0) {
        snprintf(message, message_bytes, "%s: pipe: %s", fault->name, strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) fault_run_be_child(driver, fault->text, ends[1]);
    close(ends[1]);
    bool whole = child > 0 && read(ends[0], &told, sizeof told) == (ssize_t)sizeof told;
    close(ends[0]);
    if (child > 0) waitpid(child, &status, 0);
    *outcome = told.outcome;
    if (whole && told.message[0] == '\0') return true;
    if (whole) {
        snprintf(message, message_bytes, "%s", told.message);
    } else if (child > 0 && WIFSIGNALED(status)) {
        snprintf(message, message_bytes, "%s: the process was killed by signal %d", fault->name,
                 WTERMSIG(status));
    } else {
        snprintf(message, message_bytes, "%s: the process reported nothing", fault->name);
    }
    return false;
}

static int fault_run_by_name(const void *one, const void *other) {
    return strcmp(((const struct fault *)one)->name, ((const struct fault *)other)->name);
}

/* Adds the texts of a file; false: it cannot be read, has none, or there is no memory. */
static bool fault_run_add_file(const char *path, struct fault **faults, size_t *count) {
    static char file_text[TEXT_MAX];
    struct joined_text one;
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(file_text, 1, TEXT_MAX - 1, file) : 0;
    bool whole = file != NULL && feof(file);
    file_text[length] = '\0';
    if (file != NULL) fclose(file);
    char *at = whole ? joined_text_first(file_text) : NULL;
    bool ok = at != NULL;
    while (at != NULL && ok) {
        at = joined_text_cut(at, &one);
        struct fault *more = realloc(*faults, (*count + 1) * sizeof **faults);
        char *text = more != NULL ? strdup(one.text) : NULL;
        if (more != NULL) *faults = more;
        ok = text != NULL;
        if (!ok) break;
        memcpy(more[*count].name, one.name, sizeof one.name);
        more[(*count)++].text = text;
    }
    return ok;
}

struct fault *fault_read(const char *folder, size_t *count) {
    DIR *directory = opendir(folder);
    struct fault *faults = NULL;
    bool ok = directory != NULL;
    *count = 0;
    for (struct dirent *entry; ok && (entry = readdir(directory)) != NULL;) {
        char path[8400];
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".ptx") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ok = fault_run_add_file(path, &faults, count);
    }
    if (directory != NULL) closedir(directory);
    if (!ok) {
        fault_free(faults, *count);
        return NULL;
    }
    if (faults != NULL) qsort(faults, *count, sizeof *faults, fault_run_by_name);
    return faults;
}

void fault_free(struct fault *faults, size_t count) {
    for (size_t i = 0; faults != NULL && i < count; i++) free(faults[i].text);
    free(faults);
}
