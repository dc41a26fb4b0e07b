/*
 * What a launch costs beside the kernel's own work, and what loading costs.
 */
#include "bench.h"

#include "api/export.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 1000, BATCHES = 20, LOADS = 3 };

static double read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double bench_cpu(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool bench_failed(const char *what, int result) {
    fprintf(stderr, "bench-soft: %s: error %d\n", what, result);
    return false;
}

char *bench_read(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0, length = 0;
    while (file != NULL) {
        if (length + 1 >= room) {
            char *more = realloc(text, room = room * 2 + 65536);
            if (more == NULL) break;
            text = more;
        }
        size_t got = fread(text + length, 1, room - length - 1, file);
        length += got;
        text[length] = '\0';
        if (got == 0) break;
    }
    if (file == NULL) {
        fprintf(stderr, "bench-soft: %s not found: run it in the root of the repository\n", path);
    } else {
        fclose(file);
    }
    return text;
}

bool bench_open(void) {
    CUdevice device = 0;
    CUcontext context = NULL;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
    return result == CUDA_SUCCESS || bench_failed("the device cannot be opened", (int)result);
}

/* Launches and waits, after each launch or once at the end. Returns the time per launch. */
static bool bench_calls_launch_many(CUfunction function, bool each, double *us) {
    CUresult result = CUDA_SUCCESS;
    for (int batch = 0; batch < BATCHES && result == CUDA_SUCCESS; batch++) {
        double begin = bench_now();
        for (int i = 0; i < LAUNCHES && result == CUDA_SUCCESS; i++) {
            result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
            if (each && result == CUDA_SUCCESS) result = cuStreamSynchronize(NULL);
        }
        if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
        double now = (bench_now() - begin) * 1e6 / LAUNCHES;
        if (batch == 0 || now < *us) *us = now;
    }
    return result == CUDA_SUCCESS || bench_failed("an empty launch", (int)result);
}

bool bench_launches(struct bench_figures *figures) {
    char *text = bench_read("fixtures/ptx/corpus/speed_80.ptx");
    CUmodule module = NULL;
    CUfunction function = NULL;
    if (text == NULL) return false;
    CUresult result = cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    free(text);
    if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, "empty");
    if (result != CUDA_SUCCESS)
        return bench_failed("the empty kernel cannot be loaded", (int)result);
    return bench_calls_launch_many(function, true, &figures->launch_us) &&
           bench_calls_launch_many(function, false, &figures->enqueue_us);
}

static bool bench_calls_load(const char *path, struct bench_figures *figures) {
    char *text = bench_read(path);
    double best = 0;
    if (text == NULL) return false;
    for (int i = 0; i < LOADS; i++) {
        CUmodule module = NULL;
        double begin = bench_now();
        CUresult result = cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
        double ms = (bench_now() - begin) * 1e3;
        if (result != CUDA_SUCCESS) {
            free(text);
            return bench_failed(path, (int)result);
        }
        cuModuleUnload(module);
        if (i == 0 || ms < best) best = ms;
    }
    figures->load_ms += best;
    figures->modules++;
    figures->module_bytes += strlen(text);
    free(text);
    if (best > figures->slowest_ms) {
        figures->slowest_ms = best;
        const char *name = strrchr(path, '/');
        snprintf(figures->slowest, sizeof figures->slowest, "%s", name != NULL ? name + 1 : path);
    }
    return true;
}

bool bench_loads(struct bench_figures *figures) {
    static const char *const folders[] = {"kernels", "corpus", "handwritten"};
    bool ok = true;
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        char pattern[64];
        glob_t found = {0};
        snprintf(pattern, sizeof pattern, "fixtures/ptx/%s/*.ptx", folders[f]);
        if (glob(pattern, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc && ok; i++)
                ok = bench_calls_load(found.gl_pathv[i], figures);
        }
        globfree(&found);
    }
    return ok;
}
