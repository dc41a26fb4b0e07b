/*
 * Mistakes of a program with a pool's memory: each is an error, or is reported with the tag and the
 * places in the program that allocated and freed it.
 */
#include "test/test_device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *new_pool(unsigned guard_one_in) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.guard_one_in = guard_one_in;
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return pool;
}

/* Separate functions, so that call sites differ. */
__attribute__((noinline)) static struct tol_block take(struct tol_pool *pool, size_t bytes,
                                                       const char *tag) {
    struct tol_block block = {0};
    unsigned number = 0;
    MUST(tol_pool_tag(pool, tag, 0, &number));
    MUST(tol_pool_allocate_tagged(pool, bytes, NULL, number, &block));
    return block;
}
__attribute__((noinline)) static void give(struct tol_pool *pool, struct tol_block block) {
    MUST(tol_pool_free(pool, block, NULL));
}

/* With room for what a sanitizer adds. */
static bool is_site_in(const void *site, uintptr_t begin) {
    uintptr_t at = (uintptr_t)site;
    return at > begin && at < begin + 20000;
}

static bool says(const char *text) {
    return strstr(tol_message(), text) != NULL;
}

/* How this program is called in a message: "test-runtime+0x1234". */
static const char *own_name(void) {
    static char text[100];
    Dl_info info;
    cr_assert(dladdr((void *)(uintptr_t)new_pool, &info) != 0);
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(text, sizeof text, "%s+0x", slash != NULL ? slash + 1 : info.dli_fname);
    return text;
}

Test(pool_ask, a_double_free_names_the_tag_and_both_call_sites) {
    struct tol_pool *pool = new_pool(0);
    static const size_t sizes[] = {300, 5 * MIB, 40 * MIB};
    for (int i = 0; i < 3; i++) {
        struct tol_block block = take(pool, sizes[i], "weights");
        give(pool, block);
        struct tol_block other = take(pool, sizes[i], "another");
        MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "was freed before");
        cr_assert(says("weights") && !says("another"), "%s", tol_message());
        const char *first = strstr(tol_message(), own_name());
        cr_assert(first != NULL && strstr(first + 1, own_name()) != NULL, "%s", tol_message());
        give(pool, other);
    }
    tol_pool_destroy(pool);
    test_end();
}

static void *free_many(void *user) {
    struct tol_pool *pool = user;
    tol_context_bind(test_context());
    for (int i = 0; i < 300; i++) give(pool, take(pool, 1000, "many"));
    return NULL;
}

/* Also where another thread freed it, and, without the names, long after. */
Test(pool_ask, a_double_free_is_known_in_other_threads_and_long_after) {
    struct tol_pool *pool = new_pool(0);
    struct tol_block block = take(pool, 1000, "weights");
    pthread_t thread;
    give(pool, block);
    cr_assert_eq(pthread_create(&thread, NULL, free_many, pool), 0);
    pthread_join(thread, NULL);
    MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "under the tag weights");
    free_many(pool);
    MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "long ago");
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_ask, a_foreign_pointer_is_told_with_the_nearest_block) {
    struct tol_pool *pool = new_pool(0), *other = new_pool(0);
    struct tol_pool_found found;
    CUdeviceptr foreign = tol_pool_address(other, take(other, 4096, "others"));
    MUST_FAIL(tol_pool_check(pool, foreign, 1), TOL_OUT_OF_RANGE, "no block is live");
    MUST(tol_pool_find(pool, foreign, &found));
    cr_assert(found.whose == TOL_POOL_WHOSE_NONE && found.block.address == 0);
    struct tol_block blocks[2] = {take(pool, 1000, "first"), take(pool, 70000, "second")};
    MUST_FAIL(tol_pool_check(pool, foreign, 1), TOL_OUT_OF_RANGE, "is in no block; the nearest");
    cr_assert(says("first") || says("second"), "%s", tol_message());
    CUdeviceptr first = tol_pool_address(pool, blocks[0]);
    MUST(tol_pool_find(pool, first + 10, &found));
    cr_assert(found.whose == TOL_POOL_WHOSE_LIVE && found.offset == 10 && found.freed_site == NULL);
    cr_assert(found.block.block.name == blocks[0].name && found.block.bytes == 1000);
    cr_assert_str_eq(found.block.tag, "first");
    cr_assert(is_site_in(found.block.site, (uintptr_t)take));
    MUST_FAIL(tol_pool_find(pool, 1, NULL), TOL_INVALID_ARGUMENT, "NULL");
    tol_pool_destroy(pool);
    tol_pool_destroy(other);
    test_end();
}

