/*
 * Finds a program's versions, and manages the memory of a check.
 */
#include "corpus_scene.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *program;
    void (*check)(CUmodule module);
    size_t runs;
    char version[128];
    CUdeviceptr memory[32];
    size_t count;
} run;

static void check_version(const char *name, const char *text) {
    size_t length = strlen(run.program);
    if (strncmp(name, run.program, length) != 0 || name[length] != '_' || name[length + 1] < '0' ||
        name[length + 1] > '9') {
        return;
    }
    snprintf(run.version, sizeof run.version, "%s", name);
    CUmodule module = test_load(text);
    run.runs++;
    run.check(module);
    for (; run.count > 0; run.count--) cuMemFree_v2(run.memory[run.count - 1]);
    cr_assert_eq(cuModuleUnload(module), CUDA_SUCCESS);
    cr_assert_str_eq(test_captured(stderr), "", "%s: %s", name, test_captured(stderr));
}

void corpus_check_all(const char *workers) {
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race", 1);
    setenv("TOLLENS_SOFT_WORKERS", workers, 1);
}

size_t corpus_each(const char *program, void (*check)(CUmodule module)) {
    run.program = program;
    run.check = check;
    run.runs = 0;
    test_soft_open();
    test_capture(stderr);
    test_each_fixture("corpus", check_version);
    return run.runs;
}

void corpus_forget(size_t count) {
    for (; count > 0 && run.count > 0; count--) cuMemFree_v2(run.memory[--run.count]);
}

CUdeviceptr corpus_put(const void *data, size_t bytes) {
    CUdeviceptr address = 0;
    cr_assert(run.count < sizeof run.memory / sizeof run.memory[0]);
    cr_assert_eq(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    run.memory[run.count++] = address;
    if (data != NULL) {
        cr_assert_eq(cuMemcpyHtoD_v2(address, data, bytes), CUDA_SUCCESS);
    } else {
        cr_assert_eq(cuMemsetD8_v2(address, 0, bytes), CUDA_SUCCESS);
    }
    return address;
}

void corpus_get(CUdeviceptr from, void *to, size_t bytes) {
    CUresult result = cuMemcpyDtoH_v2(to, from, bytes);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d", run.version, (int)result);
}

static void wait_for(const char *kernel, CUresult launched) {
    cr_assert_eq(launched, CUDA_SUCCESS, "%s, %s: %d", run.version, kernel, (int)launched);
    CUresult result = cuCtxSynchronize();
    cr_assert_eq(result, CUDA_SUCCESS, "%s, %s: %d: %s", run.version, kernel, (int)result,
                 test_log());
}

void corpus_launch(CUmodule module, const char *kernel, const unsigned shape[5], void **arguments) {
    CUfunction function = test_function(module, kernel);
    CUresult result = cuLaunchKernel(function, shape[0], shape[1], 1, shape[2], shape[3], 1,
                                     shape[4], NULL, arguments, NULL);
    wait_for(kernel, result);
}

void corpus_launch_cooperative(CUmodule module, const char *kernel, unsigned blocks,
                               unsigned threads, void **arguments) {
    CUfunction function = test_function(module, kernel);
    wait_for(kernel,
             cuLaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, arguments));
}

const char *corpus_version(void) {
    return run.version;
}
