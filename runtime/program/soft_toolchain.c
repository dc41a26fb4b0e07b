/*
 * The compilers of a run: links to this program in front of PATH, and variables. Under the name
 * nvcc, this program calls the real one.
 *
 * What programs keep of what they compiled goes to a folder of its own, because a container that a
 * program later loads on a GPU, or a cubin that it loads here, would be refused.
 */
#include "soft_toolchain.h"

#include "harness/session.h"
#include "run/command.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FATAL = 255 }; /* of ptxas and of nvcc */

static const char *const tools[] = {"ptxas", "nvcc"};
enum { TOOLS = sizeof tools / sizeof tools[0] };

/* The folders of compiled kernels, by the libraries that keep them. */
static const char *const caches[][2] = {
    {"CUPY_CACHE_DIR", "cupy"},     {"NUMBA_CACHE_DIR", "numba"},
    {"PYCUDA_CACHE_DIR", "pycuda"}, {"TILELANG_CACHE_DIR", "tilelang"},
    {"TRITON_CACHE_DIR", "triton"}, {"TORCHINDUCTOR_CACHE_DIR", "torchinductor"},
    {"WARP_CACHE_PATH", "warp"}};

static bool toolchain_is_this(const char *path) {
    char whole[PATH_MAX];
    return realpath(path, whole) != NULL && strcmp(whole, hyp_session_program()) == 0;
}

static bool toolchain_is_nvcc(const char *path) {
    return access(path, X_OK) == 0 && !toolchain_is_this(path);
}

/* The nvcc of a CUDA toolkit: that of $TOLLENS_SOFT_REAL_NVCC, of PATH, of CUDA_HOME or CUDA_PATH,
 * or of /usr/local/cuda, other than this program. false: there is none. */
static bool toolchain_find_nvcc(char *path, size_t bytes) {
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *given = getenv("TOLLENS_SOFT_REAL_NVCC");
    if (given != NULL && given[0] != '\0') {
        snprintf(path, bytes, "%s", given);
        return toolchain_is_nvcc(path);
    }
    for (const char *list = getenv("PATH"); list != NULL && *list != '\0';) {
        const size_t length = strcspn(list, ":");
        snprintf(path, bytes, "%.*s/nvcc", (int)length, list);
        if (length > 0 && toolchain_is_nvcc(path)) return true;
        list += length + (list[length] == ':');
    }
    for (int i = 0; i < 2; i++) {
        const char *home = getenv(homes[i]);
        snprintf(path, bytes, "%s/bin/nvcc", home != NULL ? home : "");
        if (home != NULL && toolchain_is_nvcc(path)) return true;
    }
    snprintf(path, bytes, "/usr/local/cuda/bin/nvcc");
    return toolchain_is_nvcc(path);
}

/* The folder of what was compiled, which is made. */
static bool toolchain_cache(char *path, size_t bytes) {
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own != NULL && own[0] == '/') {
        snprintf(path, bytes, "%s", own);
    } else if (home != NULL && home[0] == '/') {
        snprintf(path, bytes, "%s/.cache", home);
    } else {
        return false;
    }
    mkdir(path, 0700);
    const size_t used = strlen(path);
    snprintf(path + used, bytes - used, "/tollens-soft");
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static void toolchain_set_caches(void) {
    char root[PATH_MAX], path[PATH_MAX + 32];
    /* A process without a home keeps nothing between runs. */
    if (!toolchain_cache(root, sizeof root)) return;
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        if (getenv(caches[i][0]) != NULL) continue;
        snprintf(path, sizeof path, "%s/%s", root, caches[i][1]);
        mkdir(path, 0700); /* PyCUDA expects it */
        setenv(caches[i][0], path, 1);
    }
}

/* Assembles PTX as ptxas, whose exit code it returns: the soft device's library does the work. */
static int toolchain_assemble(int count, char **words) {
    int (*assemble)(int, char **) = NULL;
    void *device = dlopen(hyp_session_soft_library(), RTLD_NOW | RTLD_LOCAL);
    void *address = device != NULL ? dlsym(device, "tollens_soft_assemble") : NULL;
    if (address == NULL) {
        fprintf(stderr, "ptxas fatal   : %s is not the soft device of this program\n",
                hyp_session_soft_library());
        return FATAL;
    }
    memcpy(&assemble, &address, sizeof assemble);
    return assemble(count, words);
}

