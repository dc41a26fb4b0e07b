/*
 * libnvrtc.so.12 and libnvrtc.so.13 for programs on the soft device.
 *
 * All functions go to the real NVRTC, except where a program asks for machine code: with
 * --gpu-architecture=sm_90, NVRTC compiles for compute_90, and nvrtcGetCUBIN answers its PTX in a
 * container (README.md). LTO-IR and OptiX IR are refused by name, in the program's log and on
 * stderr. This file is compiled once per library, with CUDART_MAJOR. __nvrtcCPEx and
 * __nvrtcNvvmHandle, which are not documented, are left out.
 *
 * The real NVRTC is the file that $TOLLENS_SOFT_REAL_NVRTC names; or the file that the program
 * asked for, which the audit library gives for a name that no file can have; or the first in
 * LD_LIBRARY_PATH, in a site-packages from which the process has loaded anything, in CUDA_HOME,
 * CUDA_PATH, /usr/local/cuda and the folders of the system.
 *
 * Source: "NVRTC" of CUDA 12.9 and 13.0, and nvrtc.h. Thread-safe as NVRTC is: a program belongs to
 * one thread at a time.
 */
#include "lower/container.h"

#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVRTC_VISIBLE __attribute__((visibility("default")))
#define NVRTC_TEXT_OF(number) #number
#define NVRTC_TEXT(number) NVRTC_TEXT_OF(number)
#define NVRTC_NAME "libnvrtc.so." NVRTC_TEXT(CUDART_MAJOR)

typedef void *nvrtcProgram;
typedef int nvrtcResult;
enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_OPTION = 5, INTERNAL_ERROR = 11 };

/* The functions that this file changes, and those that it passes on. NVRTC_FN(name, parameters,
 * arguments) */
#define NVRTC_CHANGED                                                                              \
    NVRTC_FN(nvrtcDestroyProgram, (nvrtcProgram * program), (program))                             \
    NVRTC_FN(nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options),   \
             (program, count, options))                                                            \
    NVRTC_FN(nvrtcGetCUBINSize, (nvrtcProgram program, size_t * bytes), (program, bytes))          \
    NVRTC_FN(nvrtcGetCUBIN, (nvrtcProgram program, char *cubin), (program, cubin))                 \
    NVRTC_FN(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * bytes), (program, bytes))     \
    NVRTC_FN(nvrtcGetProgramLog, (nvrtcProgram program, char *log), (program, log))
#define NVRTC_PASSED                                                                               \
    NVRTC_FN(nvrtcVersion, (int *major, int *minor), (major, minor))                               \
    NVRTC_FN(nvrtcGetNumSupportedArchs, (int *count), (count))                                     \
    NVRTC_FN(nvrtcGetSupportedArchs, (int *architectures), (architectures))                        \
    NVRTC_FN(nvrtcCreateProgram,                                                                   \
             (nvrtcProgram * program, const char *source, const char *name, int count,             \
              const char *const *headers, const char *const *names),                               \
             (program, source, name, count, headers, names))                                       \
    NVRTC_FN(nvrtcGetPTXSize, (nvrtcProgram program, size_t * bytes), (program, bytes))            \
    NVRTC_FN(nvrtcGetPTX, (nvrtcProgram program, char *ptx), (program, ptx))                       \
    NVRTC_FN(nvrtcGetLTOIRSize, (nvrtcProgram program, size_t * bytes), (program, bytes))          \
    NVRTC_FN(nvrtcGetLTOIR, (nvrtcProgram program, char *image), (program, image))                 \
    NVRTC_FN(nvrtcGetOptiXIRSize, (nvrtcProgram program, size_t * bytes), (program, bytes))        \
    NVRTC_FN(nvrtcGetOptiXIR, (nvrtcProgram program, char *image), (program, image))               \
    NVRTC_FN(nvrtcAddNameExpression, (nvrtcProgram program, const char *name), (program, name))    \
    NVRTC_FN(nvrtcGetLoweredName, (nvrtcProgram program, const char *name, const char **lowered),  \
             (program, name, lowered))                                                             \
    NVRTC_FN(nvrtcGetPCHHeapSize, (size_t * bytes), (bytes))                                       \
    NVRTC_FN(nvrtcSetPCHHeapSize, (size_t bytes), (bytes))                                         \
    NVRTC_FN(nvrtcGetPCHCreateStatus, (nvrtcProgram program), (program))                           \
    NVRTC_FN(nvrtcGetPCHHeapSizeRequired, (nvrtcProgram program, size_t * bytes),                  \
             (program, bytes))                                                                     \
    NVRTC_FN(nvrtcSetFlowCallback,                                                                 \
             (nvrtcProgram program, int (*callback)(void *, void *), void *data),                  \
             (program, callback, data))
