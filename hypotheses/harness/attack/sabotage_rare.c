/*
 * The hooks of rare faults, and their list.
 */
#include "sabotage_lists.h"

#include "rare_turn.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

#define IS(call, function) ((call)->index == TOL_DRIVER_INDEX_##function)

/* ---- launches -------------------------------------------------------------------------------- */

static void sabotage_rare_skip(struct tol_interpose_call *call) {
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

static void sabotage_rare_drop_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuLaunchKernel) && hyp_rare_now()) sabotage_rare_skip(call);
}

static void sabotage_rare_repeat_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuLaunchKernel) || !hyp_rare_now()) return;
    (void)call->driver->cuLaunchKernel(
        ARGUMENT(call, 0, CUfunction), ARGUMENT(call, 1, unsigned), ARGUMENT(call, 2, unsigned),
        ARGUMENT(call, 3, unsigned), ARGUMENT(call, 4, unsigned), ARGUMENT(call, 5, unsigned),
        ARGUMENT(call, 6, unsigned), ARGUMENT(call, 7, unsigned), ARGUMENT(call, 8, CUstream),
        ARGUMENT(call, 9, void **), ARGUMENT(call, 10, void **));
}

static void sabotage_rare_shorten_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuLaunchKernel)) return;
    unsigned *grid_x = &ARGUMENT(call, 1, unsigned);
    if (*grid_x > 1 && hyp_rare_now()) --*grid_x;
}

static void sabotage_rare_serialise_streams(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuLaunchKernel) && hyp_rare_now()) (void)call->driver->cuCtxSynchronize();
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The bit is changed on the device after the copy, so the source is unchanged. */
static void sabotage_rare_flip_bit(struct tol_interpose_call *call, void *user) {
    uint64_t at = 0;
    unsigned char byte = 0;
    (void)user;
    const bool is_async = IS(call, cuMemcpyHtoDAsync_v2);
    if ((!is_async && !IS(call, cuMemcpyHtoD_v2)) || call->result != CUDA_SUCCESS) return;
    const uint64_t bytes = ARGUMENT(call, 2, size_t),
                   period = (uint64_t)(hyp_sabotage_given() * (1 << 20));
    if (!hyp_rare_byte(bytes, period, &at)) return;
    if (is_async) (void)call->driver->cuStreamSynchronize(ARGUMENT(call, 3, CUstream));
    for (; at < bytes; at += period) {
        const CUdeviceptr address = ARGUMENT(call, 0, CUdeviceptr) + at;
        if (call->driver->cuMemcpyDtoH_v2(&byte, address, 1) != CUDA_SUCCESS) return;
        byte ^= (unsigned char)(1u << hyp_rare_bit());
        (void)call->driver->cuMemcpyHtoD_v2(address, &byte, 1);
    }
}

static void sabotage_rare_stale_copy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if ((IS(call, cuMemcpyDtoH_v2) || IS(call, cuMemcpyDtoHAsync_v2)) && hyp_rare_now())
        sabotage_rare_skip(call);
}

static void sabotage_rare_drop_device_copy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuMemcpyDtoDAsync_v2) && hyp_rare_now()) sabotage_rare_skip(call);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void accept_module(struct tol_interpose_call *call, void *user) {
    static const char decoy[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry decoy()\n{\n    ret;\n}\n";
    (void)user;
    if (!IS(call, cuModuleLoadDataEx) || call->result == CUDA_SUCCESS || !hyp_rare_now()) return;
    call->result = call->driver->cuModuleLoadData(ARGUMENT(call, 0, CUmodule *), decoy);
}

/* Removes the last line that has a letter or a digit. */
static void lose_last_line(char *log) {
    size_t end = strlen(log);
    while (end > 0 && (unsigned char)log[end - 1] <= ' ') end--;
    while (end > 0 && log[end - 1] != '\n') end--;
    log[end] = '\0';
}

static void lose_log_line(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuModuleLoadDataEx) || call->result == CUDA_SUCCESS || !hyp_rare_now()) return;
    const CUjit_option *options = ARGUMENT(call, 3, CUjit_option *);
    void **values = ARGUMENT(call, 4, void **);
    for (unsigned i = 0; i < ARGUMENT(call, 2, unsigned); i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER && values[i] != NULL) lose_last_line(values[i]);
    }
}

static void sabotage_rare_lose_function(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuModuleGetFunction) || !hyp_rare_now()) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_FOUND;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void sabotage_rare_leak_memory(struct tol_interpose_call *call, void *user) {
    (void)user;
    if ((IS(call, cuMemFree_v2) || IS(call, cuMemRelease)) && hyp_rare_now())
        sabotage_rare_skip(call);
}

/* A block of the smallest possible size, instead of the error. */
static void sabotage_rare_swallow_oom(struct tol_interpose_call *call, void *user) {
    enum { SMALL_BYTES = 512, HANDLE_BYTES = 2 << 20 };
    (void)user;
    const bool is_buffer = IS(call, cuMemAlloc_v2);
    if (call->result != CUDA_ERROR_OUT_OF_MEMORY || (!is_buffer && !IS(call, cuMemCreate))) return;
    if (!hyp_rare_now()) return;
    call->result =
        is_buffer ? call->driver->cuMemAlloc_v2(ARGUMENT(call, 0, CUdeviceptr *), SMALL_BYTES)
                  : call->driver->cuMemCreate(ARGUMENT(call, 0, CUmemGenericAllocationHandle *),
                                              HANDLE_BYTES,
                                              ARGUMENT(call, 2, const CUmemAllocationProp *),
                                              ARGUMENT(call, 3, unsigned long long));
}

