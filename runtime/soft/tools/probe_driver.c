/*
 * probe-driver: prints what a driver returns where its manual leaves results open.
 *
 *   probe-driver [PATH]     the driver library: libcuda.so.1 (default), or the soft device
 *
 * One line per answer, the same in every run, so that two drivers can be compared: diff
 * <(probe-driver) <(probe-driver build/libtollens-soft.so). Each question runs in a separate
 * process, so that they do not affect each other. Exit code: 0; 2: there is no driver.
 */
#include "base/abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
#define SOFT_FN(thread, version, base, name, parameters, names) CUresult(CUDAAPI *name) parameters;
#include "base/functions.def"
} driver;

static void probe_driver_load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "probe-driver: %s\n", dlerror());
        exit(2); /* NOLINT(concurrency-mt-unsafe): there is one thread */
    }
    void *found = NULL;
#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    found = dlsym(library, #name);                                                                 \
    memcpy((void *)&driver.name, (void *)&found, sizeof found);
#include "base/functions.def"
}

/* Prints a call and its code. The text is the one in this file. */
static CUresult probe_driver_say(const char *call, CUresult code) {
    const char *name = NULL;
    if (driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == NULL) name = "?";
    printf("    %s: %d %s\n", call, (int)code, name);
    return code;
}

