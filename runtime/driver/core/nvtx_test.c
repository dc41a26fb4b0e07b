/*
 * Ranges for Nsight, as recorded by the listener beside the tests.
 */
#include "test/nvtx_listener.h"
#include "nvtx_abi.h"
#include "test/test_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(TOL_HAS_CUDA_H)
#include <nvtx3/nvToolsExt.h>

/* nvtx_abi.h beside the toolkit's headers. */
#define SAME(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #theirs)
SAME(TOL_NVTX_VERSION, NVTX_VERSION);
SAME(TOL_NVTX_EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(TOL_NVTX_EXPORT_VERSION, NVTX_ETID_VERSIONINFO);
SAME(TOL_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(TOL_NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(TOL_NVTX_MODULE_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(TOL_NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(TOL_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(TOL_NVTX_MODULE_SYNC, NVTX_CB_MODULE_SYNC);
SAME(TOL_NVTX_MODULES, NVTX_CB_MODULE_SIZE);
SAME(TOL_NVTX_CORE_SIZE, NVTX_CBID_CORE_SIZE);
SAME(TOL_NVTX_CUDA_SIZE, NVTX_CBID_CUDA_SIZE);
SAME(TOL_NVTX_OPENCL_SIZE, NVTX_CBID_OPENCL_SIZE);
SAME(TOL_NVTX_CUDART_SIZE, NVTX_CBID_CUDART_SIZE);
SAME(TOL_NVTX_CORE2_SIZE, NVTX_CBID_CORE2_SIZE);
SAME(TOL_NVTX_SYNC_SIZE, NVTX_CBID_SYNC_SIZE);
SAME(TOL_NVTX_DOMAIN_RANGE_PUSH, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(TOL_NVTX_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(TOL_NVTX_DOMAIN_CREATE, NVTX_CBID_CORE2_DomainCreateA);
SAME(TOL_NVTX_ATTRIBUTES_VERSION, NVTX_VERSION);
SAME(TOL_NVTX_PAYLOAD_UINT64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(TOL_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(sizeof(struct tol_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(sizeof(struct tol_nvtx_version), sizeof(NvtxExportTableVersionInfo));
SAME(sizeof(struct tol_nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(struct tol_nvtx_attributes, bytes), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(struct tol_nvtx_attributes, category), offsetof(nvtxEventAttributes_t, category));
SAME(offsetof(struct tol_nvtx_attributes, color), offsetof(nvtxEventAttributes_t, color));
SAME(offsetof(struct tol_nvtx_attributes, payload_type),
     offsetof(nvtxEventAttributes_t, payloadType));
SAME(offsetof(struct tol_nvtx_attributes, payload), offsetof(nvtxEventAttributes_t, payload));
SAME(offsetof(struct tol_nvtx_attributes, message_type),
     offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(struct tol_nvtx_attributes, message), offsetof(nvtxEventAttributes_t, message));
SAME(offsetof(struct tol_nvtx_callbacks, get_table),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(offsetof(struct tol_nvtx_version, version), offsetof(NvtxExportTableVersionInfo, version));
SAME(offsetof(struct tol_nvtx_version, set_tool_version),
     offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
#endif

TestSuite(nvtx, .fini = test_end);

enum { BYTES = 4096 };
#define ANY UINT64_MAX

/* The path of the listener beside this program. */
static const char *listener(void) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libnvtx-listener.so");
    return path;
}

/* What the listener recorded, by its own function. */
static const struct nvtx_listener_range *heard(size_t *count, size_t *open) {
    const struct nvtx_listener_range *(*ranges)(size_t *, size_t *) = NULL;
    void *library = dlopen(listener(), RTLD_NOW);
    cr_assert(library != NULL, "%s", dlerror());
    void *found = dlsym(library, "nvtx_listener_ranges");
    cr_assert(found != NULL);
    memcpy(&ranges, &found, sizeof found);
    return ranges(count, open);
}

static size_t count_of(const char *name, uint64_t bytes) {
    size_t count = 0, open = 0, matches = 0;
    const struct nvtx_listener_range *ranges = heard(&count, &open);
    for (size_t i = 0; i < count; i++) {
        matches += strcmp(ranges[i].name, name) == 0 && (bytes == ANY || ranges[i].bytes == bytes);
    }
    return matches;
}

/* A call of each kind, one of which fails. */
static void live(void) {
    char bytes[BYTES] = {0};
    struct tol_context *context = test_context();
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL, *refused = NULL;
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    tol_auto_pool struct tol_pool *pool = NULL;
    tol_auto_batch struct tol_batch *batch = NULL;
    tol_auto_transfer struct tol_transfer *transfer = NULL;
    tol_auto_vram_context struct tol_vram_context *vram = NULL;
    struct tol_block block;
    struct tol_vram memory;
    struct tol_kernel *fill = test_kernel("fill");
    const struct tol_launch_shape shape = tol_launch_linear(1, 32);
    MUST(tol_stream_create(context, NULL, &stream));
    MUST(tol_buffer_create(context, BYTES, 1, &buffer));
    cr_assert(tol_buffer_create(context, 0, 1, &refused) == TOL_INVALID_ARGUMENT);
    MUST(tol_buffer_write(buffer, bytes, BYTES));
    MUST(tol_buffer_read(buffer, bytes, BYTES));
    MUST(tol_launch(stream, fill, shape, TOL_ARGUMENTS(tol_buffer_address(buffer), 1u, 1ull)));
    MUST(tol_pinned_create(context, BYTES, &pinned));
    MUST(tol_copy_to_device(stream, buffer, 0, pinned, 0, 100));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_create(context, NULL, &pool));
    MUST(tol_pool_allocate(pool, 12345, stream, &block));
    MUST(tol_pool_free(pool, block, stream));
    MUST(tol_batch_create(context, NULL, &batch));
    MUST(tol_batch_add(batch, fill, shape, TOL_ARGUMENTS(tol_buffer_address(buffer), 1u, 1ull)));
    MUST(tol_batch_launch(batch, stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_transfer_write(transfer, tol_place_of_buffer(buffer), 0, bytes, 77));
    MUST(tol_vram_context_create(context, 0, &vram));
    MUST(tol_vram_allocate(vram, 555, &memory));
    MUST(tol_vram_free(vram, memory));
}

Test(nvtx, each_operation_is_a_range) {
    static const struct {
        const char *name;
        uint64_t bytes;
        size_t count;
    } expected[] = {
        {"tol_module_load", ANY, 1},
        {"tol_buffer_create", 0, 2},
        {"tol_buffer_write_at", BYTES, 1},
        {"tol_buffer_read_at", BYTES, 1},
        {"tol_launch", 0, 1},
        {"tol_copy_to_device", 100, 1},
        {"tol_stream_synchronize", 0, 2},
        {"tol_pool_allocate", 12345, 1},
        {"tol_pool_free", 0, 1},
        {"tol_batch_launch", 0, 1},
        {"tol_transfer_write", 77, 1},
        {"tol_vram_allocate", 555, 1},
        {"tol_vram_free", 0, 1},
        {"tol_context_create", 0, 1},
    };
    size_t count = 0, open = 0;
    setenv(TOL_NVTX_PATH, listener(), 1);
    live();
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cr_assert_eq(count_of(expected[i].name, expected[i].bytes), expected[i].count,
                     "%s of %llu bytes: %zu times, not %zu", expected[i].name,
                     (unsigned long long)expected[i].bytes,
                     count_of(expected[i].name, expected[i].bytes), expected[i].count);
    }
    const struct nvtx_listener_range *ranges = heard(&count, &open);
    cr_assert(count > 0 && open == 0, "%zu ranges are open", open);
    for (size_t i = 0; i < count; i++) {
        cr_assert_str_eq(ranges[i].domain, "tollens");
        cr_assert(ranges[i].has_ended, "%s", ranges[i].name);
    }
}

/* A range inside of another begins and ends in it: the transfer of a VRAM context. */
Test(nvtx, ranges_nest) {
    size_t count = 0, open = 0;
    setenv(TOL_NVTX_PATH, listener(), 1);
    live();
    const struct nvtx_listener_range *ranges = heard(&count, &open);
    for (size_t i = 0; i < count; i++) {
        cr_assert(ranges[i].depth <= (i > 0 ? ranges[i - 1].depth + 1 : 0), "%s at depth %zu",
                  ranges[i].name, ranges[i].depth);
    }
}

static void must_be_silent(void) {
    size_t count = 1, open = 1;
    live();
    (void)heard(&count, &open);
    cr_assert(count == 0 && open == 0, "%zu ranges", count);
}

Test(nvtx, nobody_is_told_where_no_tool_is_named) {
    unsetenv(TOL_NVTX_PATH);
    must_be_silent();
}

Test(nvtx, a_tool_that_declines_is_not_told) {
    setenv(TOL_NVTX_PATH, listener(), 1);
    setenv("NVTX_LISTENER", "decline", 1);
    must_be_silent();
}

Test(nvtx, a_tool_that_lacks_a_function_is_not_told) {
    setenv(TOL_NVTX_PATH, listener(), 1);
    setenv("NVTX_LISTENER", "incomplete", 1);
    must_be_silent();
}

Test(nvtx, a_library_that_is_no_tool_changes_nothing) {
    setenv(TOL_NVTX_PATH, "/nowhere/libtool.so", 1);
    must_be_silent();
}

Test(nvtx, a_library_without_the_entry_changes_nothing) {
    setenv(TOL_NVTX_PATH, "libm.so.6", 1);
    must_be_silent();
}
