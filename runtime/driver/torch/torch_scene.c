/*
 * The scene of a test: everything belongs to the test's process and ends with it.
 */
#include "torch_scene.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static struct torch_library library;
static char report[64];

static void *function(void *handle, const char *name) {
    void *found = dlsym(handle, name);
    cr_assert(found != NULL, "the library lacks %s", name);
    return found;
}

#define LOOK_UP(field)                                                                             \
    do {                                                                                           \
        void *found_here = function(handle, "tol_torch_" #field);                                  \
        memcpy(&library.field, &found_here, sizeof found_here);                                    \
    } while (0)

const struct torch_library *torch_scene_open(unsigned devices) {
    char path[4200], number[16];
    ssize_t length = readlink("/proc/self/exe", path, 4096);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libtollens-torch.so");
    if (!test_on_gpu()) {
        snprintf(number, sizeof number, "%u", devices);
        snprintf(report, sizeof report, "/tmp/torch-report-%d", (int)getpid());
        unlink(report);
        setenv("TOLLENS_SOFT_DEVICES", number, 1);
        setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,stream", 1);
        setenv("TOLLENS_SOFT_REPORT", report, 1);
        setenv("TOLLENS_LIBCUDA", test_library(), 1);
    }
    (void)test_driver(); /* or the test is skipped */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(handle != NULL, "%s", dlerror());
    LOOK_UP(allocate);
    LOOK_UP(allocate_or_throw);
    LOOK_UP(free);
    LOOK_UP(record_stream);
    LOOK_UP(begin_pool);
    LOOK_UP(end_pool);
    LOOK_UP(release_pool);
    LOOK_UP(empty_cache);
    LOOK_UP(set_fraction);
    LOOK_UP(base);
    LOOK_UP(init);
    LOOK_UP(statistics);
    LOOK_UP(reset_peaks);
    LOOK_UP(last_error);
    return &library;
}

const struct tol_driver_table *torch_scene_driver(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

CUstream torch_scene_stream(void) {
    CUstream stream = NULL;
    cr_assert_eq(
        torch_scene_driver()->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
    return stream;
}

CUdeviceptr torch_scene_block(size_t bytes, CUstream stream) {
    void *block = library.allocate(bytes, 0, stream);
    cr_assert(block != NULL, "%s", library.last_error());
    return (CUdeviceptr)(uintptr_t)block;
}

void torch_scene_free(CUdeviceptr address, size_t bytes, CUstream stream) {
    library.free((void *)(uintptr_t)address, bytes, 0, stream);
}

unsigned long long torch_scene_number(int device, const char *name) {
    char text[8192];
    json_error_t error;
    cr_assert(library.statistics(text, sizeof text) < sizeof text);
    json_t *all = json_loads(text, 0, &error);
    cr_assert(all != NULL, "%s: %s", error.text, text);
    size_t index = 0;
    json_t *one = NULL, *found = NULL;
    json_array_foreach(json_object_get(all, "devices"), index, one) {
        if (json_integer_value(json_object_get(one, "device")) == device) {
            found = json_object_get(one, name);
        }
    }
    cr_assert(found != NULL, "device %d has no %s in %s", device, name, text);
    const unsigned long long value = (unsigned long long)json_integer_value(found);
    json_decref(all);
    return value;
}

void torch_scene_must_be_clean(void) {
    char line[600];
    FILE *file = report[0] != '\0' ? fopen(report, "r") : NULL;
    if (file == NULL) return;
    const bool found = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    unlink(report);
    cr_assert(!found, "the soft device says %s", line);
}