#define ASK(function, ...)                                                                         \
    (driver.function == NULL                                                                       \
         ? (printf("    %s: not there\n", #function), (CUresult)CUDA_ERROR_NOT_FOUND)              \
         : probe_driver_say(#function "(" #__VA_ARGS__ ")", driver.function(__VA_ARGS__)))

static CUcontext context;
static CUdevice device;

static const char *const ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 word;\n"
    ".visible .entry put(.param .u64 p) { .reg .u64 %a; ld.param.u64 %a, [p];\n"
    "st.global.u32 [%a], 1; ret; }\n";

static void probe_driver_uninitialised(void) {
    int count = 0;
    size_t bytes = 0;
    const char *text = NULL;
    ASK(cuDeviceGetCount, &count);
    ASK(cuDeviceGet, NULL, 0);
    ASK(cuCtxGetCurrent, NULL);
    ASK(cuCtxSetCurrent, NULL);
    ASK(cuMemAlloc_v2, NULL, 0);
    ASK(cuMemGetInfo_v2, &bytes, &bytes);
    ASK(cuGetErrorName, CUDA_SUCCESS, &text);
    ASK(cuGetErrorName, (CUresult)-1, &text);
    ASK(cuInit, 1);
}

static void probe_driver_devices(void) {
    char text[8] = "";
    int value = 0;
    CUdevice found = 0;
    ASK(cuDeviceGet, NULL, 0);
    ASK(cuDeviceGet, &found, -1);
    ASK(cuDeviceGetName, text, 0, device);
    ASK(cuDeviceGetName, text, 8, device);
    ASK(cuDeviceGetName, NULL, 8, 99);
    ASK(cuDeviceGetAttribute, &value, (CUdevice_attribute)0, device);
    ASK(cuDeviceGetAttribute, &value, (CUdevice_attribute)100000, device);
    ASK(cuDeviceGetPCIBusId, text, 8, device);
    ASK(cuDeviceGetByPCIBusId, &found, "nonsense");
    ASK(cuDeviceGetByPCIBusId, &found, "ffff:ff:1f.7");
    ASK(cuDeviceCanAccessPeer, &value, device, device);
    ASK(cuDeviceGetLuid, text, (unsigned *)&value, device);
}

static void probe_driver_contexts(void) {
    CUcontext other = NULL;
    unsigned flags = 0;
    ASK(cuCtxDestroy_v2, NULL);
    ASK(cuCtxDestroy_v2, context);
    ASK(cuCtxCreate_v2, &other, 0x1000, device);
    ASK(cuCtxCreate_v2, &other, 3, device);
    ASK(cuCtxCreate_v2, &other, 0, device);
    ASK(cuCtxGetFlags, NULL);
    ASK(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, (size_t)1 << 40);
    ASK(cuCtxSetLimit, (CUlimit)99, 1);
    ASK(cuCtxDestroy_v2, other);
    ASK(cuCtxSynchronize_v2, NULL);
    ASK(cuCtxSetCurrent, other);
    ASK(cuCtxPopCurrent_v2, &other);
    ASK(cuCtxPopCurrent_v2, &other);
    ASK(cuCtxPopCurrent_v2, &other);
    ASK(cuCtxGetFlags, &flags);
    ASK(cuDevicePrimaryCtxRelease_v2, device);
    ASK(cuDevicePrimaryCtxRelease_v2, device);
    ASK(cuDevicePrimaryCtxReset_v2, device);
}

static void probe_driver_memory(void) {
    CUdeviceptr address = 0;
    size_t bytes = 0, pitch = 0;
    void *host = NULL;
    static char own[8192];
    ASK(cuMemAlloc_v2, &address, 0);
    ASK(cuMemAlloc_v2, NULL, 4);
    ASK(cuMemAlloc_v2, &address, SIZE_MAX);
    ASK(cuMemAllocPitch_v2, &address, &pitch, 5, 3, 3);
    ASK(cuMemAllocPitch_v2, &address, &pitch, 5, 3, 4);
    printf("    pitch %zu\n", pitch);
    ASK(cuMemFree_v2, address + 4);
    ASK(cuMemFree_v2, 0);
    ASK(cuMemFree_v2, address);
    ASK(cuMemFree_v2, address);
    ASK(cuMemAlloc_v2, &address, 100);
    ASK(cuMemGetAddressRange_v2, NULL, &bytes, address + 99);
    printf("    size %zu\n", bytes);
    ASK(cuMemGetAddressRange_v2, NULL, &bytes, address + 100);
    ASK(cuMemGetAddressRange_v2, NULL, &bytes, 16);
    ASK(cuMemsetD32_v2, address + 2, 0, 1);
    ASK(cuMemsetD8_v2, address, 0, 101);
    ASK(cuMemsetD8_v2, address, 0, 0);
    ASK(cuMemsetD8_v2, 0, 0, 0);
    ASK(cuMemcpyHtoD_v2, address, own, 101);
    ASK(cuMemcpyHtoD_v2, address, own, 8192);
    ASK(cuMemcpyHtoD_v2, 0, own, 0);
    ASK(cuMemcpyDtoD_v2, address, address + 1, 50);
    ASK(cuMemHostAlloc, &host, 0, 0);
    ASK(cuMemHostAlloc, &host, 64, 0x100);
    ASK(cuMemHostRegister_v2, own + 1, 100, 0);
    ASK(cuMemHostRegister_v2, own + 1, 100, 0);
    ASK(cuMemHostUnregister, own + 2);
    ASK(cuMemHostUnregister, own + 1);
    ASK(cuMemHostUnregister, own + 1);
    ASK(cuMemFreeHost, own);
    ASK(cuMemFreeHost, NULL);
}

static void probe_driver_pointers(void) {
    CUdeviceptr address = 0;
    unsigned long long value[2] = {0}; /* the tokens of attribute 5 take both */
    int local = 0;
    ASK(cuMemAlloc_v2, &address, 100);
    for (int attribute = 0; attribute <= 24; attribute++) {
        memset(value, 0, sizeof value);
        printf("    attribute %d\n", attribute);
        ASK(cuPointerGetAttribute, &value, (CUpointer_attribute)attribute, address + 1);
        ASK(cuPointerGetAttribute, &value, (CUpointer_attribute)attribute,
            (CUdeviceptr)(uintptr_t)&local);
    }
    ASK(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0);
    ASK(cuPointerGetAttribute, NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
}

static void probe_driver_streams(void) {
    CUstream stream = NULL;
    CUevent event = NULL, other = NULL;
    float ms = 0;
    CUdeviceptr address = 0;
    ASK(cuStreamCreate, NULL, 0);
    ASK(cuStreamCreate, &stream, 2);
    ASK(cuStreamCreate, &stream, 0);
    ASK(cuStreamDestroy_v2, NULL);
    ASK(cuStreamDestroy_v2, CU_STREAM_LEGACY);
    ASK(cuEventCreate, &event, 0x10);
    ASK(cuEventCreate, &event, 4);
    ASK(cuEventCreate, &event, 0);
    ASK(cuEventCreate, &other, CU_EVENT_DISABLE_TIMING);
    ASK(cuEventQuery, event);
    ASK(cuEventSynchronize, event);
    ASK(cuStreamWaitEvent, stream, event, 0);
    ASK(cuStreamWaitEvent, stream, event, 2);
    ASK(cuEventElapsedTime_v2, &ms, event, event);
    ASK(cuEventRecord, event, stream);
    ASK(cuEventRecord, other, stream);
    ASK(cuStreamSynchronize, stream);
    ASK(cuEventElapsedTime_v2, &ms, event, other);
    ASK(cuEventElapsedTime_v2, NULL, event, event);
    ASK(cuMemAlloc_v2, &address, 8);
    ASK(cuStreamWriteValue32_v2, stream, address + 2, 1, 0);
    ASK(cuStreamWriteValue32_v2, stream, address + 8, 1, 0);
    ASK(cuStreamWriteValue64_v2, stream, address + 4, 1, 0);
    ASK(cuStreamWaitValue32_v2, stream, address, 0, 7);
    ASK(cuStreamBatchMemOp_v2, stream, 0, NULL, 0);
    ASK(cuLaunchHostFunc, stream, NULL, NULL);
    ASK(cuStreamAddCallback, stream, NULL, NULL, 0);
    ASK(cuStreamEndCapture, stream, NULL);
    ASK(cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuStreamSynchronize, stream);
    ASK(cuStreamQuery, stream);
    ASK(cuStreamDestroy_v2, stream);
}

static void probe_driver_modules(void) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    int value = 0;
    ASK(cuModuleLoadData, &module, "");
    ASK(cuModuleLoadData, &module, "nonsense");
    ASK(cuModuleLoadData, &module, "\177ELF");
    ASK(cuModuleLoadData, &module, ".version 99.0\n.target sm_70\n.address_size 64\n");
    ASK(cuModuleLoadData, &module, ".version 7.0\n.target sm_999\n.address_size 64\n");
    ASK(cuModuleLoadData, &module, ".version 7.0\n.target sm_70\n.address_size 64\n");
    ASK(cuModuleLoad, &module, "/nonexistent");
    ASK(cuModuleLoadData, &module, ptx);
    ASK(cuModuleGetFunction, &function, module, "");
    ASK(cuModuleGetFunction, &function, module, "none");
    ASK(cuModuleGetGlobal_v2, &address, &bytes, module, "none");
    ASK(cuModuleGetGlobal_v2, NULL, NULL, module, "word");
    ASK(cuModuleGetFunction, &function, module, "put");
    ASK(cuMemFree_v2, address);
    ASK(cuFuncGetAttribute, &value, (CUfunction_attribute)99, function);
    ASK(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20);
    ASK(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1);
    ASK(cuModuleUnload, NULL);
    ASK(cuModuleUnload, module);
}

static void probe_driver_launches(void) {
    CUmodule module = NULL;
    CUfunction f = NULL;
    CUdeviceptr p = 0;
    void *values[] = {&p};
    ASK(cuModuleLoadData, &module, ptx);
    ASK(cuModuleGetFunction, &f, module, "put");
    ASK(cuMemAlloc_v2, &p, 4);
    ASK(cuLaunchKernel, f, 0, 1, 1, 1, 1, 1, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 0, 1, 1, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1025, 1, 1, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 65, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 65536, 1, 1, 1, 1, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 49152, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 49153, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    ASK(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL);
    ASK(cuCtxSynchronize_v2, NULL);
}

static void probe_driver_graphs(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode one = NULL, other = NULL;
    ASK(cuGraphCreate, &graph, 1);
    ASK(cuGraphCreate, &graph, 0);
    ASK(cuGraphAddEmptyNode, &one, graph, NULL, 0);
    ASK(cuGraphAddEmptyNode, &other, graph, &one, 1);
    ASK(cuGraphAddDependencies_v2, graph, &one, &other, NULL, 1);
    ASK(cuGraphAddDependencies_v2, graph, &other, &one, NULL, 1);
    ASK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    ASK(cuGraphDestroyNode, other);
    ASK(cuGraphInstantiateWithFlags, &exec, graph, 0x100);
    ASK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    ASK(cuGraphDestroy, graph);
    ASK(cuGraphLaunch, exec, NULL);
    ASK(cuGraphExecDestroy, exec);
    ASK(cuGraphDestroy, NULL);
}

static void probe_driver_pools(void) {
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    unsigned long long value = 0;
    ASK(cuDeviceGetDefaultMemPool, &pool, device);
    ASK(cuMemPoolDestroy, pool);
    ASK(cuMemAllocAsync, &address, 0, NULL);
    ASK(cuMemAllocAsync, &address, 100, NULL);
    ASK(cuMemFreeAsync, address + 4, NULL);
    ASK(cuMemFreeAsync, 0, NULL);
    ASK(cuMemFreeAsync, address, NULL);
    ASK(cuMemFreeAsync, address, NULL);
    ASK(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)0, &value);
    ASK(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)99, &value);
    ASK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
}

static void probe_driver_mappings(void) {
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const size_t bytes = (size_t)2 << 20;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    size_t granularity = 0;
    ASK(cuMemGetAllocationGranularity, &granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    printf("    granularity %zu\n", granularity);
    ASK(cuMemAddressReserve, &address, 1, 0, 0, 0);
    ASK(cuMemAddressReserve, &address, bytes, 3, 0, 0);
    ASK(cuMemAddressReserve, &address, bytes, 0, 0, 0);
    ASK(cuMemCreate, &handle, 1, &property, 0);
    ASK(cuMemCreate, &handle, bytes, &property, 0);
    ASK(cuMemMap, address, bytes, 4096, handle, 0);
    ASK(cuMemMap, address, 2 * bytes, 0, handle, 0);
    ASK(cuMemMap, address, bytes, 0, handle, 0);
    ASK(cuMemMap, address, bytes, 0, handle, 0);
    ASK(cuMemsetD8_v2, address, 0, 4);
    ASK(cuMemAddressFree, address, bytes);
    ASK(cuMemUnmap, address, bytes / 2);
    ASK(cuMemUnmap, address, bytes);
    ASK(cuMemUnmap, address, bytes);
    ASK(cuMemAddressFree, address, bytes / 2);
    ASK(cuMemAddressFree, address, bytes);
    ASK(cuMemRelease, handle);
    ASK(cuMemRelease, handle);
}

/* Runs a question in a separate process; only uninitialised without a context. */
static void probe_driver_ask(const char *name, void (*question)(void), const char *path) {
    int status = 0;
    printf("%s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        probe_driver_load(path);
        if (question != probe_driver_uninitialised) {
            bool ready = driver.cuInit(0) == CUDA_SUCCESS &&
                         driver.cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
                         driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
                         driver.cuCtxSetCurrent(context) == CUDA_SUCCESS;
            if (!ready) printf("    there is no device\n");
            if (ready) question();
        } else {
            question();
        }
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("    no process\n");
    } else if (WIFSIGNALED(status)) {
        printf("    ended by signal %d\n", WTERMSIG(status));
    }
}

int main(int count, char **arguments) {
    const char *path = count > 1 ? arguments[1] : "libcuda.so.1";
    static const struct {
        const char *name;
        void (*question)(void);
    } questions[] = {{"uninitialised", probe_driver_uninitialised},
                     {"devices", probe_driver_devices},
                     {"contexts", probe_driver_contexts},
                     {"memory", probe_driver_memory},
                     {"pointers", probe_driver_pointers},
                     {"streams", probe_driver_streams},
                     {"modules", probe_driver_modules},
                     {"launches", probe_driver_launches},
                     {"graphs", probe_driver_graphs},
                     {"pools", probe_driver_pools},
                     {"mappings", probe_driver_mappings}};
    /* What a driver prints on top is not part of the answers. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "probe-driver: %s\n", dlerror());
        return 2;
    }
    dlclose(library);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        probe_driver_ask(questions[i].name, questions[i].question, path);
    }
    return 0;
}