/* ---- nvcc: the real one, with PTX in the result ----------------------------------------------
 *
 * For each architecture of machine code among the words, PTX of the same architecture is added. If
 * the result is a cubin, nvcc makes PTX, and ptxas of this program the container. All else is the
 * real nvcc's, whose process takes this one over.
 *
 * Source: "NVIDIA CUDA Compiler Driver" of CUDA 13.0, sections on phases and on architectures.
 */

enum { ARCHITECTURES_MAX = 32, NAME_BYTES = 16, MORE = 2 * ARCHITECTURES_MAX + 8 };

struct nvcc_call {
    char architectures[ARCHITECTURES_MAX][NAME_BYTES]; /* "90a" for sm_90a */
    int count;
    const char *input, *output; /* of a cubin; NULL: none was named */
    bool is_cubin, is_part;
};

__attribute__((format(printf, 1, 2))) static int nvcc_fail(const char *format, ...) {
    va_list arguments;
    fputs("nvcc fatal   : tollens soft: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return FATAL;
}

/* Notes each sm_XX of a word, once. */
static void nvcc_note(struct nvcc_call *call, const char *word) {
    for (const char *at = strstr(word, "sm_"); at != NULL; at = strstr(at + 1, "sm_")) {
        const size_t length = strspn(at + 3, "0123456789af");
        if (length == 0 || length >= NAME_BYTES || call->count == ARCHITECTURES_MAX) continue;
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, at + 3);
        int i = 0;
        while (i < call->count && strcmp(call->architectures[i], name) != 0) i++;
        if (i == call->count) memcpy(call->architectures[call->count++], name, sizeof name);
    }
}

static bool nvcc_is(const char *word, const char *brief, const char *name) {
    return strcmp(word, brief) == 0 || strcmp(word, name) == 0;
}

/* Whether a word has an option for architectures, with its value or before it. */
static bool nvcc_is_architecture(const char *word) {
    static const char *const options[] = {"-arch",      "--gpu-architecture", "-code",
                                          "--gpu-code", "-gencode",           "--generate-code"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const size_t length = strlen(options[i]);
        if (strncmp(word, options[i], length) == 0 &&
            (word[length] == '\0' || word[length] == '=')) {
            return true;
        }
    }
    return false;
}

static bool nvcc_is_source(const char *word) {
    const char *end = strrchr(word, '.');
    static const char *const ends[] = {".cu", ".cpp", ".cc", ".cxx", ".c", ".ptx"};
    for (size_t i = 0; word[0] != '-' && end != NULL && i < sizeof ends / sizeof ends[0]; i++) {
        if (strcmp(end, ends[i]) == 0) return true;
    }
    return false;
}

/* What a call asks for. */
static void nvcc_read(struct nvcc_call *call, int count, char **words) {
    *call = (struct nvcc_call){.count = 0};
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        const bool follows =
            i > 0 && nvcc_is_architecture(words[i - 1]) && strchr(words[i - 1], '=') == NULL;
        if (follows || nvcc_is_architecture(word)) nvcc_note(call, word);
        call->is_cubin |= nvcc_is(word, "-cubin", "--cubin");
        call->is_part |= nvcc_is(word, "-dc", "--device-c") ||
                         nvcc_is(word, "-rdc=true", "--relocatable-device-code=true");
        if (nvcc_is(word, "-o", "--output-file") && i + 1 < count) {
            call->output = words[++i];
        } else if (strncmp(word, "--output-file=", 14) == 0) {
            call->output = word + 14;
        } else if (nvcc_is_source(word)) {
            call->input = word;
        }
    }
}

/* `native` asks a driver that is not there: the architecture is the soft device's. */
static void nvcc_replace_native(int count, char **words, char *made, size_t bytes) {
    const char *compute = getenv("TOLLENS_SOFT_COMPUTE");
    snprintf(made, bytes, "-arch=sm_%s", compute != NULL && compute[0] != '\0' ? compute : "90");
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        if (!nvcc_is_architecture(words[i])) continue;
        if (equals != NULL && strcmp(equals + 1, "native") == 0) words[i] = made;
        if (equals == NULL && i + 1 < count && strcmp(words[i + 1], "native") == 0) {
            words[i + 1] = made + strlen("-arch=");
        }
    }
}