#if CUDART_MAJOR == 12
#define NVRTC_OWN                                                                                  \
    NVRTC_FN(nvrtcGetNVVMSize, (nvrtcProgram program, size_t * bytes), (program, bytes))           \
    NVRTC_FN(nvrtcGetNVVM, (nvrtcProgram program, char *image), (program, image))
#else
#define NVRTC_OWN                                                                                  \
    NVRTC_FN(nvrtcGetTileIRSize, (nvrtcProgram program, size_t * bytes), (program, bytes))         \
    NVRTC_FN(nvrtcGetTileIR, (nvrtcProgram program, char *image), (program, image))                \
    NVRTC_FN(nvrtcInstallBundledHeaders, (const char *folder, unsigned flags, const char **log),   \
             (folder, flags, log))                                                                 \
    NVRTC_FN(nvrtcGetBundledHeadersInfo, (void *info, const char **log), (info, log))              \
    NVRTC_FN(nvrtcRemoveBundledHeaders, (const char *folder, const char **log), (folder, log))
#endif

#define NVRTC_FN(name, parameters, arguments)                                                      \
    NVRTC_VISIBLE nvrtcResult name parameters;                                                     \
    static nvrtcResult(*real_##name) parameters;
NVRTC_CHANGED NVRTC_PASSED NVRTC_OWN
#undef NVRTC_FN

    /* ---- the real NVRTC ---- */

    static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *(*real_nvrtcGetErrorString)(nvrtcResult result);
static bool real_is_there;

/* dlsym returns a pointer to an object; POSIX says that it holds a function. */
static void real_find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* Opens a library, unless it is this one, which a name or a link may also reach. */
static void *real_open(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
    nvrtcResult (*own)(int *, int *) = nvrtcVersion;
    void *mine = NULL;
    memcpy(&mine, &own, sizeof mine);
    if (library != NULL) symbol = dlsym(library, "nvrtcVersion");
    if (symbol != NULL && symbol != mine) return library;
    if (library != NULL) dlclose(library);
    return NULL;
}

static void *real_in(const char *folder, size_t length, const char *inner) {
    char path[PATH_MAX];
    if (length == 0 || length + strlen(inner) + sizeof NVRTC_NAME + 1 > sizeof path) return NULL;
    snprintf(path, sizeof path, "%.*s%s/" NVRTC_NAME, (int)length, folder, inner);
    return real_open(path);
}

/* Where PyPI's packages have it. */
static int real_in_packages(struct dl_phdr_info *info, size_t bytes, void *found) {
    static const char *const homes[] = {"/site-packages/", "/dist-packages/"};
    static const char *const inner[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
    void **library = found;
    (void)bytes;
    for (int h = 0; h < 2 && *library == NULL && info->dlpi_name != NULL; h++) {
        const char *home = strstr(info->dlpi_name, homes[h]);
        if (home == NULL) continue;
        const size_t length = (size_t)(home - info->dlpi_name) + strlen(homes[h]);
        for (int i = 0; i < 2 && *library == NULL; i++) {
            *library = real_in(info->dlpi_name, length, inner[i]);
        }
    }
    return *library != NULL;
}

static void *real_search(void) {
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                          "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
    void *library = NULL;
    const char *list = getenv("LD_LIBRARY_PATH");
    while (list != NULL && *list != '\0' && library == NULL) {
        const size_t length = strcspn(list, ":;");
        library = real_in(list, length, "");
        list += length + (list[length] != '\0');
    }
    if (library == NULL) dl_iterate_phdr(real_in_packages, &library);
    for (int i = 0; i < 2 && library == NULL; i++) {
        const char *home = getenv(variables[i]);
        if (home != NULL) library = real_in(home, strlen(home), "/lib64");
        if (home != NULL && library == NULL) library = real_in(home, strlen(home), "/lib");
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && library == NULL; i++) {
        library = real_in(folders[i], strlen(folders[i]), "");
    }
    return library;
}

static void real_begin(void) {
    const char *given = getenv("TOLLENS_SOFT_REAL_NVRTC");
    void *library = NULL;
    if (given != NULL && given[0] != '\0') {
        library = real_open(given);
        if (library == NULL) {
            fprintf(stderr, "tollens soft: TOLLENS_SOFT_REAL_NVRTC=%s is no NVRTC: %s\n", given,
                    dlerror());
        }
    } else {
        library = real_open("/dev/null/" NVRTC_NAME);
        if (library == NULL) library = real_search();
        if (library == NULL) {
            fprintf(stderr, "tollens soft: there is no " NVRTC_NAME " to compile with; "
                            "TOLLENS_SOFT_REAL_NVRTC names one\n");
        }
    }
    real_is_there = library != NULL;
    if (library == NULL) return;
#define NVRTC_FN(name, parameters, arguments) real_find(library, #name, &real_##name);
    NVRTC_CHANGED NVRTC_PASSED NVRTC_OWN
#undef NVRTC_FN
        real_find(library, "nvrtcGetErrorString", &real_nvrtcGetErrorString);
}

/* An older NVRTC lacks functions. */
static bool real_has(bool has, const char *name) {
    if (!has && real_is_there) {
        fprintf(stderr, "tollens soft: the real " NVRTC_NAME " has no %s\n", name);
    }
    return has;
}

#define NVRTC_REAL(name) (pthread_once(&once, real_begin), real_has(real_##name != NULL, #name))

/* ---- what programs asked for ---- */

struct wish {
    nvrtcProgram program;
    unsigned architecture; /* 90 for sm_90; 0: no machine code */
    const char *refusal;   /* in place of the log; NULL: none */
    void *image;           /* the container, once it has been asked for */
    size_t bytes;
    struct wish *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wish *wishes;

/* What an earlier compilation of the program left. */
static void wish_clear(struct wish *wish) {
    free(wish->image);
    wish->image = NULL;
    wish->bytes = 0;
    wish->architecture = 0;
    wish->refusal = NULL;
}

/* The wish of a program, made if asked to; NULL: there is none, or no memory. */
static struct wish *nvrtc_wish_of(nvrtcProgram program, bool make) {
    pthread_mutex_lock(&lock);
    struct wish *wish = wishes;
    while (wish != NULL && wish->program != program) wish = wish->next;
    if (wish == NULL && make) {
        wish = calloc(1, sizeof *wish);
        if (wish != NULL) {
            wish->program = program;
            wish->next = wishes;
            wishes = wish;
        }
    }
    pthread_mutex_unlock(&lock);
    return wish;
}

static void wish_forget(nvrtcProgram program) {
    pthread_mutex_lock(&lock);
    struct wish **link = &wishes;
    while (*link != NULL && (*link)->program != program) link = &(*link)->next;
    struct wish *wish = *link;
    if (wish != NULL) *link = wish->next;
    pthread_mutex_unlock(&lock);
    if (wish != NULL) free(wish->image);
    free(wish);
}

/* Where the value of an option begins; "" if it is the next word, NULL if this is another one. */
static const char *option_value(const char *word, const char *option) {
    const size_t length = strlen(option);
    if (strncmp(word, option, length) != 0) return NULL;
    if (word[length] == '=' || word[length] == ' ') {
        return word + length + 1 + strspn(word + length + 1, " ");
    }
    return word[length] == '\0' ? word + length : NULL;
}

static const char *option_architecture(const char *word) {
    const char *value = option_value(word, "--gpu-architecture");
    return value != NULL ? value : option_value(word, "-arch");
}

/* What this device cannot execute; NULL: nothing. */
static const char *option_refusal(const char *word) {
    static const char *const refused[][2] = {
        {"-dlto", "LTO-IR"},         {"--dlink-time-opt", "LTO-IR"}, {"-gen-opt-lto", "LTO-IR"},
        {"--gen-opt-lto", "LTO-IR"}, {"-optix-ir", "OptiX IR"},      {"--optix-ir", "OptiX IR"}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (strcmp(word, refused[i][0]) != 0) continue;
        return refused[i][1][0] == 'L'
                   ? "tollens soft: NVRTC: LTO-IR (-dlto, -gen-opt-lto) is for NVIDIA's compiler "
                     "alone; the soft device takes PTX: compile without link-time optimisation\n"
                   : "tollens soft: NVRTC: OptiX IR (-optix-ir) is for OptiX alone, which the soft "
                     "device does not have\n";
    }
    return NULL;
}

/* A word with compute_XX in place of the sm_XX that begins at value; NULL without memory. */
static char *option_virtual(const char *word, const char *value) {
    const size_t bytes = strlen(word) + sizeof "compute_";
    char *made = malloc(bytes);
    if (made != NULL) {
        snprintf(made, bytes, "%.*scompute_%s", (int)(value - word), word, value + strlen("sm_"));
    }
    return made;
}

/* The options for a virtual architecture. made[i] is what was allocated for them. */
static bool options_make(int count, const char *const *options, const char **changed, char **made,
                         struct wish *wish) {
    for (int i = 0; i < count; i++) {
        changed[i] = options[i];
        if (options[i] == NULL) continue;
        const char *before =
            i > 0 && options[i - 1] != NULL ? option_architecture(options[i - 1]) : NULL;
        const bool follows = before != NULL && before[0] == '\0';
        const char *value = follows ? options[i] : option_architecture(options[i]);
        if (wish->refusal == NULL) wish->refusal = option_refusal(options[i]);
        if (value == NULL || strncmp(value, "sm_", 3) != 0) continue;
        wish->architecture = (unsigned)strtoul(value + 3, NULL, 10);
        changed[i] = made[i] = option_virtual(options[i], value);
        if (made[i] == NULL) return false;
    }
    return true;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
    if (!NVRTC_REAL(nvrtcCompileProgram)) return INTERNAL_ERROR;
    if (program == NULL || count <= 0 || options == NULL) {
        return real_nvrtcCompileProgram(program, count, options);
    }
    struct wish *wish = nvrtc_wish_of(program, true);
    const char **changed = calloc((size_t)count, sizeof *changed);
    char **made = calloc((size_t)count, sizeof *made);
    nvrtcResult result = OUT_OF_MEMORY;
    if (wish != NULL) wish_clear(wish);
    if (wish != NULL && changed != NULL && made != NULL &&
        options_make(count, options, changed, made, wish)) {
        if (wish->refusal != NULL) {
            fputs(wish->refusal, stderr);
            result = INVALID_OPTION;
        } else {
            result = real_nvrtcCompileProgram(program, count, changed);
        }
    }
    for (int i = 0; made != NULL && i < count; i++) free(made[i]);
    free(made);
    free(changed);
    return result;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    if (!NVRTC_REAL(nvrtcDestroyProgram)) return INTERNAL_ERROR;
    if (program != NULL) wish_forget(*program);
    return real_nvrtcDestroyProgram(program);
}

/* ---- the container ---- */

static nvrtcResult cubin_make(struct wish *wish) {
    size_t bytes = 0;
    if (wish->image != NULL) return SUCCESS;
    nvrtcResult result = real_nvrtcGetPTXSize(wish->program, &bytes);
    if (result != SUCCESS) return result;
    char *text = calloc(1, bytes + 1);
    if (text == NULL) return OUT_OF_MEMORY;
    result = real_nvrtcGetPTX(wish->program, text);
    if (result == SUCCESS) {
        const struct soft_source source = {.text = text, .length = strlen(text)};
        wish->image = soft_container_make(&source, 1, wish->architecture, &wish->bytes);
        if (wish->image == NULL) result = OUT_OF_MEMORY;
    }
    free(text);
    return result;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes) {
    if (!NVRTC_REAL(nvrtcGetCUBINSize) || !NVRTC_REAL(nvrtcGetPTX)) return INTERNAL_ERROR;
    struct wish *wish = nvrtc_wish_of(program, false);
    if (wish == NULL || wish->architecture == 0) return real_nvrtcGetCUBINSize(program, bytes);
    if (bytes == NULL) return INVALID_INPUT;
    const nvrtcResult result = cubin_make(wish);
    if (result == SUCCESS) *bytes = wish->bytes;
    return result;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
    if (!NVRTC_REAL(nvrtcGetCUBIN) || !NVRTC_REAL(nvrtcGetPTX)) return INTERNAL_ERROR;
    struct wish *wish = nvrtc_wish_of(program, false);
    if (wish == NULL || wish->architecture == 0) return real_nvrtcGetCUBIN(program, cubin);
    if (cubin == NULL) return INVALID_INPUT;
    const nvrtcResult result = cubin_make(wish);
    if (result == SUCCESS) memcpy(cubin, wish->image, wish->bytes);
    return result;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes) {
    if (!NVRTC_REAL(nvrtcGetProgramLogSize)) return INTERNAL_ERROR;
    const struct wish *wish = nvrtc_wish_of(program, false);
    if (wish == NULL || wish->refusal == NULL) return real_nvrtcGetProgramLogSize(program, bytes);
    if (bytes == NULL) return INVALID_INPUT;
    *bytes = strlen(wish->refusal) + 1;
    return SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
    if (!NVRTC_REAL(nvrtcGetProgramLog)) return INTERNAL_ERROR;
    const struct wish *wish = nvrtc_wish_of(program, false);
    if (wish == NULL || wish->refusal == NULL) return real_nvrtcGetProgramLog(program, log);
    if (log == NULL) return INVALID_INPUT;
    strcpy(log, wish->refusal);
    return SUCCESS;
}

/* ---- what is passed on ---- */

NVRTC_VISIBLE const char *nvrtcGetErrorString(nvrtcResult result);
const char *nvrtcGetErrorString(nvrtcResult result) {
    pthread_once(&once, real_begin);
    if (real_nvrtcGetErrorString != NULL) return real_nvrtcGetErrorString(result);
    return "NVRTC_ERROR_INTERNAL_ERROR: there is no " NVRTC_NAME;
}

#define NVRTC_FN(name, parameters, arguments)                                                      \
    nvrtcResult name parameters {                                                                  \
        return NVRTC_REAL(name) ? real_##name arguments : INTERNAL_ERROR;                          \
    }
NVRTC_PASSED NVRTC_OWN
