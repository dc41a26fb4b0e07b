/*
 * Several devices: blocks move from one to another, and one that is lost leaves the others as they
 * were. The soft device is two; with one GPU these are skipped.
 */
#include "test_device.h"

#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Two of everything; the first of the contexts is test_context's. */
struct pair {
    struct tol_context *contexts[2];
    struct tol_transfer *transfers[2];
    struct tol_pool *pools[2];
};

static struct pair two_devices(size_t limit_bytes, const struct tol_interpose_options *interposed) {
    struct pair pair = {.contexts = {NULL}};
    int count = 0;
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    MUST(tol_device_count(test_driver(), &count));
    if (count < 2) cr_skip_test("one device only");
    if (interposed != NULL) MUST(tol_interpose_install(test_driver(), interposed));
    for (int i = 0; i < 2; i++) {
        struct tol_pool_options options;
        MUST(tol_context_create(test_driver(), i, &pair.contexts[i]));
        MUST(tol_transfer_create(pair.contexts[i], NULL, &pair.transfers[i]));
        tol_pool_tight(tol_context_device(pair.contexts[i]), &options);
        options.limit_bytes = i == 1 ? limit_bytes : 0;
        MUST(tol_pool_create(pair.contexts[i], &options, &pair.pools[i]));
    }
    return pair;
}

static void end_pair(struct pair *pair) {
    for (int i = 0; i < 2; i++) {
        tol_pool_destroy(pair->pools[i]);
        tol_transfer_destroy(pair->transfers[i]);
        tol_context_destroy(pair->contexts[i]);
    }
    test_end();
}

static uint64_t blocks_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats.blocks;
}

/* Bytes of which none is another's neighbour by chance. */
static unsigned char *new_bytes(size_t bytes) {
    unsigned char *made = malloc(bytes);
    cr_assert(made != NULL);
    for (size_t i = 0; i < bytes; i++) made[i] = (unsigned char)(i * 2654435761u >> 13);
    return made;
}

static void check_bytes(const struct pair *pair, int device, struct tol_block block,
                        const unsigned char *wanted, size_t bytes) {
    unsigned char *back = calloc(1, bytes);
    cr_assert(back != NULL && tol_pool_bytes(pair->pools[device], block) == bytes);
    MUST(tol_transfer_read(pair->transfers[device], tol_place_of_block(pair->pools[device], block),
                           0, back, bytes));
    cr_assert(memcmp(back, wanted, bytes) == 0, "%zu bytes on device %d", bytes, device);
    free(back);
}

/* Where the driver says that an address is. The runtime itself never asks. */
static const CUpointer_attribute DEVICE_ORDINAL = (CUpointer_attribute)9;

static int device_of(const struct pair *pair, int device, struct tol_block block) {
    int ordinal = -1;
    const CUdeviceptr address = tol_pool_address(pair->pools[device], block);
    MUST(tol_context_bind(pair->contexts[device]));
    cr_assert(tol_context_functions(pair->contexts[device])
                  ->cuPointerGetAttribute(&ordinal, DEVICE_ORDINAL, address) == CUDA_SUCCESS);
    return ordinal;
}

static tol_status move(const struct pair *pair, int from, int to, struct tol_block *block) {
    return tol_transfer_move(pair->transfers[to], pair->pools[to], 0, pair->transfers[from],
                             pair->pools[from], block);
}

Test(devices, a_block_moves_there_and_back) {
    static const size_t sizes[] = {1, 333 * KIB, 20 * MIB}; /* the last has memory of its own */
    struct pair pair = two_devices(0, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes = new_bytes(sizes[i]);
        struct tol_block block = {0};
        MUST(tol_pool_allocate(pair.pools[0], sizes[i], NULL, &block));
        MUST(tol_transfer_write(pair.transfers[0], tol_place_of_block(pair.pools[0], block), 0,
                                bytes, sizes[i]));
        const struct tol_block first = block;
        MUST(move(&pair, 0, 1, &block));
        cr_assert(device_of(&pair, 1, block) == 1);
        check_bytes(&pair, 1, block, bytes, sizes[i]);
        cr_assert(blocks_of(pair.pools[0]) == 0 && blocks_of(pair.pools[1]) == 1);
        cr_assert(tol_pool_bytes(pair.pools[0], first) == 0, "the old name is of the past");
        MUST(move(&pair, 1, 0, &block));
        cr_assert(device_of(&pair, 0, block) == 0);
        check_bytes(&pair, 0, block, bytes, sizes[i]);
        MUST(tol_pool_free(pair.pools[0], block, NULL));
        cr_assert(blocks_of(pair.pools[0]) == 0 && blocks_of(pair.pools[1]) == 0);
        free(bytes);
    }
    end_pair(&pair);
}

Test(devices, a_move_that_makes_no_sense_is_refused) {
    struct pair pair = two_devices(4 * MIB, NULL);
    unsigned char *bytes = new_bytes(8 * MIB);
    struct tol_block block = {0}, none = {0};
    MUST(tol_pool_allocate(pair.pools[0], 8 * MIB, NULL, &block));
    MUST(tol_transfer_write(pair.transfers[0], tol_place_of_block(pair.pools[0], block), 0, bytes,
                            8 * MIB));
    const uint64_t name = block.name;
    MUST_FAIL(move(&pair, 0, 1, &block), TOL_OUT_OF_DEVICE_MEMORY, "limit");
    MUST_FAIL(move(&pair, 0, 1, &none), TOL_INVALID_ARGUMENT, "not live");
    MUST_FAIL(tol_transfer_move(pair.transfers[0], pair.pools[1], 0, pair.transfers[0],
                                pair.pools[0], &block),
              TOL_WRONG_CONTEXT, "context");
    MUST_FAIL(tol_transfer_move(pair.transfers[1], pair.pools[1], 0, NULL, pair.pools[0], &block),
              TOL_INVALID_ARGUMENT, "NULL");
    cr_assert(block.name == name && blocks_of(pair.pools[1]) == 0);
    check_bytes(&pair, 0, block, bytes, 8 * MIB);
    free(bytes);
    end_pair(&pair);
}