/* The real nvcc with PTX added; returns only if it cannot be run. */
static int nvcc_pass_on(const struct nvcc_call *call, const char *nvcc, int count, char **words) {
    char values[ARCHITECTURES_MAX][64], option[] = "-gencode", path[PATH_MAX];
    char **all = calloc((size_t)count + MORE, sizeof *all);
    int used = 0;
    if (all == NULL) return nvcc_fail("out of memory");
    snprintf(path, sizeof path, "%s", nvcc);
    all[used++] = path;
    for (int i = 0; i < count; i++) all[used++] = words[i];
    for (int i = 0; i < call->count; i++) {
        snprintf(values[i], sizeof values[i], "arch=compute_%s,code=compute_%s",
                 call->architectures[i], call->architectures[i]);
        all[used++] = option;
        all[used++] = values[i];
    }
    execv(nvcc, all);
    free(all);
    return nvcc_fail("%s cannot be run: %s", nvcc, strerror(errno));
}

/* Runs the real nvcc to its end. Returns its exit code. */
static int nvcc_run(const char *nvcc, char **words) {
    extern char **environ;
    pid_t id = 0;
    int status = 0;
    const int error = posix_spawn(&id, nvcc, NULL, NULL, words, environ);
    if (error != 0) return nvcc_fail("%s cannot be run: %s", nvcc, strerror(error));
    while (waitpid(id, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : FATAL;
}

/* The name of a cubin that the call does not name: that of the input, in this folder. */
static void nvcc_name_cubin(const char *input, char *name, size_t bytes) {
    const char *slash = strrchr(input, '/');
    const char *base = slash != NULL ? slash + 1 : input;
    const char *end = strrchr(base, '.');
    snprintf(name, bytes, "%.*s.cubin", (int)(end != NULL ? end - base : (long)strlen(base)), base);
}

/* nvcc makes PTX, and ptxas of this program the container. */
static int nvcc_make_cubin(const struct nvcc_call *call, const char *nvcc, int count,
                           char **words) {
    const char *folder = getenv("TMPDIR");
    char ptx[PATH_MAX], path[PATH_MAX], name[PATH_MAX], target[64];
    char mode[] = "-ptx", out[] = "-o", part[] = "-c";
    if (call->input == NULL) return nvcc_fail("-cubin requires an input file");
    if (call->count > 1) {
        return nvcc_fail("-cubin takes one architecture, not sm_%s and sm_%s",
                         call->architectures[0], call->architectures[1]);
    }
    snprintf(ptx, sizeof ptx, "%s/tollens-nvcc-XXXXXX",
             folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    const int file = mkstemp(ptx);
    if (file < 0) return nvcc_fail("%s: %s", ptx, strerror(errno));
    close(file);
    char **all = calloc((size_t)count + MORE, sizeof *all);
    int used = 0, code = FATAL;
    snprintf(path, sizeof path, "%s", nvcc);
    if (all != NULL) {
        all[used++] = path;
        for (int i = 0; i < count; i++) {
            if (nvcc_is(words[i], "-cubin", "--cubin")) {
                all[used++] = mode;
            } else if (nvcc_is(words[i], "-o", "--output-file")) {
                i++;
            } else if (strncmp(words[i], "--output-file=", 14) != 0) {
                all[used++] = words[i];
            }
        }
        all[used++] = out;
        all[used++] = ptx;
        code = nvcc_run(nvcc, all);
    }
    if (code == 0) {
        nvcc_name_cubin(call->input, name, sizeof name);
        if (call->output != NULL) snprintf(name, sizeof name, "%s", call->output);
        snprintf(target, sizeof target, "--gpu-name=sm_%s",
                 call->count > 0 ? call->architectures[0] : "90");
        char *assembler[] = {ptx, out, name, target, part};
        code = toolchain_assemble(call->is_part ? 5 : 4, assembler);
    }
    free(all);
    unlink(ptx);
    return code;
}

static int nvcc_compile(int count, char **words) {
    struct nvcc_call call;
    char nvcc[PATH_MAX], native[64];
    if (!toolchain_find_nvcc(nvcc, sizeof nvcc)) {
        return nvcc_fail("no other nvcc is in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda; "
                         "TOLLENS_SOFT_REAL_NVCC names one");
    }
    nvcc_replace_native(count, words, native, sizeof native);
    nvcc_read(&call, count, words);
    return call.is_cubin ? nvcc_make_cubin(&call, nvcc, count, words)
                         : nvcc_pass_on(&call, nvcc, count, words);
}

/* ---- what commands call ---- */

bool hyp_soft_toolchain_library(const char *soft, const char *name, char *path, size_t bytes) {
    static const char *const ways[] = {"", "tollens-soft/"};
    const int folder = (int)(strrchr(soft, '/') - soft) + 1;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(path, bytes, "%.*s%s%s", folder, soft, ways[i], name);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

bool hyp_soft_toolchain_open(const char *folder) {
    char bin[PATH_MAX + 8], path[PATH_MAX + 32], nvcc[PATH_MAX];
    const char *before = getenv("PATH");
    const bool has_nvcc = toolchain_find_nvcc(nvcc, sizeof nvcc);
    snprintf(bin, sizeof bin, "%s/bin", folder);
    if (mkdir(bin, 0700) != 0) {
        hyp_command_complain("soft: %s: %s", bin, strerror(errno));
        return false;
    }
    for (int i = 0; i < TOOLS; i++) {
        if (strcmp(tools[i], "nvcc") == 0 && !has_nvcc) continue;
        snprintf(path, sizeof path, "%s/%s", bin, tools[i]);
        if (symlink(hyp_session_program(), path) != 0) {
            hyp_command_complain("soft: %s: %s", path, strerror(errno));
            return false;
        }
    }
    const size_t bytes = strlen(bin) + (before != NULL ? strlen(before) : 0) + 2;
    char *list = malloc(bytes);
    if (list == NULL) {
        hyp_command_complain("soft: out of memory");
        return false;
    }
    snprintf(list, bytes, "%s%s%s", bin, before != NULL ? ":" : "", before != NULL ? before : "");
    setenv("PATH", list, 1);
    free(list);
    snprintf(path, sizeof path, "%s/ptxas", bin);
    setenv("TRITON_PTXAS_PATH", path, 1);
    setenv("TRITON_PTXAS_BLACKWELL_PATH", path, 1);
    setenv("TOLLENS_SOFT_LIBRARY", hyp_session_soft_library(), 1);
    toolchain_set_caches();
    return true;
}

void hyp_soft_toolchain_close(const char *folder) {
    char path[PATH_MAX + 32];
    for (int i = 0; i < TOOLS; i++) {
        snprintf(path, sizeof path, "%s/bin/%s", folder, tools[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/bin", folder);
    rmdir(path);
}

void hyp_soft_toolchain_say(void) {
    static const char *const libraries[] = {"libnvrtc.so.12", "libnvrtc.so.13",
                                            "libnvJitLink.so.12", "libnvJitLink.so.13"};
    char path[PATH_MAX], soft[PATH_MAX];
    hyp_command_say("Compilers under tollens soft, which hand PTX on (--toolchain off leaves them "
                    "out):\n"
                    "  ptxas               %s\n",
                    hyp_session_program());
    if (toolchain_find_nvcc(path, sizeof path)) {
        hyp_command_say("  nvcc                %s, with PTX added\n", path);
    } else {
        hyp_command_say("  nvcc                none: PATH and CUDA_HOME have no CUDA toolkit\n");
    }
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        const bool has = realpath(hyp_session_soft_library(), soft) != NULL &&
                         hyp_soft_toolchain_library(soft, libraries[i], path, sizeof path);
        hyp_command_say("  %-18s  %s\n", libraries[i], has ? path : "missing");
    }
}

int hyp_command_soft_tool(int count, char **words) {
    const char *name = count > 0 ? strrchr(words[0], '/') : NULL;
    name = name != NULL ? name + 1 : count > 0 ? words[0] : "";
    if (strcmp(name, "ptxas") == 0) return toolchain_assemble(count - 1, words + 1);
    if (strcmp(name, "nvcc") == 0) return nvcc_compile(count - 1, words + 1);
    return -1;
}
