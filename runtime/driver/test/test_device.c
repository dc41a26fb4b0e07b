/*
 * The device, the kernels and the files of the runtime's tests.
 */
#include "test_device.h"

#include <lzma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tol_driver *driver;
static struct tol_context *context;
static struct tol_module *modules[16];
static size_t module_count;

bool test_on_gpu(void) {
    const char *device = getenv("TOLLENS_DEVICE");
    return device != NULL && strncmp(device, "cuda", 4) == 0;
}

/* The folder of this program, followed by a slash. */
static void own_folder(char *path, size_t bytes) {
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) slash[1] = '\0';
}

const char *test_library(void) {
    static char path[4096];
    if (test_on_gpu()) return NULL;
    own_folder(path, sizeof path - 32);
    strcat(path, "libtollens-soft.so");
    return path;
}

struct tol_driver *test_driver(void) {
    if (driver != NULL) return driver;
    tol_status status = tol_driver_open(test_library(), &driver);
    if (status != TOL_OK && test_on_gpu()) cr_skip_test("no GPU: %s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return driver;
}

struct tol_context *test_context(void) {
    if (context == NULL) MUST(tol_context_create(test_driver(), 0, &context));
    return context;
}

void test_end(void) {
    while (module_count > 0) tol_module_destroy(modules[--module_count]);
    tol_context_destroy(context);
    context = NULL;
    tol_driver_close(driver);
    driver = NULL;
}

/* NULL: there is none. */
static const char *find_fixture(const char *name, const char *ending) {
    static const char *const roots[] = {"", "../", "../../"};
    static char path[8300];
    char folder[4096] = "";
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, sizeof path, "%s%sfixtures/%s%s", folder, roots[i], name, ending);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}

const char *test_fixture_path(const char *name) {
    const char *path = find_fixture(name, "");
    cr_assert(path != NULL, "the fixture %s is missing", name);
    return path;
}

static char *read_whole(const char *path, const char *name, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL, "the fixture %s cannot be opened", name);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *content = calloc(1, *bytes + 1);
    cr_assert(content != NULL && fread(content, 1, *bytes, file) == *bytes,
              "the fixture %s cannot be read", name);
    fclose(file);
    return content;
}

/* What is kept as an .xz stream; releases the stream. */
static char *unpack(char *packed, const char *name, size_t *bytes) {
    enum { UNPACKED_MAX = 8 << 20 };
    uint64_t memory = UINT64_MAX;
    size_t read = 0, written = 0;
    char *text = malloc(UNPACKED_MAX + 1);
    cr_assert(text != NULL && lzma_stream_buffer_decode(&memory, 0, NULL, (uint8_t *)packed, &read,
                                                        *bytes, (uint8_t *)text, &written,
                                                        UNPACKED_MAX) == LZMA_OK,
              "the fixture %s cannot be unpacked", name);
    text[written] = '\0';
    *bytes = written;
    free(packed);
    return text;
}

char *test_fixture(const char *name, size_t *bytes) {
    const char *path = find_fixture(name, "");
    if (path != NULL) return read_whole(path, name, bytes);
    path = find_fixture(name, ".xz");
    cr_assert(path != NULL, "the fixture %s is missing", name);
    return unpack(read_whole(path, name, bytes), name, bytes);
}

char *test_ptx(const char *name) {
    char path[256];
    size_t bytes = 0;
    snprintf(path, sizeof path, "ptx/%s", name);
    return test_fixture(path, &bytes);
}

struct tol_kernel *test_kernel(const char *name) {
    char path[128];
    struct tol_kernel *kernel = NULL;
    cr_assert(module_count < sizeof modules / sizeof modules[0], "too many kernels for one test");
    snprintf(path, sizeof path, "kernels/%s.ptx", name);
    char *text = test_ptx(path);
    MUST(tol_module_load(test_context(), text, strlen(text), NULL, &modules[module_count]));
    free(text);
    MUST(tol_module_kernel(modules[module_count++], name, &kernel));
    return kernel;
}

bool test_takes_trial(void) {
    static unsigned long trials;
    const char *one_in = getenv("TOLLENS_TEST_ONE_IN"), *seed = getenv("TOLLENS_TEST_SEED");
    const unsigned long every = one_in != NULL ? strtoul(one_in, NULL, 10) : 1;
    const unsigned long first = seed != NULL ? strtoul(seed, NULL, 10) : 0, trial = trials++;
    return trial == 0 || every < 2 || trial % every == first % every;
}
