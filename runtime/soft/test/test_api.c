/*
 * The shared part of the driver API's tests.
 */
#include "test_api.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

const char *const api_kernels = ".version 7.0\n"
                                ".target sm_70\n"
                                ".address_size 64\n"
                                ".visible .entry put(.param .u64 address, .param .u32 value) {\n"
                                "    .reg .u64 %a;\n"
                                "    .reg .u32 %v;\n"
                                "    ld.param.u64 %a, [address];\n"
                                "    ld.param.u32 %v, [value];\n"
                                "    st.global.u32 [%a], %v;\n"
                                "    ret;\n"
                                "}\n"
                                ".visible .entry hold(.param .u64 address) {\n"
                                "    .reg .u64 %a;\n"
                                "    .reg .u32 %v;\n"
                                "    .reg .pred %p;\n"
                                "    ld.param.u64 %a, [address];\n"
                                "again:\n"
                                "    ld.volatile.global.u32 %v, [%a];\n"
                                "    setp.eq.u32 %p, %v, 0;\n"
                                "    @%p bra again;\n"
                                "    ret;\n"
                                "}\n";

const char *api_code(CUresult result) {
    const char *name = NULL;
    return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "an unknown code";
}

CUcontext api_context(CUdevice device) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    return context;
}

CUfunction api_function(const char *ptx, const char *name) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* A function of api_kernels in the current context. */
static CUfunction find(const char *name) {
    static CUcontext contexts[8];
    static CUmodule modules[8];
    CUcontext current = NULL;
    CUfunction function = NULL;
    OK(cuCtxGetCurrent(&current));
    int i = 0;
    while (contexts[i] != NULL && contexts[i] != current) i++;
    if (contexts[i] == NULL) OK(cuModuleLoadData(&modules[i], api_kernels));
    contexts[i] = current;
    OK(cuModuleGetFunction(&function, modules[i], name));
    return function;
}

void api_put(CUdeviceptr address, unsigned value, CUstream stream) {
    void *parameters[] = {&address, &value};
    OK(cuLaunchKernel(find("put"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

void api_hold(CUdeviceptr address, CUstream stream) {
    void *parameters[] = {&address};
    OK(cuLaunchKernel(find("hold"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

CUresult api_fault(void) {
    api_put(16, 1, NULL);
    return cuCtxSynchronize();
}

volatile unsigned *api_flag(CUdeviceptr *address) {
    void *flag = NULL;
    OK(cuMemHostAlloc(&flag, sizeof(unsigned), 0));
    OK(cuMemHostGetDevicePointer_v2(address, flag, 0));
    return flag;
}

const char *api_faults(const char *rules) {
    static char path[64];
    static FILE *file; /* it has no name, and goes with the test */
    file = tmpfile();
    cr_assert(file != NULL && fputs(rules, file) >= 0 && fflush(file) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    setenv("TOLLENS_SOFT_FAULTS", path, 1);
    return path;
}

unsigned api_read(CUdeviceptr address) {
    unsigned value = 0;
    OK(cuMemcpyDtoH_v2(&value, address, sizeof value));
    return value;
}

size_t api_heap(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void limit_memory(bool all_gone) {
    struct rlimit limit = {0, RLIM_INFINITY};
    (void)getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = all_gone ? 0 : limit.rlim_max;
    (void)setrlimit(RLIMIT_AS, &limit);
}

void *api_take_memory(void) {
    /* Blocks of all sizes, down to the smallest, in a list that needs no memory itself. */
    void *all = NULL;
    limit_memory(true);
    for (size_t bytes = (size_t)1 << 20; bytes >= 8; bytes = bytes > 1024 ? bytes / 2 : bytes - 8) {
        for (void **block = malloc(bytes); block != NULL; block = malloc(bytes)) {
            *block = all;
            all = (void *)block;
        }
    }
    return all;
}

void api_give_memory(void *all) {
    limit_memory(false);
    while (all != NULL) {
        void *next = *(void **)all;
        free(all);
        all = next;
    }
}

void api_must_keep_nothing(void (*work)(void), int times) {
    enum { ROUNDS = 3 };
    size_t least = SIZE_MAX;
    work();
    for (int round = 0; round < ROUNDS && least >= (size_t)times; round++) {
        const size_t before = api_heap();
        for (int i = 0; i < times; i++) work();
        const size_t after = api_heap(), grown = after > before ? after - before : 0;
        if (grown < least) least = grown;
    }
    cr_assert_lt(least, (size_t)times, "%d times keep %zu bytes", times, least);
}
