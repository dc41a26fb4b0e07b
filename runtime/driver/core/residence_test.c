/*
 * Contexts that allow kernels the device's own memory only.
 */
#include "test/test_device.h"

#include <dlfcn.h>
#include <stdlib.h>

TestSuite(residence, .fini = test_end);

enum { BYTES = 4096, LARGE_BYTES = 64 << 20 };

/* What a driver says of all memory, or of one address: that it is managed, or the host's. */
static enum { AS_IT_IS, MANAGED, THE_HOSTS } claim;
static CUdeviceptr claimed; /* 0: all */

static void claim_it(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuPointerGetAttribute || claim == AS_IT_IS) return;
    if (claimed != 0 && *(const CUdeviceptr *)call->arguments[2] != claimed) return;
    unsigned *answer = *(unsigned *const *)call->arguments[0];
    const CUpointer_attribute asked = *(const CUpointer_attribute *)call->arguments[1];
    if (claim == MANAGED && asked == CU_POINTER_ATTRIBUTE_IS_MANAGED) *answer = 1;
    if (claim == THE_HOSTS && asked == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        *answer = CU_MEMORYTYPE_HOST;
    }
}

/* The context of the test's device; test_context gives the same one after this. */
static struct tol_context *device_only(void) {
    const struct tol_context_options options = {.device_memory_only = true};
    struct tol_context *context = NULL;
    MUST(tol_context_create_with(test_driver(), 0, &options, &context));
    return context;
}

Test(residence, the_option_is_shared_by_all_references) {
    const struct tol_context_options options = {.device_memory_only = true};
    struct tol_context *one = NULL, *other = NULL;
    MUST(tol_context_create_with(test_driver(), 0, NULL, &one));
    cr_assert(!tol_context_is_device_memory_only(one));
    MUST_FAIL(tol_context_create_with(test_driver(), 0, &options, &other), TOL_INVALID_ARGUMENT,
              "exists already without device_memory_only");
    cr_assert(other == NULL);
    tol_context_destroy(one);
    one = device_only();
    cr_assert(tol_context_is_device_memory_only(one));
    MUST(tol_context_create(test_driver(), 0, &other));
    cr_assert(other == one && tol_context_is_device_memory_only(other));
    tol_context_destroy(one);
    tol_context_destroy(other);
}

Test(residence, what_is_on_the_device_works_as_ever) {
    uint32_t words[BYTES / 4], back[BYTES / 4];
    tol_auto_context struct tol_context *context = device_only();
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    tol_auto_transfer struct tol_transfer *transfer = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    struct tol_kernel *fill = test_kernel("fill");
    for (uint32_t i = 0; i < BYTES / 4; i++) words[i] = i;
    MUST(tol_buffer_create(context, BYTES, 1, &buffer));
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_transfer_write(transfer, tol_place_of_buffer(buffer), 0, words, BYTES));
    MUST(tol_transfer_read(transfer, tol_place_of_buffer(buffer), 0, back, BYTES));
    cr_assert(memcmp(words, back, BYTES) == 0);
    MUST(tol_stream_create(context, NULL, &stream));
    MUST(tol_launch(stream, fill, tol_launch_linear(BYTES / 4, 256),
                    TOL_ARGUMENTS(tol_buffer_address(buffer), 7u, (uint64_t)(BYTES / 4))));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(buffer, back, BYTES));
    cr_assert(back[0] == 7 && back[BYTES / 4 - 1] == 7);
}

Test(residence, pinned_blocks_are_refused) {
    tol_auto_context struct tol_context *context = device_only();
    struct tol_pinned *pinned = NULL;
    MUST_FAIL(tol_pinned_create(context, BYTES, &pinned), TOL_NOT_RESIDENT, "device_memory_only");
    cr_assert(pinned == NULL);
}

/* A launch of each kind with the address, of which all must say the same. */
static void must_refuse_launches(struct tol_context *context, CUdeviceptr address,
                                 const char *what) {
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_batch struct tol_batch *batch = NULL;
    struct tol_kernel *fill = test_kernel("fill");
    const struct tol_launch_shape shape = tol_launch_linear(1, 32);
    MUST(tol_stream_create(context, NULL, &stream));
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 7u, 1ull)), TOL_NOT_RESIDENT,
              what);
    cr_assert(strstr(tol_message(), "argument 0 of the kernel \"fill\"") != NULL, "%s",
              tol_message());
    MUST_FAIL(tol_launch_programmatic(stream, fill, shape, TOL_ARGUMENTS(address, 7u, 1ull)),
              TOL_NOT_RESIDENT, what);
    MUST(tol_batch_create(context, NULL, &batch));
    MUST_FAIL(tol_batch_add(batch, fill, shape, TOL_ARGUMENTS(address, 7u, 1ull)), TOL_NOT_RESIDENT,
              what);
}

