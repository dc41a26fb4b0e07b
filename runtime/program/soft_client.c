/*
 * A CUDA program for the tests of `tollens soft`: it opens libcuda.so.1 as any program does.
 *
 *     soft-client store INDEX     stores 4 bytes at an index of 16 words: 16 and more are outside
 *     soft-client leave INDEX     the same, and ends by _exit, without a summary
 *     soft-client quit INDEX      the same as store, and ends without waiting for the kernel
 *     soft-client refuse 0        loads an image without PTX
 *     soft-client table 0         requests a table that is not documented; table-store INDEX then
 *                                 goes on as store does
 *     soft-client unmodelled 0    calls a function that our CUDA runtime does not model
 *     soft-client nvml COUNT      returns 0 if NVML counts so many devices
 *     soft-client return CODE     makes a context and returns CODE
 *     soft-client open PATH       opens a library as the driver, and makes a context
 *     soft-client version 0       prints the version of the CUDA runtime
 *     soft-client nvrtc OPTIONS   compiles PTX with NVRTC, with options between commas, prints the
 *                                 log and runs the cubin; nvrtc12 with that of CUDA 12,
 *                                 nvrtc=PATH with a file
 *     soft-client nvjitlink KIND  links two texts with nvJitLink and runs the cubin; KIND ltoir
 *                                 gives LTO-IR, option-X the option -X; nvjitlink12 as above
 *     soft-client cublas SIZE     multiplies matrices of SIZE x SIZE numbers in memory of 16
 *                                 numbers with cuBLAS, and prints one; cublas12 as above
 *
 * It has the functions of a CUDA runtime that was linked into it, by their names and no more.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry store(.param .u64 to) {\n"
                          "  .reg .b64 %rd<2>;\n"
                          "  ld.param.u64 %rd0, [to];\n"
                          "  st.global.u32 [%rd0], 7;\n"
                          "  ret;\n}\n";

static void *library;  /* what find looks into: the driver, or a compiler */
static char *compiled; /* what a compiler made */

static int (*find(const char *name))(void *, ...) {
    int (*function)(void *, ...) = NULL;
    void *address = dlsym(library, name);
    memcpy(&function, &address, sizeof function);
    if (function == NULL) exit(99);
    return function;
}

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        int (*function)(void *, ...) = find(name);                                                 \
        const int result = function(__VA_ARGS__);                                                  \
        if (result != 0) fprintf(stderr, "%s: %d\n", name, result);                                \
    } while (0)

#ifndef __SANITIZE_ADDRESS__ /* then `tollens soft` preloads no runtime */
/* What nvcc leaves in a program, for one that is stripped. */
__attribute__((section(".nvFatBinSegment"), used)) static const uint64_t segment[3];

void **__cudaRegisterFatBinary(void *wrapper);
int cudaRuntimeGetVersion(int *version);
int cudaThreadExit(void);

/* Each is longer than a jump. */
void **__cudaRegisterFatBinary(void *wrapper) {
    fprintf(stderr, "the client's own __cudaRegisterFatBinary\n");
    return wrapper;
}

int cudaRuntimeGetVersion(int *version) {
    *version = -1;
    return fprintf(stderr, "the client's own cudaRuntimeGetVersion\n");
}

/* CUDA 12 has it, and CUDA 13 does not. */
int cudaThreadExit(void) {
    return fprintf(stderr, "the client's own cudaThreadExit\n");
}
#else
static int cudaRuntimeGetVersion(int *version) {
    return *version = -1;
}
#endif

static int open_library(const char *name) {
    library = dlopen(name, RTLD_NOW);
    if (library != NULL) return 0;
    fprintf(stderr, "%s\n", dlerror());
    return 98;
}

/* The result of the first failing call of NVRTC. */
static int compile_nvrtc(const char *name, char *options) {
    const char *words[8];
    int count = 0, code = 0;
    void *program = NULL;
    size_t bytes = 0;
    static char log[2048];
    if (open_library(name) != 0) return 98;
    for (char *word = strtok(options, ","); word != NULL; word = strtok(NULL, ",")) {
        if (count < 8) words[count++] = word;
    }
    CALL("nvrtcCreateProgram", &program, ptx, "client.cu", 0, NULL, NULL);
    code = find("nvrtcCompileProgram")(program, count, words);
    CALL("nvrtcGetProgramLogSize", program, &bytes);
    CALL("nvrtcGetProgramLog", program, log);
    printf("log of %zu bytes: %s\n", bytes, log);
    if (code == 0) {
        CALL("nvrtcGetCUBINSize", program, &bytes);
        printf("cubin: %s\n", bytes > 64 ? "there" : "none");
        compiled = bytes > 64 ? malloc(bytes) : NULL;
        if (compiled != NULL) CALL("nvrtcGetCUBIN", program, compiled);
    }
    CALL("nvrtcDestroyProgram", &program);
    return code;
}

