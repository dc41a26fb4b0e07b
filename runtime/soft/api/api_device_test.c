/*
 * Initialisation and devices: calls before cuInit, with invalid devices or with NULL results;
 * and what NVML returns about devices.
 */
#include "driver/call.h"
#include "entries.h"
#include "test/test_api.h"
#include "tollens/cuda_nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

Test(api_device, nothing_works_before_cuInit) {
    int number = 0;
    size_t bytes = 0;
    CUcontext context = NULL;
    CUdeviceptr pointer = 0;
    CUstream stream = NULL;
    CUmodule module = NULL;
    REFUSED(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuDeviceGet(&number, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuDeviceTotalMem_v2(&bytes, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxSetCurrent(NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxPopCurrent_v2(&context), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuMemFree_v2(4096), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuStreamDestroy_v2(NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuEventDestroy_v2(NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuModuleLoadData(&module, ""), CUDA_ERROR_NOT_INITIALIZED);
}

/* Whatever the arguments are: those that are refused elsewhere are not looked at. */
Test(api_device, only_what_concerns_no_device_works_before_cuInit) {
    static const char *const general[] = {
        "cuInit",           "cuDriverGetVersion",  "cuGetErrorName", "cuGetErrorString",
        "cuGetProcAddress", "cuGetProcAddress_v2", "cuLogsCurrent",  "cuLogsDumpToFile",
        "cuGetExportTable", "cuLogsDumpToMemory"};
    for (int call = 0; call < SOFT_CALLS; call++) {
        bool works = false;
        for (size_t i = 0; i < sizeof general / sizeof general[0]; i++) {
            works |= strcmp(soft_entries[call].name, general[i]) == 0;
        }
        CUresult result = soft_call_begin((enum soft_call)call, false, NULL);
        cr_assert_eq(soft_call_end((enum soft_call)call, result), result);
        cr_assert_eq(result, works ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED, "%s: %s",
                     soft_entries[call].name, api_code(result));
    }
    REFUSED(cuGraphGetNodes(NULL, NULL, NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuGraphAddHostNode(NULL, NULL, NULL, 0, NULL), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuStreamBeginCaptureToGraph(NULL, NULL, NULL, NULL, 0, 9), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuCtxCreate_v3(NULL, NULL, -1, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
}

Test(api_device, cuInit_takes_no_flags_and_may_be_called_again) {
    int version = 0;
    OK(cuDriverGetVersion(&version));
    cr_assert_eq(version, 13000, "the version is known before cuInit");
    REFUSED(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuInit(0));
}

/* The checks that every question about a device makes: no place for the answer, no such device. */
Test(api_device, questions_need_a_device_and_a_place) {
    int value = 0, major = 0, minor = 0;
    size_t bytes = 0;
    char text[64];
    CUuuid uuid;
    CUdevprop properties;
    OK(cuInit(0));
    static const CUdevice none[] = {-1, 1, 8, 1000000};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CUdevice d = none[i];
        REFUSED(cuDeviceGet(&value, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceGetName(text, 64, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceGetPCIBusId(text, 64, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceGetUuid_v2(&uuid, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceTotalMem_v2(&bytes, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d),
                CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceGetProperties(&properties, d), CUDA_ERROR_INVALID_DEVICE);
        REFUSED(cuDeviceComputeCapability(&major, &minor, d), CUDA_ERROR_INVALID_DEVICE);
    }
    REFUSED(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetName(NULL, 64, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetName(text, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetPCIBusId(text, 12, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetUuid_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceTotalMem_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetAttribute(&value, (CUdevice_attribute)CU_DEVICE_ATTRIBUTE_MAX, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceComputeCapability(&major, NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_device, a_name_that_does_not_fit_is_cut) {
    char name[5] = "xxxx";
    OK(cuInit(0));
    OK(cuDeviceGetName(name, sizeof name, 0));
    cr_assert_str_eq(name, "Toll");
}

Test(api_device, properties_are_the_attributes) {
    CUdevprop p;
    int value = 0;
    OK(cuInit(0));
    OK(cuDeviceGetProperties(&p, 0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 0));
    cr_assert_eq(p.maxThreadsDim[2], value);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0));
    cr_assert_eq(p.maxGridSize[0], value);
    cr_assert_eq(p.SIMDWidth, 32);
    cr_assert_eq(p.maxThreadsPerBlock, 1024);
    cr_assert_eq(p.textureAlign, 512);
}

Test(api_device, devices_are_found_by_their_bus_again) {
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    int count = 0;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    cr_assert_eq(count, 3);
    CUuuid uuids[3];
    for (int d = 0; d < 3; d++) {
        char id[16];
        CUdevice found = -1;
        OK(cuDeviceGetPCIBusId(id, sizeof id, d));
        OK(cuDeviceGetByPCIBusId(&found, id));
        cr_assert_eq(found, d, "%s is %d", id, found);
        OK(cuDeviceGetUuid(&uuids[d], d));
        for (int other = 0; other < d; other++) {
            cr_assert(memcmp(&uuids[d], &uuids[other], sizeof(CUuuid)) != 0);
        }
    }
    CUdevice found = -1;
    OK(cuDeviceGetByPCIBusId(&found, "0000:02:00"));
    cr_assert_eq(found, 2);
    OK(cuDeviceGetByPCIBusId(&found, "01:00.0"));
    cr_assert_eq(found, 1);
    REFUSED(cuDeviceGetByPCIBusId(&found, "0000:03:00.0"), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceGetByPCIBusId(&found, "0001:01:00.0"), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceGetByPCIBusId(&found, "somewhere"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetByPCIBusId(&found, "0000:01:00.0 and more"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetByPCIBusId(NULL, "01:00.0"), CUDA_ERROR_INVALID_VALUE);
}

Test(api_device, shares_of_a_device_are_not_offered) {
    int supported = 9;
    CUcontext context = NULL;
    CUexecAffinityParam share = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT};
    CUctxCreateParams params = {.execAffinityParams = &share, .numExecAffinityParams = 1};
    OK(cuInit(0));
    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    cr_assert_eq(supported, 0);
    REFUSED(cuCtxCreate_v3(&context, &share, 1, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    REFUSED(cuCtxCreate_v4(&context, &params, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    OK(cuCtxCreate_v4(&context, NULL, 0, 0));
    REFUSED(cuCtxGetExecAffinity(&share, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
            CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}

/* Windows alone has them; a NULL result is refused first. */
Test(api_device, a_luid_is_for_windows) {
    char luid[8] = {0};
    unsigned int mask = 7;
    OK(cuInit(0));
    REFUSED(cuDeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuDeviceGetLuid(luid, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetLuid(NULL, &mask, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetLuid(luid, &mask, 99), CUDA_ERROR_INVALID_DEVICE);
    cr_assert(mask == 7 && luid[0] == 0);
}

/* The bits that are set: which answer was another than that a driver gives in a child. */
static int calls_of_a_child(void) {
    int count = 0, version = 0;
    CUcontext context = NULL;
    return (cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) |
           (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) << 1 |
           (cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED) << 2 |
           (cuDriverGetVersion(&version) != CUDA_SUCCESS) << 3;
}

Test(api_device, a_forked_process_cannot_use_the_parents_devices) {
    char path[] = "/tmp/tollens_forked_XXXXXX", line[300] = "";
    int status = -1, count = 0;
    close(mkstemp(path));
    setenv("TOLLENS_SOFT_SUMMARY", path, 1);
    api_context(0);
    const pid_t child = fork();
    if (child == 0) exit(calls_of_a_child());
    cr_assert(waitpid(child, &status, 0) == child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    OK(cuDeviceGetCount(&count));
    /* The child ended by itself, and the summary is the parent's to write. */
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL && fgets(line, sizeof line, file) != NULL);
    cr_assert(strstr(line, "\"begun\": true") != NULL, "%s", line);
    cr_assert(fgets(line, sizeof line, file) == NULL, "%s", line);
    fclose(file);
    unlink(path);
}

/* ---- NVML (nvml/soft_nvml.c) beside CUDA: both must tell the same ---- */

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *version, unsigned bytes);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned bytes);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned bytes);
int nvmlDeviceGetIndex(void *device, unsigned *index);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetMemoryInfo(void *device, struct cuda_nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct cuda_nvml_memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct cuda_nvml_process *list);
int nvmlDeviceGetPciInfo(void *device, void *info);
int nvmlDeviceGetPciInfo_v2(void *device, void *info);
int nvmlDeviceGetPciInfo_v3(void *device, void *info);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
const char *nvmlErrorString(int result);

enum {
    UNINITIALIZED = 1,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    VERSION = 25
};
#define NVML_IS(call, code) cr_assert_eq(call, code, "%s", #call)

/* NVML numbers all devices; CUDA those of CUDA_VISIBLE_DEVICES. */
Test(soft_nvml, it_has_the_devices_of_cuda) {
    char name[96], cuda_name[96], id[32], text[96];
    unsigned count = 0, index = 9;
    int version = 0, cuda_version = 0, major = 0, minor = 0, capability[2];
    void *device = NULL, *found = NULL;
    CUuuid uuid;
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    setenv("CUDA_VISIBLE_DEVICES", "2", 1);
    setenv("TOLLENS_SOFT_COMPUTE", "121", 1);
    NVML_IS(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
    NVML_IS(nvmlInit_v2(), 0);
    NVML_IS(nvmlDeviceGetCount_v2(&count), 0);
    cr_assert_eq(count, 3);
    api_context(0);
    OK(cuDeviceGetPCIBusId(id, sizeof id, 0));
    NVML_IS(nvmlDeviceGetHandleByPciBusId_v2(id, &device), 0);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(2, &found), 0);
    cr_assert(device == found);
    NVML_IS(nvmlDeviceGetIndex(device, &index), 0);
    cr_assert_eq(index, 2);

    OK(cuDeviceGetUuid_v2(&uuid, 0));
    NVML_IS(nvmlDeviceGetUUID(device, text, sizeof text), 0);
    cr_assert(strncmp(text, "GPU-", 4) == 0 && strlen(text) == 40, "%s", text);
    const char *at = text + 4;
    for (int i = 0; i < 16; i++, at += 2) {
        if (*at == '-') at++;
        const char digits[3] = {at[0], at[1], '\0'};
        cr_assert_eq((unsigned char)uuid.bytes[i], strtoul(digits, NULL, 16), "%s", text);
    }
    NVML_IS(nvmlDeviceGetHandleByUUID(text, &found), 0);
    cr_assert(device == found);

    OK(cuDeviceGetName(cuda_name, sizeof cuda_name, 0));
    NVML_IS(nvmlDeviceGetName(device, name, sizeof name), 0);
    cr_assert_str_eq(name, cuda_name);
    OK(cuDriverGetVersion(&cuda_version));
    NVML_IS(nvmlSystemGetCudaDriverVersion_v2(&version), 0);
    cr_assert_eq(version, cuda_version);
    OK(cuDeviceGetAttribute(&capability[0], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    OK(cuDeviceGetAttribute(&capability[1], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    NVML_IS(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), 0);
    cr_assert(major == capability[0] && minor == capability[1] && major == 12 && minor == 1);
    NVML_IS(nvmlSystemGetDriverVersion(text, sizeof text), 0);
    cr_assert(strncmp(text, "580.", 4) == 0, "%s", text);
    NVML_IS(nvmlShutdown(), 0);
    NVML_IS(nvmlShutdown(), UNINITIALIZED);
}

Test(soft_nvml, memory_is_what_this_process_has) {
    struct cuda_nvml_memory memory;
    struct cuda_nvml_memory_v2 newer = {.version = 0};
    struct cuda_nvml_process process;
    unsigned count = 0;
    void *device = NULL;
    CUdeviceptr address = 0;
    size_t left = 0, total = 0;
    NVML_IS(nvmlInit_v2(), 0);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    NVML_IS(nvmlDeviceGetMemoryInfo(device, &memory), 0); /* before cuInit */
    cr_assert(memory.used == 0 && memory.free == memory.total);
    NVML_IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), 0);
    cr_assert_eq(count, 0);
    api_context(0);
    OK(cuMemAlloc_v2(&address, 1 << 20));
    OK(cuMemGetInfo_v2(&left, &total));
    NVML_IS(nvmlDeviceGetMemoryInfo(device, &memory), 0);
    cr_assert(memory.total == total && memory.free == left && memory.used == total - left);
    NVML_IS(nvmlDeviceGetMemoryInfo_v2(device, &newer), VERSION);
    newer.version = sizeof newer | 2u << 24;
    NVML_IS(nvmlDeviceGetMemoryInfo_v2(device, &newer), 0);
    cr_assert(newer.total == total && newer.free == left && newer.reserved == 0);
    NVML_IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), TOO_SMALL);
    cr_assert_eq(count, 1);
    NVML_IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, &process), 0);
    cr_assert(count == 1 && process.pid == (unsigned)getpid() && process.bytes == memory.used);
    OK(cuMemFree_v2(address));
}

/* Each version writes its own structure and no byte more: hashcat has room for the second alone. */
Test(soft_nvml, where_a_device_is_fits_each_version) {
    static const struct {
        int (*get)(void *, void *);
        size_t bytes, id;
    } versions[] = {{nvmlDeviceGetPciInfo, 32, 0},
                    {nvmlDeviceGetPciInfo_v2, 52, 0},
                    {nvmlDeviceGetPciInfo_v3, 68, 36}};
    void *device = NULL;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    NVML_IS(nvmlInit_v2(), 0);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(1, &device), 0);
    for (int i = 0; i < 3; i++) {
        unsigned char info[80];
        unsigned bus = 0;
        memset(info, 0xaa, sizeof info);
        NVML_IS(versions[i].get(device, info), 0);
        memcpy(&bus, info + 20, sizeof bus);
        cr_assert(bus == 1 && strcmp((char *)info, "0000:01:00.0") == 0, "%u, %s", bus, info);
        cr_assert(versions[i].id == 0 ||
                  strcmp((char *)info + versions[i].id, "00000000:01:00.0") == 0);
        for (size_t j = versions[i].bytes; j < sizeof info; j++) cr_assert_eq(info[j], 0xaa);
    }
}

Test(soft_nvml, what_is_wrong_is_refused) {
    char text[4];
    unsigned number = 0;
    void *device = NULL;
    NVML_IS(nvmlInit_v2(), 0);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(1, &device), INVALID);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(0, NULL), INVALID);
    NVML_IS(nvmlDeviceGetHandleByUUID("GPU-746f6c6c", &device), NOT_FOUND);
    NVML_IS(nvmlDeviceGetHandleByPciBusId_v2("0000:01:00.0", &device), NOT_FOUND);
    NVML_IS(nvmlDeviceGetHandleByPciBusId_v2("the first", &device), INVALID);
    NVML_IS(nvmlDeviceGetIndex(&number, &number), INVALID);
    NVML_IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    NVML_IS(nvmlDeviceGetName(device, text, sizeof text), TOO_SMALL);
    NVML_IS(nvmlDeviceGetTemperature(device, 0, &number), NOT_SUPPORTED);
    cr_assert_str_eq(nvmlErrorString(NOT_SUPPORTED), "Not Supported");
}

/* As tollens soft does, one file under two names is one library. */
Test(soft_nvml, the_soft_device_exports_it) {
    static const char *const names[] = {"nvmlInit_v2", "nvmlDeviceGetPowerUsage",
                                        "nvmlDeviceGetFieldValues", "nvmlSystemGetNVMLVersion"};
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libtollens-soft.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library != NULL, "%s", dlerror());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert(dlsym(library, names[i]) != NULL, "%s", names[i]);
    }
}