/* Which call of a move fails: counted from when it is armed. */
static uint64_t fails_in;

static void fail_when_due(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (fails_in == 0 || --fails_in > 0) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

/* Whichever driver call of it fails, the block is where it was, whole, or where it was to go. */
Test(devices, the_nth_driver_call_failing_loses_no_block, .timeout = 120) {
    enum { BYTES = 20 * MIB };
    const struct tol_interpose_options options = {.before = fail_when_due};
    unsigned char *bytes = new_bytes(BYTES);
    uint64_t failures = 0;
    struct pair pair = {.contexts = {NULL}};
    for (uint64_t n = 1;; n++) {
        if (pair.contexts[0] == NULL) pair = two_devices(0, &options);
        struct tol_block block = {0};
        MUST(tol_pool_allocate(pair.pools[0], BYTES, NULL, &block));
        MUST(tol_transfer_write(pair.transfers[0], tol_place_of_block(pair.pools[0], block), 0,
                                bytes, BYTES));
        fails_in = n;
        const tol_status status = move(&pair, 0, 1, &block);
        const bool is_past = fails_in > 0;
        fails_in = 0;
        const int where = status == TOL_OK ? 1 : 0;
        check_bytes(&pair, where, block, bytes, BYTES);
        cr_assert(blocks_of(pair.pools[where]) == 1 && blocks_of(pair.pools[1 - where]) == 0,
                  "call %llu: %s", (unsigned long long)n, tol_message());
        failures += status != TOL_OK;
        MUST(tol_pool_free(pair.pools[where], block, NULL));
        /* A GPU takes a second for two contexts; a call that was refused harms neither. */
        if (is_past || !test_on_gpu() || n % 16 == 0) {
            tol_interpose_remove(test_driver());
            end_pair(&pair);
            pair = (struct pair){.contexts = {NULL}};
        }
        if (is_past) break;
    }
    cr_assert(failures > 3, "%llu calls of a move can fail", (unsigned long long)failures);
    free(bytes);
}

/* A kernel's fault takes its device's context along. Memory on the lost device is lost, and every
 * call reports it. On the soft device the other context works on; NVIDIA's driver ends all contexts
 * of the process (580.159 on two H200s), and then each of them must say so. */
Test(devices, one_that_is_lost_leaves_the_others, .timeout = 60) {
    struct pair pair = two_devices(0, NULL);
    struct tol_stream *streams[2];
    struct tol_module *modules[2];
    struct tol_kernel *fills[2];
    struct tol_block blocks[2];
    struct tol_health health;
    enum { BYTES = 1000 };
    unsigned char *bytes = new_bytes(BYTES);
    const CUdeviceptr nowhere = 0;
    unsigned long long count = 1;
    char *ptx = test_ptx("kernels/fill.ptx");
    for (int i = 0; i < 2; i++) {
        MUST(tol_stream_create(pair.contexts[i], NULL, &streams[i]));
        MUST(tol_module_load(pair.contexts[i], ptx, strlen(ptx), NULL, &modules[i]));
        MUST(tol_module_kernel(modules[i], "fill", &fills[i]));
        MUST(tol_pool_allocate(pair.pools[i], BYTES, NULL, &blocks[i]));
        MUST(tol_transfer_write(pair.transfers[i], tol_place_of_block(pair.pools[i], blocks[i]), 0,
                                bytes, BYTES));
    }
    MUST(tol_launch(streams[0], fills[0], tol_launch_linear(1, 1),
                    TOL_ARGUMENTS(nowhere, 1u, count)));
    MUST_FAIL(tol_stream_synchronize(streams[0]), TOL_DRIVER_ERROR, "ILLEGAL_ADDRESS");

    MUST_FAIL(move(&pair, 0, 1, &blocks[0]), TOL_POISONED, "device 0");
    MUST(tol_health_check(pair.contexts[0], NULL, &health));
    cr_assert(health.is_lost && !health.is_healthy);
    MUST(tol_health_check(pair.contexts[1], NULL, &health));
    cr_assert(health.is_lost != health.is_healthy, "%s", health.complaint);
    if (test_on_gpu() && health.is_lost) {
        MUST_FAIL(tol_launch(streams[1], fills[1], tol_launch_linear(1, 1),
                             TOL_ARGUMENTS(nowhere, 1u, count)),
                  TOL_POISONED, "device 1");
        cr_skip_test("the driver has ended all contexts of the process at once");
    }
    cr_assert(health.is_healthy, "%s", health.complaint);
    cr_assert(health.held[TOL_HELD_BLOCK].count == 1, "nothing of the lost one is left here");
    check_bytes(&pair, 1, blocks[1], bytes, BYTES);
    count = BYTES / 4;
    MUST(tol_launch(streams[1], fills[1], tol_launch_linear(count, 64),
                    TOL_ARGUMENTS(tol_pool_address(pair.pools[1], blocks[1]), 0x41414141u, count)));
    MUST(tol_stream_synchronize(streams[1]));
    memset(bytes, 0x41, BYTES);
    check_bytes(&pair, 1, blocks[1], bytes, BYTES);
    for (int i = 0; i < 2; i++) {
        tol_module_destroy(modules[i]);
        tol_stream_destroy(streams[i]);
    }
    free(ptx);
    free(bytes);
    end_pair(&pair);
}