static int link_nvjitlink(const char *name, const char *kind) {
    static const char second[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                                 ".global .u32 word = 7;\n.visible .entry other() { ret; }\n";
    enum { KIND_PTX = 2, KIND_LTOIR = 3 };
    char option[64] = "-lineinfo", log[512] = "";
    const char *options[] = {"-arch=sm_90", option};
    void *handle = NULL;
    size_t bytes = 0;
    if (open_library(name) != 0) return 98;
    if (strncmp(kind, "option-", 7) == 0) snprintf(option, sizeof option, "%s", kind + 6);
    int code = find("nvJitLinkCreate")(&handle, 2u, options);
    if (code != 0) return code;
    const int type = strcmp(kind, "ltoir") == 0 ? KIND_LTOIR : KIND_PTX;
    code = find("nvJitLinkAddData")(handle, type, ptx, sizeof ptx - 1, "first");
    if (code == 0) code = find("nvJitLinkAddData")(handle, 2, second, sizeof second, "second");
    if (code == 0 && strcmp(kind, "twice") == 0)
        CALL("nvJitLinkAddData", handle, 2, second, sizeof second, "third");
    if (code == 0) code = find("nvJitLinkComplete")(handle);
    if (code == 0) {
        CALL("nvJitLinkGetLinkedCubinSize", handle, &bytes);
        compiled = malloc(bytes);
        CALL("nvJitLinkGetLinkedCubin", handle, compiled);
    } else {
        CALL("nvJitLinkGetErrorLogSize", handle, &bytes);
        if (bytes <= sizeof log) CALL("nvJitLinkGetErrorLog", handle, log);
        printf("log: %s\n", log);
    }
    CALL("nvJitLinkDestroy", &handle);
    return code;
}

/* cuBLAS makes the context. */
static int multiply_cublas(const char *name, int size) {
    static const float one = 1, zero = 0;
    float numbers[16];
    void *handle = NULL;
    uint64_t memory[3] = {0, 0, 0};
    for (int i = 0; i < 16; i++) numbers[i] = (float)i;
    if (open_library(name) != 0) return 98;
    void *const blas = library;
    CALL("cublasCreate_v2", &handle);
    if (open_library("libcuda.so.1") != 0) return 98;
    for (int i = 0; i < 3; i++) CALL("cuMemAlloc_v2", &memory[i], sizeof numbers);
    library = blas;
    for (int i = 0; i < 2; i++)
        CALL("cublasSetVector", (void *)(uintptr_t)16, 4, numbers, 1, memory[i], 1);
    CALL("cublasSgemm_v2", handle, 0, 0, size, size, size, &one, memory[0], size, memory[1], size,
         &zero, memory[2], size);
    CALL("cublasGetMatrix", (void *)(uintptr_t)4, 4, 4, memory[2], 4, numbers, 4);
    printf("c[1][1] = %g\n", (double)numbers[5]);
    CALL("cublasDestroy_v2", handle);
    return 0;
}

int main(int count, char **words) {
    int code = 0;
    void *context = NULL, *module = NULL, *kernel = NULL;
    uint64_t memory = 0;
    if (count != 3) return 2;
    const long number = strtol(words[2], NULL, 10);
    if (strcmp(words[1], "nvml") == 0) {
        unsigned devices = 0;
        library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        if (library == NULL) return 98;
        CALL("nvmlInit_v2", NULL);
        CALL("nvmlDeviceGetCount_v2", &devices);
        return devices == number ? 0 : 97;
    }
    if (strncmp(words[1], "cublas", 6) == 0) {
        return multiply_cublas(words[1][6] != '\0' ? "libcublas.so.12" : "libcublas.so.13",
                               (int)number);
    }
    if (strcmp(words[1], "version") == 0) {
        int version = 0;
        cudaRuntimeGetVersion(&version);
        printf("version %d\n", version);
        return 0;
    }
    if (strcmp(words[1], "unmodelled") == 0) {
        if (open_library("libcudart.so.13") != 0) return 98;
        CALL("cudaImportExternalMemory", NULL);
        return 0;
    }
    const bool opens = strcmp(words[1], "open") == 0;
    if (strncmp(words[1], "nvrtc", 5) == 0) {
        code = compile_nvrtc(words[1][5] == '='    ? words[1] + 6
                             : words[1][5] != '\0' ? "libnvrtc.so.12"
                                                   : "libnvrtc.so.13",
                             words[2]);
    } else if (strncmp(words[1], "nvjitlink", 9) == 0) {
        code = link_nvjitlink(words[1][9] != '\0' ? "libnvJitLink.so.12" : "libnvJitLink.so.13",
                              words[2]);
    }
    if (code != 0) return code;
    if (open_library(opens ? words[2] : "libcuda.so.1") != 0) return 98;
    CALL("cuInit", (void *)(uintptr_t)0);
    CALL("cuDevicePrimaryCtxRetain", &context, 0);
    CALL("cuCtxSetCurrent", context);
    if (opens) return 0;
    if (strcmp(words[1], "return") == 0) return (int)number;
    if (strcmp(words[1], "refuse") == 0) {
        static const char cubin[64] = "\177ELF\2\1\1\63";
        CALL("cuModuleLoadData", &module, cubin);
        return 0;
    }
    if (strncmp(words[1], "table", 5) == 0) {
        static const char id[16] = "not documented";
        CALL("cuGetExportTable", &module, id);
        if (strcmp(words[1], "table-memory") == 0) CALL("cuMemAlloc_v2", &memory, (size_t)64);
        if (strcmp(words[1], "table-store") != 0) return 0;
    }
    CALL("cuModuleLoadData", &module, compiled != NULL ? compiled : ptx);
    CALL("cuModuleGetFunction", &kernel, module, "store");
    CALL("cuMemAlloc_v2", &memory, (size_t)64);
    uint64_t to = memory + 4 * (uint64_t)number;
    void *arguments[] = {&to};
    CALL("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NULL, arguments, NULL);
    if (strcmp(words[1], "quit") == 0) return 0;
    CALL("cuCtxSynchronize", NULL);
    if (strcmp(words[1], "leave") == 0) _exit(0);
    return 0;
}