static void must_refuse_copies(struct tol_context *context, CUdeviceptr address, const char *what) {
    char bytes[16] = {0};
    tol_auto_transfer struct tol_transfer *transfer = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    const struct tol_place place = {address, sizeof bytes};
    const struct tol_transfer_item item = {place, 0, bytes, sizeof bytes};
    const struct tol_transfer_rows rows = {4, 2, 0, 8, 4};
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_buffer_create(context, sizeof bytes, 1, &buffer));
    const struct tol_place good = tol_place_of_buffer(buffer);
    MUST_FAIL(tol_transfer_write(transfer, place, 0, bytes, 16), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_read(transfer, place, 0, bytes, 16), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_write_batch(transfer, 1, &item), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_read_batch(transfer, 1, &item), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_write_rows(transfer, place, bytes, &rows), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_copy(transfer, place, 0, good, 0, 8), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_copy(transfer, good, 0, place, 0, 8), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_peer(transfer, place, 0, transfer, good, 0, 8), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_transfer_peer(transfer, good, 0, transfer, place, 0, 8), TOL_NOT_RESIDENT, what);
}

Test(residence, host_memory_is_refused_in_launches_and_copies) {
    tol_auto_context struct tol_context *context = device_only();
    const struct tol_driver_table *cu = tol_context_functions(context);
    void *data = NULL;
    MUST(tol_context_bind(context));
    cr_assert_eq(cu->cuMemHostAlloc(&data, BYTES, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    must_refuse_launches(context, (CUdeviceptr)(uintptr_t)data, "is host memory");
    must_refuse_copies(context, (CUdeviceptr)(uintptr_t)data, "is host memory");
    cr_assert_eq(cu->cuMemFreeHost(data), CUDA_SUCCESS);
}

Test(residence, between_devices_both_places_are_looked_at) {
    const struct tol_context_options options = {.device_memory_only = true};
    tol_auto_context struct tol_context *other = NULL;
    tol_auto_transfer struct tol_transfer *here = NULL, *there = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    void *data = NULL;
    int devices = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    tol_auto_context struct tol_context *context = device_only();
    MUST(tol_device_count(test_driver(), &devices));
    if (devices < 2) cr_skip_test("one device");
    MUST(tol_context_create_with(test_driver(), 1, &options, &other));
    MUST(tol_transfer_create(context, NULL, &here));
    MUST(tol_transfer_create(other, NULL, &there));
    MUST(tol_buffer_create(context, BYTES, 1, &buffer));
    MUST(tol_context_bind(other));
    cr_assert_eq(tol_context_functions(other)->cuMemHostAlloc(&data, BYTES, 0), CUDA_SUCCESS);
    const struct tol_place good = tol_place_of_buffer(buffer);
    const struct tol_place bad = {(CUdeviceptr)(uintptr_t)data, BYTES};
    MUST_FAIL(tol_transfer_peer(there, bad, 0, here, good, 0, 8), TOL_NOT_RESIDENT, "device 1");
    MUST_FAIL(tol_transfer_peer(here, good, 0, there, bad, 0, 8), TOL_NOT_RESIDENT, "device 1");
    cr_assert_eq(tol_context_functions(other)->cuMemFreeHost(data), CUDA_SUCCESS);
}

/* On the soft device. A GPU is not made to have managed memory, which changes how its driver treats
 * all memory of the process: there an interposer says that some is. */
Test(residence, managed_memory_is_refused_in_launches_and_copies) {
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.after = claim_it}));
    tol_auto_context struct tol_context *context = device_only();
    void *library = dlopen(tol_driver_path(test_driver()), RTLD_NOW);
    CUresult (*allocate)(CUdeviceptr *, size_t, unsigned) = NULL;
    CUdeviceptr address = 0;
    void *found = library != NULL ? dlsym(library, "cuMemAllocManaged") : NULL;
    cr_assert(found != NULL);
    memcpy(&allocate, &found, sizeof found);
    MUST(tol_context_bind(context));
    if (!test_on_gpu()) {
        cr_assert_eq(allocate(&address, BYTES, 1), CUDA_SUCCESS);
    } else {
        cr_assert_eq(tol_context_functions(context)->cuMemAlloc_v2(&address, BYTES), CUDA_SUCCESS);
        claim = MANAGED;
        claimed = address;
    }
    must_refuse_launches(context, address, "is managed memory");
    must_refuse_copies(context, address, "is managed memory");
    cr_assert_eq(tol_context_functions(context)->cuMemFree_v2(address), CUDA_SUCCESS);
    tol_interpose_remove(test_driver());
}