static void give_blocks_of_their_own(struct tol_pool_options *options) {
    options->guard_one_in = (unsigned)hyp_sabotage_given();
    options->magazine_max_bytes = 0; /* no block comes from a magazine */
}

/* The pool allocates memory in steps of a share of what is in use, and trims less by that share. */
static void hold_more(struct tol_pool_options *options) {
    const double share = hyp_sabotage_given() / 100;
    options->grow_share = options->grow_share + share < 1 ? options->grow_share + share : 1;
    if (options->trim_above > 0) {
        options->trim_above += share;
        options->trim_to += share;
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The kernels without an atomic, by those with one: see "plain" in thread_stress.c. */
enum { PAIRS = 4096 };

static struct {
    pthread_mutex_t lock;
    struct {
        CUfunction mark, plain;
    } pairs[PAIRS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t sabotage_rare_slot_of(CUfunction mark) {
    return (size_t)((uint64_t)(uintptr_t)mark * 0x9e3779b97f4a7c15u >> 52) % PAIRS;
}

static void remember_pair(struct tol_interpose_call *call) {
    char name[64];
    CUfunction plain = NULL;
    const char *mark = ARGUMENT(call, 2, const char *);
    if (call->result != CUDA_SUCCESS || strncmp(mark, "mark", 4) != 0) return;
    snprintf(name, sizeof name, "plain%.50s", mark + 4);
    CUfunction found = *ARGUMENT(call, 0, CUfunction *);
    if (call->driver->cuModuleGetFunction(&plain, ARGUMENT(call, 1, CUmodule), name) !=
        CUDA_SUCCESS) {
        return;
    }
    pthread_mutex_lock(&known.lock);
    known.pairs[sabotage_rare_slot_of(found)].mark = found;
    known.pairs[sabotage_rare_slot_of(found)].plain = plain;
    pthread_mutex_unlock(&known.lock);
}

static void remember_plain(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuModuleGetFunction)) remember_pair(call);
}

static void sabotage_rare_launch_plain(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuLaunchKernel)) return;
    CUfunction *function = &ARGUMENT(call, 0, CUfunction);
    pthread_mutex_lock(&known.lock);
    const size_t slot = sabotage_rare_slot_of(*function);
    CUfunction plain = known.pairs[slot].mark == *function ? known.pairs[slot].plain : NULL;
    pthread_mutex_unlock(&known.lock);
    if (plain != NULL && hyp_rare_now()) *function = plain;
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct hyp_fault faults[] = {
    {"launch_drop_one_in", "one launch in this many is skipped", sabotage_rare_drop_launch, NULL,
     true, NULL},
    {"launch_twice_one_in", "one launch in this many is made twice", sabotage_rare_repeat_launch,
     NULL, true, NULL},
    {"launch_short_one_in", "one grid in this many lacks its last block",
     sabotage_rare_shorten_launch, NULL, true, NULL},
    {"streams_serialise_one_in", "one launch in this many waits until all streams are idle", NULL,
     sabotage_rare_serialise_streams, true, NULL},
    {"copy_flip_one_in_mib", "one bit in this many MiB copied to the device is flipped", NULL,
     sabotage_rare_flip_bit, true, NULL},
    {"copy_stale_one_in", "one copy to the host in this many is skipped", sabotage_rare_stale_copy,
     NULL, true, NULL},
    {"device_copy_drop_one_in", "one copy on the device in this many is skipped",
     sabotage_rare_drop_device_copy, NULL, true, NULL},
    {"module_accept_one_in", "one invalid image in this many loads without an error", NULL,
     accept_module, true, NULL},
    {"jit_line_lost_one_in", "one JIT error log in this many lacks its last line", NULL,
     lose_log_line, true, NULL},
    {"function_lost_one_in", "one kernel in this many is not found", sabotage_rare_lose_function,
     NULL, true, NULL},
    {"alloc_leak_one_in", "one free of device memory in this many is skipped",
     sabotage_rare_leak_memory, NULL, true, NULL},
    {"oom_swallowed_one_in", "one out-of-memory error in this many becomes a small block", NULL,
     sabotage_rare_swallow_oom, true, NULL},
    {"atomic_lost_one_in", "one launch in this many adds to the total without an atomic",
     sabotage_rare_launch_plain, remember_plain, true, NULL},
    /* Planted where an attack makes a pool (hyp_sabotage_pool). */
    {"pool_own_one_in", "one block in this many of a pool is a driver allocation", NULL, NULL, true,
     give_blocks_of_their_own},
    {"pool_holds_percent", "a pool holds up to this percentage more memory than it needs", NULL,
     NULL, true, hold_more},
    /* Planted where a result is judged (hyp_sabotage_turn). */
    {"gemm_swap_one_in", "one product in this many has its last two different elements swapped",
     NULL, NULL, true, NULL},
    {"gemm_flip_one_in", "one product in this many has one bit of one element flipped", NULL, NULL,
     true, NULL},
    {"grouped_swap_one_in",
     "one product of groups in this many has the last two different elements swapped", NULL, NULL,
     true, NULL},
    {"attention_swap_one_in",
     "one attention in this many has its last two different elements swapped", NULL, NULL, true,
     NULL},
    {"gradients_swap_one_in",
     "one backward pass in this many has the last two different elements of d_k swapped", NULL,
     NULL, true, NULL},
    {"dequantise_swap_one_in",
     "one dequantisation in this many has its last two different elements swapped", NULL, NULL,
     true, NULL},
};

const struct hyp_fault *hyp_rare_fault(size_t index) {
    return index < sizeof faults / sizeof faults[0] ? &faults[index] : NULL;
}
