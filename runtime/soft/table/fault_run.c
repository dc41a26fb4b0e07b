/*
 * A child process opens the driver, runs the kernel and sends the result through a pipe.
 */
#include "fault_run.h"

#include "table_device.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_S = 60, TEXT_MAX = 1 << 16 };

static bool fault_run_read_text(const char *path, char *text, char *message, size_t bytes) {
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL) fclose(file);
    if (length == 0) snprintf(message, bytes, "%s: %s", path, strerror(errno));
    return length > 0;
}

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

bool fault_run(const char *driver, const char *path, struct fault_outcome *outcome, char *message,
               size_t message_bytes) {
    struct {
        struct fault_outcome outcome;
        char message[512];
    } told = {0};
    int ends[2], status = 0;
    char *ptx = malloc(TEXT_MAX);
    if (ptx == NULL || !fault_run_read_text(path, ptx, message, message_bytes) || pipe(ends) != 0) {
        free(ptx);
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) fault_run_be_child(driver, ptx, ends[1]);
    free(ptx);
    close(ends[1]);
    bool whole = child > 0 && read(ends[0], &told, sizeof told) == (ssize_t)sizeof told;
    close(ends[0]);
    if (child > 0) waitpid(child, &status, 0);
    *outcome = told.outcome;
    if (whole && told.message[0] == '\0') return true;
    if (whole) {
        snprintf(message, message_bytes, "%s", told.message);
    } else if (child > 0 && WIFSIGNALED(status)) {
        snprintf(message, message_bytes, "%s: the process was killed by signal %d", path,
                 WTERMSIG(status));
    } else {
        snprintf(message, message_bytes, "%s: the process reported nothing", path);
    }
    return false;
}

static int fault_run_by_name(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

char **fault_names(const char *folder, size_t *count) {
    DIR *directory = opendir(folder);
    char **names = NULL;
    *count = 0;
    if (directory == NULL) return NULL;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".ptx") != 0) continue;
        char **more = realloc(names, (*count + 1) * sizeof *names);
        if (more == NULL) break;
        names = more;
        names[*count] = strndup(entry->d_name, length - 4);
        if (names[*count] == NULL) break;
        (*count)++;
    }
    closedir(directory);
    if (names != NULL) qsort(names, *count, sizeof *names, fault_run_by_name);
    return names;
}