/* A place is a promise that there is memory; an argument may be any number. */
Test(residence, an_address_that_the_driver_does_not_know_is_no_place_but_an_argument) {
    tol_auto_context struct tol_context *context = device_only();
    tol_auto_stream struct tol_stream *stream = NULL;
    int plain = 0;
    must_refuse_copies(context, (CUdeviceptr)(uintptr_t)&plain, "is not known to the driver");
    MUST(tol_stream_create(context, NULL, &stream));
    MUST(tol_launch(stream, test_kernel("fill"), tol_launch_linear(1, 32),
                    TOL_ARGUMENTS((uint64_t)12345, 7u, 0ull)));
    MUST(tol_stream_synchronize(stream));
}

static void must_refuse_new_memory(struct tol_context *context, const char *what) {
    static const enum tol_pool_source sources[] = {TOL_POOL_MAPPED, TOL_POOL_DRIVER,
                                                   TOL_POOL_CHUNKED};
    static const size_t sizes[] = {256, 100000, LARGE_BYTES};
    tol_auto_vram_context struct tol_vram_context *vram = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_vram memory = {0};
    struct tol_vram_info info;
    size_t before = 0;
    tol_auto_module struct tol_module *module = NULL;
    static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                              ".visible .global .u32 total;\n";
    MUST(tol_module_load(context, ptx, sizeof ptx - 1, NULL, &module));
    MUST_FAIL(tol_module_global(module, "total", &buffer), TOL_NOT_RESIDENT, what);
    MUST_FAIL(tol_buffer_create(context, BYTES, 1, &buffer), TOL_NOT_RESIDENT, what);
    MUST(tol_vram_context_create(context, 0, &vram));
    MUST(tol_context_memory(context, &before, NULL));
    MUST_FAIL(tol_vram_allocate(vram, LARGE_BYTES, &memory), TOL_NOT_RESIDENT, what);
    MUST(tol_vram_info(vram, &info));
    cr_assert(info.allocations == 0 && info.used_bytes == 0);
    /* On a GPU other processes take memory meanwhile. */
    cr_assert(test_on_gpu() || info.free_bytes > before - LARGE_BYTES, "it was not freed");
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        tol_auto_pool struct tol_pool *pool = NULL;
        struct tol_pool_options options;
        struct tol_pool_stats stats;
        struct tol_block block, blocks[2];
        tol_pool_default(tol_context_device(context), &options);
        options.source = sources[i];
        MUST(tol_pool_create(context, &options, &pool));
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            MUST_FAIL(tol_pool_allocate(pool, sizes[s], NULL, &block), TOL_NOT_RESIDENT, what);
        }
        MUST_FAIL(tol_pool_allocate_batch(pool, 2, sizes, NULL, blocks), TOL_NOT_RESIDENT, what);
        MUST(tol_pool_stats(pool, &stats));
        cr_assert_eq(stats.requested, 0, "source %zu", i);
    }
}

/* What this runtime allocates is the device's; a driver that says otherwise is not believed. */
Test(residence, new_memory_is_asked_for) {
    tol_auto_context struct tol_context *reference = NULL;
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.after = claim_it}));
    reference = device_only();
    size_t before = 0, after = 0;
    MUST(tol_context_memory(reference, &before, NULL));
    claim = MANAGED;
    must_refuse_new_memory(reference, "is managed memory");
    claim = THE_HOSTS;
    must_refuse_new_memory(reference, "is host memory");
    claim = AS_IT_IS;
    MUST(tol_context_memory(reference, &after, NULL));
    /* Other processes use a GPU meanwhile. */
    if (!test_on_gpu()) cr_assert_eq(before, after, "what was refused was not freed");
    tol_interpose_remove(test_driver());
}

/* Without the option there is no query. */
Test(residence, other_contexts_take_any) {
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    void *data = NULL;
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.after = claim_it}));
    claim = MANAGED;
    MUST(tol_pinned_create(test_context(), BYTES, &pinned));
    MUST(tol_pinned_access(pinned, &data));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &buffer));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_launch(stream, test_kernel("fill"), tol_launch_linear(1, 32),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)data, 7u, 1ull)));
    MUST(tol_stream_synchronize(stream));
    cr_assert_eq(*(uint32_t *)data, 7);
    claim = AS_IT_IS;
}