/* A block's rounding is not its own: one byte beyond the requested size is too much. */
Test(pool_ask, an_overrun_by_one_byte_is_told) {
    struct tol_pool *pool = new_pool(0);
    struct tol_pool_found found;
    CUdeviceptr at = tol_pool_address(pool, take(pool, 1000, "activations"));
    MUST(tol_pool_check(pool, at, 1000));
    MUST(tol_pool_check(pool, at + 999, 1));
    MUST_FAIL(tol_pool_check(pool, at, 1001), TOL_OUT_OF_RANGE, "1001 bytes");
    cr_assert(says("activations") && says(own_name()), "%s", tol_message());
    MUST_FAIL(tol_pool_check(pool, at + 1000, 1), TOL_OUT_OF_RANGE, "ends 0 bytes before it");
    MUST_FAIL(tol_pool_check(pool, at - 3, 1), TOL_OUT_OF_RANGE, "begins 3 bytes after it");
    MUST_FAIL(tol_pool_check(pool, at, 0), TOL_OUT_OF_RANGE, "0 bytes");
    MUST_FAIL(tol_pool_check(pool, at, SIZE_MAX), TOL_OUT_OF_RANGE, "activations");
    MUST(tol_pool_find(pool, at + 1000, &found));
    cr_assert(found.whose == TOL_POOL_WHOSE_NEAR && found.offset == 1000);
    tol_pool_destroy(pool);
    test_end();
}

/* The address in a message of the soft device's; elsewhere that which is known. */
static CUdeviceptr fault_address(CUdeviceptr known) {
    const char *text = strstr(tol_message(), " at 0x");
    if (text == NULL) return known;
    return strtoull(text + 4, NULL, 16);
}

/* Runs into memory with a fill, and gives where it faulted. */
static CUdeviceptr fault(CUdeviceptr at, size_t bytes, CUdeviceptr known) {
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    CUresult result = tol_context_functions(test_context())
                          ->cuMemsetD8Async(at, 1, bytes, tol_stream_handle(stream));
    cr_assert(result != CUDA_SUCCESS || tol_stream_synchronize(stream) != TOL_OK,
              "it went unnoticed");
    CUdeviceptr address = result == CUDA_SUCCESS ? fault_address(known) : known;
    tol_stream_destroy(stream);
    return address;
}

Test(pool_ask, a_fault_after_a_guarded_block_is_told) {
    struct tol_pool *pool = new_pool(1);
    CUdeviceptr at = tol_pool_address(pool, take(pool, 4096, "keys"));
    (void)take(pool, 4096, "values");
    CUdeviceptr address = fault(at, 4097, at + 4096);
    MUST_FAIL(tol_pool_check(pool, address, 1), TOL_OUT_OF_RANGE, "ends 0 bytes before it");
    cr_assert(says("keys") && says(own_name()), "%s", tol_message());
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_ask, a_use_after_free_is_told_by_who_freed_it) {
    struct tol_pool *pool = new_pool(0);
    struct tol_pool_found found;
    struct tol_block block = take(pool, 20 * MIB, "gradients");
    CUdeviceptr at = tol_pool_address(pool, block);
    give(pool, block);
    (void)take(pool, 1000, "others");
    MUST(tol_pool_trim(pool, 0));
    CUdeviceptr address = fault(at + 5 * MIB, 1 * MIB, at + 5 * MIB);
    MUST(tol_pool_find(pool, address, &found));
    cr_assert(found.whose == TOL_POOL_WHOSE_FREED && found.block.block.name == block.name,
              "%#llx: %d", address, (int)found.whose);
    cr_assert_str_eq(found.block.tag, "gradients");
    cr_assert(is_site_in(found.block.site, (uintptr_t)take));
    cr_assert(is_site_in(found.freed_site, (uintptr_t)give) &&
              found.freed_site != found.block.site);
    MUST_FAIL(tol_pool_check(pool, address, 1), TOL_OUT_OF_RANGE, "which was freed from");
    cr_assert(says("gradients"), "%s", tol_message());
    tol_pool_destroy(pool);
    test_end();
}
