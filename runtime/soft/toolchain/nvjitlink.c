/*
 * libnvJitLink.so.12 and libnvJitLink.so.13 for programs on the soft device.
 *
 * PTX is joined by the soft device's linker, and the answer in place of a cubin is a container
 * (README.md). LTO-IR, which only NVIDIA's compiler reads, is refused by name. This file is
 * compiled once per library, with CUDART_MAJOR; each function has the name of the header and one
 * per version of CUDA, as programs were compiled against. nvJitLinkAPI, which is not documented, is
 * left out.
 *
 * Source: "nvJitLink" of CUDA 13.0, and nvJitLink.h. As there, one thread at a time may use a
 * handle.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVJITLINK_VISIBLE __attribute__((visibility("default")))

/* nvJitLinkResult and nvJitLinkInputType, as far as they are used. */
enum {
    SUCCESS = 0,
    UNRECOGNIZED_OPTION = 1,
    MISSING_ARCH = 2,
    INVALID_INPUT = 3,
    PTX_COMPILE = 4,
    NVVM_COMPILE = 5,
    INTERNAL = 6,
    UNRECOGNIZED_INPUT = 8,
    FINALIZE = 9,
    INCOMPATIBLE_OPTIONS = 11,
    UNRECOGNIZED_ARCH = 16
};
enum { CUBIN = 1, PTX, LTOIR, FATBIN, OBJECT, LIBRARY, ANY = 10 };
/* CUjitInputType and CUresult of cuda.h. */
enum { JIT_CUBIN = 0, JIT_PTX, JIT_FATBINARY, JIT_OBJECT, JIT_LIBRARY };
enum { LOG_BYTES = 8192, CUDA_INVALID_PTX = 218, CUDA_OUT_OF_MEMORY = 2 };

struct nvJitLink {
    void *link; /* the soft device's */
    void *image;
    size_t bytes; /* of the image; it is the link's */
    char log[LOG_BYTES];
};
typedef struct nvJitLink *nvJitLinkHandle;

/* ---- the soft device ---- */

static struct {
    void *(*create)(char *log, size_t bytes);
    int (*add)(void *link, int type, const void *data, size_t bytes, const char *name);
    int (*complete)(void *link, void **image, size_t *bytes);
    void (*free)(void *link);
} device;

static bool device_find(void *library, const char *name, void *function) {
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The program's driver, which is the soft device under `tollens soft`. */
static bool device_open(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* stays open */
    return device_find(library, "tollens_soft_link_create", &device.create) &&
           device_find(library, "tollens_soft_link_add", &device.add) &&
           device_find(library, "tollens_soft_link_complete", &device.complete) &&
           device_find(library, "tollens_soft_link_free", &device.free);
}

/* ---- options ---- */

/* Without a dash, and as far as they must agree. Those that end with '=' take a value, and steer a
 * code generator; -lto and -ptx are for LTO-IR, and refused as soon as there is any. */
static const char *const options[] = {"O",
                                      "Ofc=",
                                      "Xnvvm=",
                                      "Xptxas=",
                                      "device-stack-protector",
                                      "fma=",
                                      "ftz=",
                                      "g",
                                      "jump-table-density=",
                                      "kernels-used=",
                                      "lineinfo",
                                      "lto",
                                      "maxrregcount=",
                                      "no-cache",
                                      "nvvm-latest",
                                      "optimize-unused-variables",
                                      "prec-div=",
                                      "prec-sqrt=",
                                      "split-compile=",
                                      "split-compile-extended=",
                                      "time",
                                      "variables-used=",
                                      "verbose"};

static bool option_is_known(const char *option) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const size_t length = strlen(options[i]);
        const bool is_prefix = options[i][length - 1] == '=' || strcmp(options[i], "O") == 0;
        if (is_prefix ? strncmp(option, options[i], length) == 0
                      : strncmp(option, options[i], length) == 0 &&
                            (option[length] == '\0' || option[length] == '=')) {
            return true;
        }
    }
    return false;
}

static int options_read(uint32_t count, const char **words) {
    bool has_architecture = false;
    for (uint32_t i = 0; i < count; i++) {
        const char *word = words[i] != NULL ? words[i] : "";
        const char *option = word + (word[0] == '-') + (word[0] == '-' && word[1] == '-');
        if (strncmp(option, "arch=", 5) == 0) {
            has_architecture = true;
            if (strncmp(option + 5, "sm_", 3) == 0 || strncmp(option + 5, "compute_", 8) == 0) {
                continue;
            }
            fprintf(stderr, "tollens soft: nvJitLink: %s is no architecture of PTX\n", word);
            return UNRECOGNIZED_ARCH;
        }
        if (strcmp(option, "ptx") == 0) {
            fprintf(stderr, "tollens soft: nvJitLink: -ptx generates PTX from LTO-IR, which only "
                            "NVIDIA's compiler reads\n");
            return INCOMPATIBLE_OPTIONS;
        }
        if (word == option || !option_is_known(option)) {
            fprintf(stderr, "tollens soft: nvJitLink: the option '%s' is not supported\n", word);
            return UNRECOGNIZED_OPTION;
        }
    }
    return has_architecture ? SUCCESS : MISSING_ARCH;
}

