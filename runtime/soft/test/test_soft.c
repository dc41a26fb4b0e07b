/*
 * Runs PTX texts, captures output, and finds fixtures.
 */
#include "test_soft.h"

#include "table/joined_text.h"

#include <dirent.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static CUcontext context;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult must_result = (call);                                                             \
        cr_assert_eq(must_result, CUDA_SUCCESS, "%s: %d", #call, (int)must_result);                \
    } while (0)

void test_soft_open(void) {
    if (context != NULL) return;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

void test_soft_close(void) {
    if (context == NULL) return;
    cuDevicePrimaryCtxRelease_v2(0);
    context = NULL;
}

static CUresult load(const char *ptx, CUmodule *module, char *log, size_t bytes) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)bytes};
    log[0] = '\0';
    test_soft_open();
    return cuModuleLoadDataEx(module, ptx, 2, options, values);
}

CUmodule test_load(const char *ptx) {
    char log[2048];
    CUmodule module = NULL;
    CUresult result = load(ptx, &module, log, sizeof log);
    cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, log);
    return module;
}

CUresult test_refused(const char *ptx, char *log, size_t bytes) {
    CUmodule module = NULL;
    CUresult result = load(ptx, &module, log, bytes);
    cr_assert_neq(result, CUDA_SUCCESS, "this must be refused:\n%s", ptx);
    return result;
}

CUfunction test_function(CUmodule module, const char *name) {
    CUfunction function = NULL;
    CUresult result = cuModuleGetFunction(&function, module, name);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d", name, (int)result);
    return function;
}

CUresult test_run(const char *ptx, unsigned blocks, unsigned threads, void *out, size_t bytes) {
    CUmodule module = test_load(ptx);
    CUfunction function = test_function(module, "k");
    CUdeviceptr buffer = 0;
    MUST(cuMemAlloc_v2(&buffer, bytes));
    MUST(cuMemcpyHtoD_v2(buffer, out, bytes));
    void *parameters[] = {&buffer};
    CUresult result =
        cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
    if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
        MUST(cuMemcpyDtoH_v2(out, buffer, bytes));
        MUST(cuMemFree_v2(buffer));
        MUST(cuModuleUnload(module));
    }
    return result;
}

const char *test_log(void) {
    static char text[1 << 16];
    CUlogIterator begin = 0;
    size_t bytes = sizeof text;
    text[0] = '\0';
    cuLogsDumpToMemory(&begin, text, &bytes, 0);
    return text;
}

static FILE *capture[3];

void test_capture(FILE *stream) {
    int number = fileno(stream);
    fflush(stream);
    capture[number] = tmpfile();
    cr_assert(capture[number] != NULL);
    dup2(fileno(capture[number]), number);
}

const char *test_captured(FILE *stream) {
    static char text[1 << 16];
    int number = fileno(stream);
    fflush(stream);
    ssize_t length = pread(fileno(capture[number]), text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

#define FIXTURES "fixtures/ptx"

/* A folder of a tree, from where the program lies: build/ or one of its variants' folders. */
static void find_folder(const char *tree, const char *folder, char *path, size_t bytes) {
    static const char *const roots[] = {"", "/..", "/../.."};
    char own[2048];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) *slash = '\0';
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, bytes, "%s%s/%s/%s", own, roots[i], tree, folder);
        if (access(path, R_OK) == 0) return;
    }
    cr_assert_fail("the folder %s/%s is missing", tree, folder);
}

static char *read_text(const char *whole) {
    FILE *file = fopen(whole, "rb");
    cr_assert(file != NULL, "%s is missing", whole);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, bytes + 1);
    cr_assert(text != NULL && fread(text, 1, bytes, file) == bytes, "%s", whole);
    fclose(file);
    return text;
}

/* The same of a file that is kept as an .xz stream. */
static char *read_packed(const char *whole) {
    enum { UNPACKED_MAX = 8 << 20 };
    struct stat info;
    uint64_t memory = UINT64_MAX;
    size_t read = 0, written = 0;
    cr_assert(stat(whole, &info) == 0, "%s is missing", whole);
    char *packed = read_text(whole), *text = calloc(1, UNPACKED_MAX + 1);
    cr_assert(text != NULL && lzma_stream_buffer_decode(&memory, 0, NULL, (uint8_t *)packed, &read,
                                                        (size_t)info.st_size, (uint8_t *)text,
                                                        &written, UNPACKED_MAX) == LZMA_OK,
              "%s cannot be unpacked", whole);
    free(packed);
    return text;
}

static bool ends_with(const char *name, const char *ending) {
    const size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

/* Cuts the text of a file NAME.pair in two: NAME.ptx, which is returned, and NAME_right.ptx, which
 * begins where the result points. */
static char *cut_pair(char *text) {
    static const char mark[] = "//---- right\n";
    char *right = strstr(text, mark);
    cr_assert(right != NULL, "a pair without the line %s", mark);
    *right = '\0';
    return right + sizeof mark - 1;
}

char *test_fixture(const char *folder, const char *name) {
    char path[4096], whole[4400];
    find_folder(FIXTURES, folder, path, sizeof path);
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    if (access(whole, F_OK) == 0) return read_text(whole);
    snprintf(whole, sizeof whole, "%s/%s.xz", path, name);
    if (access(whole, F_OK) == 0) return read_packed(whole);
    const bool is_right = ends_with(name, "_right.ptx");
    const size_t end = is_right ? strlen("_right.ptx") : strlen(".ptx");
    snprintf(whole, sizeof whole, "%s/%.*s.pair", path, (int)(strlen(name) - end), name);
    char *text = read_text(whole), *right = cut_pair(text);
    if (is_right) memmove(text, right, strlen(right) + 1);
    return text;
}

static int is_ptx(const struct dirent *entry) {
    return ends_with(entry->d_name, ".ptx") || ends_with(entry->d_name, ".ptx.xz") ||
           ends_with(entry->d_name, ".pair");
}

/* Visits the texts of a file that has several; 0: it is one text. */
static size_t visit_joined(char *file, void (*visit)(const char *name, const char *text)) {
    size_t count = 0;
    struct joined_text one;
    for (char *at = joined_text_first(file); at != NULL; count++) {
        at = joined_text_cut(at, &one);
        visit(one.name, one.text);
    }
    return count;
}

/* Visits a file, each text of several. Returns their number. */
static size_t visit_file(const char *folder, const char *name,
                         void (*visit)(const char *name, const char *text)) {
    char one[300];
    size_t joined = 0;
    const bool is_pair = ends_with(name, ".pair");
    const int length = (int)(strstr(name, is_pair ? ".pair" : ".ptx") - name);
    for (int i = 0; i <= (int)is_pair; i++) {
        snprintf(one, sizeof one, "%.*s%s.ptx", length, name, i == 1 ? "_right" : "");
        char *text = test_fixture(folder, one);
        joined = visit_joined(text, visit);
        if (joined == 0) visit(one, text);
        free(text);
    }
    return is_pair ? 2 : joined > 0 ? joined : 1;
}

size_t test_each_fixture(const char *folder, void (*visit)(const char *name, const char *text)) {
    char path[4096];
    struct dirent **entries = NULL;
    find_folder(FIXTURES, folder, path, sizeof path);
    int count = scandir(path, &entries, is_ptx, alphasort);
    cr_assert(count > 0, "%s is empty", path);
    size_t visited = 0;
    for (int i = 0; i < count; i++) {
        visited += visit_file(folder, entries[i]->d_name, visit);
        free(entries[i]);
    }
    free(entries);
    return visited;
}
