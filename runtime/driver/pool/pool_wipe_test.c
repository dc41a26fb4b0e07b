/*
 * Wiping: every byte of freed blocks is zero, whatever their sizes, the order in which they are
 * freed and the streams; and without the option they keep what was in them.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 48, SECRET = 0xa5 };
#define MIB ((size_t)1 << 20)

static struct tol_pool *pool;
static struct tol_stream *streams[2];
static CUdeviceptr at[BLOCKS];
static size_t sizes[BLOCKS];

static const struct tol_driver_table *driver_now(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

static void begin(bool wipe) {
    struct tol_pool_options options;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.wipe = wipe;
    const tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    for (int i = 0; i < 2; i++) MUST(tol_stream_create(test_context(), NULL, &streams[i]));
}

static void end(void) {
    tol_pool_destroy(pool);
    for (int i = 0; i < 2; i++) tol_stream_destroy(streams[i]);
    test_end();
}

TestSuite(pool_wipe, .fini = end, .timeout = 120);

/* Ends of granules, pages and classes, and what lies between them. */
static size_t size_of(int i) {
    static const size_t ends[] = {1,     255,     256, 257,         4096,
                                  65537, MIB - 1, MIB, 2 * MIB + 1, 17 * MIB};
    return i % 3 == 0 ? ends[i / 3 % 10] : 1 + (size_t)(i * 7919) % (i % 3 == 1 ? 3000 : 300000);
}

/* Fills every byte of all blocks, and frees them: every second one first, on two streams. */
static void fill_and_free(struct tol_block *blocks) {
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = size_of(i);
        MUST(tol_pool_allocate(pool, sizes[i], streams[i % 2], &blocks[i]));
        at[i] = tol_pool_address(pool, blocks[i]);
        cr_assert_eq(driver_now()->cuMemsetD8Async(at[i], SECRET, sizes[i],
                                                   tol_stream_handle(streams[i % 2])),
                     CUDA_SUCCESS);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = turn; i < BLOCKS; i += 2) {
            MUST(tol_pool_free(pool, blocks[i], streams[i % 2]));
        }
    }
}

/* Of the bytes of a new block those that were in blocks before; how many of them are not zero. */
static size_t read_again(CUdeviceptr from, size_t bytes, size_t *left) {
    size_t seen = 0;
    unsigned char *read = malloc(bytes);
    cr_assert(read != NULL);
    cr_assert_eq(driver_now()->cuMemcpyDtoH_v2(read, from, bytes), CUDA_SUCCESS);
    for (int i = 0; i < BLOCKS; i++) {
        const CUdeviceptr begin_at = at[i] > from ? at[i] : from;
        const CUdeviceptr end_at =
            at[i] + sizes[i] < from + bytes ? at[i] + sizes[i] : from + bytes;
        for (CUdeviceptr byte = begin_at; byte < end_at; byte++) {
            seen++;
            *left += read[byte - from] != 0;
        }
    }
    free(read);
    return seen;
}

/* Allocates the same sizes again and reads all of them. Returns the bytes that were in blocks
 * before. */
static size_t take_again(struct tol_block *blocks, size_t *left) {
    size_t seen = 0;
    *left = 0;
    for (int i = 0; i < BLOCKS; i++) {
        MUST(tol_pool_allocate(pool, sizes[i], streams[i % 2], &blocks[i]));
        MUST(tol_stream_synchronize(streams[i % 2]));
        seen += read_again(tol_pool_address(pool, blocks[i]), sizes[i], left);
    }
    return seen;
}

static size_t all_bytes(void) {
    size_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++) bytes += sizes[i];
    return bytes;
}

static void must_be(bool wipe) {
    static struct tol_block blocks[BLOCKS];
    size_t left = 0;
    begin(wipe);
    fill_and_free(blocks);
    const size_t seen = take_again(blocks, &left);
    cr_assert_gt(seen, all_bytes() / 2, "only %zu of %zu bytes were used again", seen, all_bytes());
    if (wipe) {
        cr_assert_eq(left, 0, "%zu of %zu bytes were not wiped", left, seen);
    } else {
        cr_assert_eq(left, seen, "%zu of %zu bytes are left: the test would not notice", left,
                     seen);
    }
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
}

Test(pool_wipe, every_byte_of_a_freed_block_is_zero) {
    must_be(true);
}

/* The control. */
Test(pool_wipe, without_it_bytes_stay) {
    must_be(false);
}