/* ---- inputs ---- */

static bool input_begins(const void *data, size_t bytes, const char *with, size_t length) {
    return bytes >= length && memcmp(data, with, length) == 0;
}

/* The kind of an input that the caller does not know; 0: none. */
static int input_kind(const void *data, size_t bytes) {
    enum { MACHINE_AT = 18, MACHINE_CUDA = 190 };
    const char *text = data;
    if (input_begins(data, bytes, "!<arch>\n", 8)) return LIBRARY;
    if (input_begins(data, bytes, "\x50\xed\x55\xba", 4)) return FATBIN;
    if (input_begins(data, bytes, "\177ELF", 4) && bytes > MACHINE_AT) {
        return (unsigned char)text[MACHINE_AT] == MACHINE_CUDA ? CUBIN : OBJECT;
    }
    if (input_begins(data, bytes, "BC\xc0\xde", 4)) return LTOIR;
    size_t at = 0;
    while (at < bytes && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0') at++;
    return at < bytes && (text[at] == '.' || text[at] == '/') ? PTX : 0;
}

static int input_add(struct nvJitLink *handle, int kind, const void *data, size_t bytes,
                     const char *name) {
    static const int types[] = {[CUBIN] = JIT_CUBIN,
                                [PTX] = JIT_PTX,
                                [FATBIN] = JIT_FATBINARY,
                                [OBJECT] = JIT_OBJECT,
                                [LIBRARY] = JIT_LIBRARY};
    if (kind == ANY) kind = input_kind(data, bytes);
    if (kind == LTOIR) {
        snprintf(handle->log, sizeof handle->log,
                 "%s is LTO-IR, which only NVIDIA's compiler reads; compile it to PTX, without "
                 "-dlto or LTO\n",
                 name != NULL ? name : "the input");
        fprintf(stderr, "tollens soft: nvJitLink: %s", handle->log);
        return NVVM_COMPILE;
    }
    if (kind != CUBIN && kind != PTX && kind != FATBIN && kind != OBJECT && kind != LIBRARY) {
        snprintf(handle->log, sizeof handle->log,
                 "%s is neither PTX nor a cubin, a fat binary, an object or a library\n",
                 name != NULL ? name : "the input");
        return UNRECOGNIZED_INPUT;
    }
    const int result = device.add(handle->link, types[kind], data, bytes, name);
    return result == 0                    ? SUCCESS
           : result == CUDA_OUT_OF_MEMORY ? INTERNAL
           : kind == PTX                  ? PTX_COMPILE
                                          : INVALID_INPUT;
}

/* ---- the functions ---- */

NVJITLINK_VISIBLE int nvJitLinkVersion(unsigned *major, unsigned *minor);
int nvJitLinkVersion(unsigned *major, unsigned *minor) {
    /* Programs conclude from a version that LTO-IR can be linked. Without one, numba-cuda compiles
     * to PTX; cuda.core only looks whether this function exists. */
    if (major == NULL || minor == NULL) return INVALID_INPUT;
    *major = *minor = 0;
    return INTERNAL;
}

NVJITLINK_VISIBLE int nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t count, const char **words);
int nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t count, const char **words) {
    if (handle == NULL || (count > 0 && words == NULL)) return INVALID_INPUT;
    const int result = options_read(count, words);
    if (result != SUCCESS) return result;
    if (!device_open()) {
        fprintf(stderr,
                "tollens soft: nvJitLink: the driver libcuda.so.1 is not the soft device\n");
        return INTERNAL;
    }
    struct nvJitLink *made = calloc(1, sizeof *made);
    if (made == NULL) return INTERNAL;
    made->link = device.create(made->log, sizeof made->log);
    if (made->link == NULL) {
        free(made);
        return INTERNAL;
    }
    *handle = made;
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkDestroy(nvJitLinkHandle *handle);
int nvJitLinkDestroy(nvJitLinkHandle *handle) {
    if (handle == NULL || *handle == NULL) return INVALID_INPUT;
    device.free((*handle)->link);
    free(*handle);
    *handle = NULL;
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkAddData(nvJitLinkHandle handle, int kind, const void *data,
                                       size_t bytes, const char *name);
int nvJitLinkAddData(nvJitLinkHandle handle, int kind, const void *data, size_t bytes,
                     const char *name) {
    if (handle == NULL || data == NULL || bytes == 0) return INVALID_INPUT;
    return input_add(handle, kind, data, bytes, name);
}

NVJITLINK_VISIBLE int nvJitLinkAddFile(nvJitLinkHandle handle, int kind, const char *name);
int nvJitLinkAddFile(nvJitLinkHandle handle, int kind, const char *name) {
    if (handle == NULL || name == NULL) return INVALID_INPUT;
    FILE *file = fopen(name, "rb");
    const bool has_size = file != NULL && fseek(file, 0, SEEK_END) == 0;
    const long bytes = has_size ? ftell(file) : -1;
    char *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (data != NULL) rewind(file);
    const bool ok = data != NULL && fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
    if (file != NULL) fclose(file);
    if (!ok) snprintf(handle->log, sizeof handle->log, "%s cannot be read, or is empty\n", name);
    const int result = ok ? input_add(handle, kind, data, (size_t)bytes, name) : INVALID_INPUT;
    free(data);
    return result;
}

NVJITLINK_VISIBLE int nvJitLinkComplete(nvJitLinkHandle handle);
int nvJitLinkComplete(nvJitLinkHandle handle) {
    if (handle == NULL) return INVALID_INPUT;
    const int result = device.complete(handle->link, &handle->image, &handle->bytes);
    return result == 0 ? SUCCESS : result == CUDA_INVALID_PTX ? PTX_COMPILE : FINALIZE;
}

NVJITLINK_VISIBLE int nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *bytes);
int nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *bytes) {
    if (handle == NULL || bytes == NULL || handle->image == NULL) return INVALID_INPUT;
    *bytes = handle->bytes;
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void *cubin);
int nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void *cubin) {
    if (handle == NULL || cubin == NULL || handle->image == NULL) return INVALID_INPUT;
    memcpy(cubin, handle->image, handle->bytes);
    return SUCCESS;
}

