/*
 * Blocks of a pool as regions of a tool's heaps, as recorded by the listener beside the tests.
 */
#include "test/nvtx_listener.h"
#include "nvtx_abi.h"
#include "test/test_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(TOL_HAS_CUDA_H)
#include <nvtx3/nvToolsExtMem.h>

/* nvtx_abi.h beside the toolkit's headers. */
#define SAME(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #theirs)
SAME(TOL_NVTX_MODULE_MEMORY, NVTX_EXT_MODULEID_MEM);
SAME(TOL_NVTX_MEMORY_COMPATIBLE, NVTX_EXT_COMPATID_MEM);
SAME(TOL_NVTX_HEAP_REGISTER, NVTX3EXT_CBID_nvtxMemHeapRegister);
SAME(TOL_NVTX_HEAP_UNREGISTER, NVTX3EXT_CBID_nvtxMemHeapUnregister);
SAME(TOL_NVTX_REGIONS_REGISTER, NVTX3EXT_CBID_nvtxMemRegionsRegister);
SAME(TOL_NVTX_REGIONS_UNREGISTER, NVTX3EXT_CBID_nvtxMemRegionsUnregister);
SAME(TOL_NVTX_SUB_ALLOCATOR, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
SAME(TOL_NVTX_VIRTUAL_ADDRESS, NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
SAME(TOL_NVTX_BY_POINTER, NVTX_MEM_REGION_REF_TYPE_POINTER);
SAME(sizeof(struct tol_nvtx_segment), sizeof(nvtxExtModuleSegment_t));
SAME(sizeof(struct tol_nvtx_extension), sizeof(nvtxExtModuleInfo_t));
SAME(offsetof(struct tol_nvtx_extension, segments), offsetof(nvtxExtModuleInfo_t, segments));
SAME(sizeof(struct tol_nvtx_range), sizeof(nvtxMemVirtualRangeDesc_t));
SAME(offsetof(struct tol_nvtx_range, address), offsetof(nvtxMemVirtualRangeDesc_t, ptr));
SAME(sizeof(struct tol_nvtx_heap), sizeof(nvtxMemHeapDesc_t));
SAME(offsetof(struct tol_nvtx_heap, usage), offsetof(nvtxMemHeapDesc_t, usage));
SAME(offsetof(struct tol_nvtx_heap, specific), offsetof(nvtxMemHeapDesc_t, typeSpecificDesc));
SAME(offsetof(struct tol_nvtx_heap, message_type), offsetof(nvtxMemHeapDesc_t, messageType));
SAME(offsetof(struct tol_nvtx_heap, message), offsetof(nvtxMemHeapDesc_t, message));
SAME(sizeof(struct tol_nvtx_regions), sizeof(nvtxMemRegionsRegisterBatch_t));
SAME(offsetof(struct tol_nvtx_regions, heap), offsetof(nvtxMemRegionsRegisterBatch_t, heap));
SAME(offsetof(struct tol_nvtx_regions, elements),
     offsetof(nvtxMemRegionsRegisterBatch_t, regionDescElements));
SAME(sizeof(struct tol_nvtx_references), sizeof(nvtxMemRegionsUnregisterBatch_t));
SAME(offsetof(struct tol_nvtx_references, elements),
     offsetof(nvtxMemRegionsUnregisterBatch_t, refElements));
#endif

TestSuite(nvtx_marks, .fini = test_end);

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const char *listener(void) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    cr_assert(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libnvtx-listener.so");
    return path;
}

static void *function(const char *name) {
    void *library = dlopen(listener(), RTLD_NOW);
    cr_assert(library != NULL, "%s", dlerror());
    void *found = dlsym(library, name);
    cr_assert(found != NULL);
    return found;
}

static const struct nvtx_listener_region *regions(size_t *count) {
    const struct nvtx_listener_region *(*all)(size_t *) = NULL;
    void *found = function("nvtx_listener_regions");
    memcpy(&all, &found, sizeof found);
    return all(count);
}

static size_t live_regions(void) {
    size_t count = 0, live = 0;
    const struct nvtx_listener_region *all = regions(&count);
    for (size_t i = 0; i < count; i++) live += all[i].is_live;
    return live;
}

static size_t heaps(size_t *live) {
    size_t count = 0;
    const struct nvtx_listener_heap *(*all)(size_t *) = NULL;
    void *found = function("nvtx_listener_heaps");
    memcpy(&all, &found, sizeof found);
    const struct nvtx_listener_heap *first = all(&count);
    *live = 0;
    for (size_t i = 0; i < count; i++) {
        cr_assert(first[i].is_whole);
        *live += first[i].is_live;
    }
    return count;
}

Test(nvtx_marks, each_block_is_a_region_of_a_heap_while_it_lives) {
    static const size_t sizes[] = {100, 5000, 300 * KIB, 3 * MIB, 60 * MIB};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct tol_block blocks[COUNT];
    struct tol_pool *pool = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    size_t count = 0, live = 0;
    setenv(TOL_NVTX_PATH, listener(), 1);
    setenv("NVTX_LISTENER", "marks", 1);
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_pool_create(test_context(), NULL, &pool));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            MUST(tol_pool_allocate(pool, sizes[i], stream, &blocks[i]));
        }
        const struct nvtx_listener_region *all = regions(&count);
        cr_assert_eq(count, (size_t)(round + 1) * COUNT);
        for (int i = 0; i < COUNT; i++) {
            const struct nvtx_listener_region *region = &all[count - COUNT + (size_t)i];
            cr_assert(region->is_whole && region->is_live, "block %d", i);
            cr_assert_eq(region->begin, tol_pool_address(pool, blocks[i]));
            cr_assert_eq(region->bytes, sizes[i]);
        }
        for (int i = 0; i < COUNT; i++) MUST(tol_pool_free(pool, blocks[i], stream));
        cr_assert_eq(live_regions(), 0);
    }
    cr_assert(heaps(&live) > 0 && live > 0);
    tol_pool_destroy(pool);
    (void)heaps(&live);
    cr_assert_eq(live, 0);
}

static void must_be_silent(void) {
    struct tol_pool *pool = NULL;
    struct tol_block block;
    size_t count = 0, live = 0;
    MUST(tol_pool_create(test_context(), NULL, &pool));
    MUST(tol_pool_allocate(pool, 5000, NULL, &block));
    MUST(tol_pool_free(pool, block, NULL));
    tol_pool_destroy(pool);
    (void)regions(&count);
    cr_assert(count == 0 && heaps(&live) == 0);
}

Test(nvtx_marks, nobody_is_told_where_no_tool_is_named) {
    unsetenv(TOL_NVTX_PATH);
    must_be_silent();
}

Test(nvtx_marks, a_tool_that_wants_ranges_alone_is_not_told) {
    setenv(TOL_NVTX_PATH, listener(), 1);
    must_be_silent();
}

Test(nvtx_marks, a_library_without_the_entry_changes_nothing) {
    setenv(TOL_NVTX_PATH, "libm.so.6", 1);
    must_be_silent();
}
