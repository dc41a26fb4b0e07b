/*
 * nvcc under `tollens soft`: the real one, with PTX in the result.
 *
 * For each architecture of machine code among the words, PTX of the same architecture is added. If
 * the result is a cubin, nvcc makes PTX, and ptxas of this program makes the container. In all
 * other calls the real nvcc replaces this process.
 *
 * Source: "NVIDIA CUDA Compiler Driver" of CUDA 13.0, sections on phases and on architectures.
 */
#include "soft_nvcc.h"

#include "harness/session.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FATAL = 255 }; /* nvcc's exit code */

static bool nvcc_is_this(const char *path) {
    char whole[PATH_MAX];
    return realpath(path, whole) != NULL && strcmp(whole, hyp_session_program()) == 0;
}

static bool nvcc_is_other(const char *path) {
    return access(path, X_OK) == 0 && !nvcc_is_this(path);
}

bool hyp_soft_nvcc_find(char *path, size_t bytes) {
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *given = getenv("TOLLENS_SOFT_REAL_NVCC");
    if (given != NULL && given[0] != '\0') {
        snprintf(path, bytes, "%s", given);
        return nvcc_is_other(path);
    }
    for (const char *list = getenv("PATH"); list != NULL && *list != '\0';) {
        const size_t length = strcspn(list, ":");
        snprintf(path, bytes, "%.*s/nvcc", (int)length, list);
        if (length > 0 && nvcc_is_other(path)) return true;
        list += length + (list[length] == ':');
    }
    for (int i = 0; i < 2; i++) {
        const char *home = getenv(homes[i]);
        snprintf(path, bytes, "%s/bin/nvcc", home != NULL ? home : "");
        if (home != NULL && nvcc_is_other(path)) return true;
    }
    snprintf(path, bytes, "/usr/local/cuda/bin/nvcc");
    return nvcc_is_other(path);
}

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

/* nvcc makes PTX, and assemble makes the container. */
static int nvcc_make_cubin(const struct nvcc_call *call, const char *nvcc, int count, char **words,
                           int (*assemble)(int count, char **words)) {
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
        code = assemble(call->is_part ? 5 : 4, assembler);
    }
    free(all);
    unlink(ptx);
    return code;
}

int hyp_soft_nvcc(int count, char **words, int (*assemble)(int count, char **words)) {
    struct nvcc_call call;
    char nvcc[PATH_MAX], native[64];
    if (!hyp_soft_nvcc_find(nvcc, sizeof nvcc)) {
        return nvcc_fail("no other nvcc is in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda; "
                         "TOLLENS_SOFT_REAL_NVCC names one");
    }
    nvcc_replace_native(count, words, native, sizeof native);
    nvcc_read(&call, count, words);
    return call.is_cubin ? nvcc_make_cubin(&call, nvcc, count, words, assemble)
                         : nvcc_pass_on(&call, nvcc, count, words);
}