/* There is PTX only after -ptx, which nvJitLinkCreate refuses, and LTO-IR only of LTO-IR. */
NVJITLINK_VISIBLE int nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t *bytes);
int nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t *bytes) {
    (void)bytes;
    return handle == NULL ? INVALID_INPUT : INCOMPATIBLE_OPTIONS;
}

NVJITLINK_VISIBLE int nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char *ptx);
int nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char *ptx) {
    (void)ptx;
    return handle == NULL ? INVALID_INPUT : INCOMPATIBLE_OPTIONS;
}

NVJITLINK_VISIBLE int nvJitLinkGetLinkedLTOIRSize(nvJitLinkHandle handle, size_t *bytes);
int nvJitLinkGetLinkedLTOIRSize(nvJitLinkHandle handle, size_t *bytes) {
    (void)bytes;
    return handle == NULL ? INVALID_INPUT : INCOMPATIBLE_OPTIONS;
}

NVJITLINK_VISIBLE int nvJitLinkGetLinkedLTOIR(nvJitLinkHandle handle, void *image);
int nvJitLinkGetLinkedLTOIR(nvJitLinkHandle handle, void *image) {
    (void)image;
    return handle == NULL ? INVALID_INPUT : INCOMPATIBLE_OPTIONS;
}

/* The sizes of logs count the NUL. */
NVJITLINK_VISIBLE int nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *bytes);
int nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *bytes) {
    if (handle == NULL || bytes == NULL) return INVALID_INPUT;
    *bytes = handle->log[0] != '\0' ? strlen(handle->log) + 1 : 0;
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *log);
int nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *log) {
    if (handle == NULL || log == NULL) return INVALID_INPUT;
    if (handle->log[0] != '\0') strcpy(log, handle->log);
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t *bytes);
int nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t *bytes) {
    if (handle == NULL || bytes == NULL) return INVALID_INPUT;
    *bytes = 0;
    return SUCCESS;
}

NVJITLINK_VISIBLE int nvJitLinkGetInfoLog(nvJitLinkHandle handle, char *log);
int nvJitLinkGetInfoLog(nvJitLinkHandle handle, char *log) {
    return handle != NULL && log != NULL ? SUCCESS : INVALID_INPUT;
}

/* ---- the names of each version ---- */

#define PASTE_AGAIN(name, major, minor) __nvJitLink##name##_##major##_##minor
#define PASTE(name, major, minor) PASTE_AGAIN(name, major, minor)
#define NAME(name, minor)                                                                          \
    extern __typeof__(nvJitLink##name) PASTE(name, CUDART_MAJOR, minor)                            \
        __attribute__((alias("nvJitLink" #name), visibility("default")));
#define NAMES(name)                                                                                \
    NAME(name, 0)                                                                                  \
    NAME(name, 1)                                                                                  \
    NAME(name, 2) NAME(name, 3) NAME(name, 4) NAME(name, 5) NAME(name, 6) NAME(name, 7)            \
        NAME(name, 8) NAME(name, 9)

NAMES(Create)
NAMES(Destroy)
NAMES(AddData)
NAMES(AddFile)
NAMES(Complete)
NAMES(GetLinkedCubinSize)
NAMES(GetLinkedCubin)
NAMES(GetLinkedPtxSize)
NAMES(GetLinkedPtx)
NAMES(GetLinkedLTOIRSize)
NAMES(GetLinkedLTOIR)
NAMES(GetErrorLogSize)
NAMES(GetErrorLog)
NAMES(GetInfoLogSize)
NAMES(GetInfoLog)
