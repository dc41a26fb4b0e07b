/*
 * The hooks of gross faults, and their list. A hook finds a call's arguments by position, as
 * driver.def lists them.
 */
#include "sabotage_lists.h"

#include "harness/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

/* A module that the driver refused: a small valid one is loaded in its place, without complaint. */
static void accept_anything(struct tol_interpose_call *call, void *user) {
    static const char decoy[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry decoy()\n{\n    ret;\n}\n";
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleLoadDataEx || call->result == CUDA_SUCCESS) return;
    call->result = call->driver->cuModuleLoadData(ARGUMENT(call, 0, CUmodule *), decoy);
}

/* The JIT's error log comes back empty. */
static void lose_log(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleLoadDataEx) return;
    unsigned count = ARGUMENT(call, 2, unsigned);
    const CUjit_option *options = ARGUMENT(call, 3, CUjit_option *);
    void **values = ARGUMENT(call, 4, void **);
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER && values[i] != NULL) *(char *)values[i] = '\0';
    }
}

/* Every third kernel is not found, although it exists. */
static void sabotage_gross_lose_function(struct tol_interpose_call *call, void *user) {
    static unsigned lookups;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleGetFunction || ++lookups % 3 != 0) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_FOUND;
}

/* Every tenth launch reports success and is not made. */
static void sabotage_gross_drop_launch(struct tol_interpose_call *call, void *user) {
    static unsigned launches;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel || ++launches % 10 != 0) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* The last block of a grid of several is not launched. */
static void sabotage_gross_shorten_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    unsigned *grid_x = &ARGUMENT(call, 1, unsigned);
    if (*grid_x > 1) --*grid_x;
}

/* Every tenth launch is made twice. */
static void sabotage_gross_repeat_launch(struct tol_interpose_call *call, void *user) {
    static unsigned launches;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel || ++launches % 10 != 0) return;
    (void)call->driver->cuLaunchKernel(
        ARGUMENT(call, 0, CUfunction), ARGUMENT(call, 1, unsigned), ARGUMENT(call, 2, unsigned),
        ARGUMENT(call, 3, unsigned), ARGUMENT(call, 4, unsigned), ARGUMENT(call, 5, unsigned),
        ARGUMENT(call, 6, unsigned), ARGUMENT(call, 7, unsigned), ARGUMENT(call, 8, CUstream),
        ARGUMENT(call, 9, void **), ARGUMENT(call, 10, void **));
}

static bool is_upload(enum tol_driver_index index) {
    return index == TOL_DRIVER_INDEX_cuMemcpyHtoD_v2 ||
           index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2;
}

/* Every fifth copy to the device of 16 bytes or more arrives with one bit changed. The bit is
 * changed on the device after the copy, so the source is unchanged. */
static void sabotage_gross_flip_bit(struct tol_interpose_call *call, void *user) {
    static unsigned copies;
    unsigned char byte = 0;
    (void)user;
    if (!is_upload(call->index) || call->result != CUDA_SUCCESS) return;
    size_t bytes = ARGUMENT(call, 2, size_t);
    if (bytes < 16 || ++copies % 5 != 0) return;
    CUdeviceptr at = ARGUMENT(call, 0, CUdeviceptr) + bytes / 2;
    if (call->index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) {
        (void)call->driver->cuStreamSynchronize(ARGUMENT(call, 3, CUstream));
    }
    if (call->driver->cuMemcpyDtoH_v2(&byte, at, 1) != CUDA_SUCCESS) return;
    byte ^= 0x10;
    (void)call->driver->cuMemcpyHtoD_v2(at, &byte, 1);
}

/* Copies to the device lose their last byte. */
static void truncate_copy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_upload(call->index)) return;
    size_t *bytes = &ARGUMENT(call, 2, size_t);
    if (*bytes > 0) --*bytes;
}

/* Every fifth copy to the host is not made: the host keeps what it had. */
static void sabotage_gross_stale_copy(struct tol_interpose_call *call, void *user) {
    static unsigned copies;
    (void)user;
    bool download = call->index == TOL_DRIVER_INDEX_cuMemcpyDtoH_v2 ||
                    call->index == TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2;
    if (!download || ++copies % 5 != 0) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* A launch takes longer by the amount in microseconds: the runtime's part, not the driver's. */
static void delay_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    for (uint64_t end = hyp_clock_ns() + (uint64_t)(hyp_sabotage_given() * 1e3);
         hyp_clock_ns() < end;)
        continue;
}

/* Launches take longer by up to the amount in microseconds, and many in a row by the same time:
 * such a subject is neither within its claim nor beyond it, so the verdict can only be
 * inconclusive. */
static void jitter_launch(struct tol_interpose_call *call, void *user) {
    enum { EQUAL_LAUNCHES = 64 };
    static uint64_t launches, draw = 1, delay_ns;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    if (launches++ % EQUAL_LAUNCHES == 0) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        delay_ns = (uint64_t)(hyp_sabotage_given() * 1e3 * (double)(draw >> 11) * 0x1p-53);
    }
    for (uint64_t end = hyp_clock_ns() + delay_ns; hyp_clock_ns() < end;) continue;
}

/* Work on any stream waits until that of all others is done. */
static void sabotage_gross_serialise_streams(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuLaunchKernel) (void)call->driver->cuCtxSynchronize();
}

/* Every third block of device memory is not freed. */
static void sabotage_gross_leak_memory(struct tol_interpose_call *call, void *user) {
    static _Atomic unsigned frees;
    (void)user;
    bool is_free = call->index == TOL_DRIVER_INDEX_cuMemFree_v2 ||
                   call->index == TOL_DRIVER_INDEX_cuMemRelease;
    if (!is_free || ++frees % 3 != 0) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* Copies on the device are not made, such as those by which a pool compacts its pages. */
static void sabotage_gross_drop_device_copy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* An allocation for which there is no memory reports success and returns a block of the smallest
 * possible size. */
static void sabotage_gross_swallow_oom(struct tol_interpose_call *call, void *user) {
    enum { SMALL_BYTES = 512, HANDLE_BYTES = 2 << 20 };
    (void)user;
    if (call->result != CUDA_ERROR_OUT_OF_MEMORY) return;
    if (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2) {
        call->result = call->driver->cuMemAlloc_v2(ARGUMENT(call, 0, CUdeviceptr *), SMALL_BYTES);
    } else if (call->index == TOL_DRIVER_INDEX_cuMemCreate) {
        call->result = call->driver->cuMemCreate(
            ARGUMENT(call, 0, CUmemGenericAllocationHandle *), HANDLE_BYTES,
            ARGUMENT(call, 2, const CUmemAllocationProp *), ARGUMENT(call, 3, unsigned long long));
    }
}

/* ---- faults of the pool: in its options, each of them a design that other pools have --------- */

/* A guarded block has memory of its own, and none is kept when it is freed. */
static void reuse_nothing(struct tol_pool_options *options) {
    options->guard_one_in = 1;
}

/* Pages are allocated one by one and freed as soon as they are empty. */
static void keep_nothing(struct tol_pool_options *options) {
    options->page_bytes = 1; /* the least the driver can do */
    options->first_count = 0;
    options->magazine_max_bytes = 0;
    options->park_bytes = 0;
    options->joins_pages = false;
    options->slack_bytes = 0;
    options->trim_above = options->trim_to = 1;
}

/* No two blocks share a page. */
static void share_nothing(struct tol_pool_options *options) {
    options->large_bytes = 1;
}

/* Memory comes in pieces of a GiB, where pages are 2 MiB. */
static void take_much(struct tol_pool_options *options) {
    options->page_bytes *= 512;
    options->first_count = 0;
}

/* What is mapped stays where it is as long as the pool holds it. */
static void remap_nothing(struct tol_pool_options *options) {
    options->stitch_above = 0;
    options->stitch_always = false;
}

/* Looking up a kernel takes a while, so that threads meet where the lock is missing. */
static void slow_lookup(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) usleep(2000);
}

/* A thread other than the first is not bound to the context, although the call reports success. */
static void bind_one_thread(struct tol_interpose_call *call, void *user) {
    static _Atomic bool is_bound;
    static _Thread_local bool is_first;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuCtxSetCurrent) return;
    if (!atomic_exchange(&is_bound, true)) is_first = true;
    if (is_first) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* All streams are one: the first. It ends with the process. */
static void share_stream(struct tol_interpose_call *call, void *user) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static CUstream only;
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuStreamDestroy_v2) {
        call->forward = false;
        call->result = CUDA_SUCCESS;
    } else if (call->index == TOL_DRIVER_INDEX_cuStreamCreateWithPriority) {
        pthread_mutex_lock(&lock);
        call->forward = false;
        call->result =
            only != NULL
                ? CUDA_SUCCESS
                : call->driver->cuStreamCreateWithPriority(&only, ARGUMENT(call, 1, unsigned), 0);
        *ARGUMENT(call, 0, CUstream *) = only;
        pthread_mutex_unlock(&lock);
    }
}

/* For a kernel whose name begins with "mark", the lookup returns the one that begins with "plain",
 * whose sum is not atomic (thread_stress.c). */
static void unatomic_total(struct tol_interpose_call *call, void *user) {
    static _Thread_local char other[64];
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleGetFunction) return;
    const char **name = &ARGUMENT(call, 2, const char *);
    if (strncmp(*name, "mark", 4) != 0) return;
    snprintf(other, sizeof other, "plain%s", *name + 4);
    *name = other;
}

/* Launches go to the legacy default stream instead of their own. */
static void launch_on_legacy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuLaunchKernel) ARGUMENT(call, 8, CUstream) = NULL;
}

/* ---- faults of the process and not of the driver --------------------------------------------- */

/* True once during an attack: at its fifth driver call. */
static bool sabotage_gross_is_time(void) {
    static unsigned calls;
    return ++calls == 5;
}

static void wait_to_be_ended(void) {
    while (true) pause();
}

static void crash_attack(struct tol_interpose_call *call, void *user) {
    (void)call, (void)user;
    if (!sabotage_gross_is_time()) return;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would take it for a finding */
    raise(SIGSEGV);
}

static void kill_attack(struct tol_interpose_call *call, void *user) {
    (void)call, (void)user;
    if (sabotage_gross_is_time()) raise(SIGKILL);
}

static void hang_attack(struct tol_interpose_call *call, void *user) {
    (void)call, (void)user;
    if (sabotage_gross_is_time()) wait_to_be_ended();
}

/* The parent of an attack is its worker; without one, a person's shell must not be hit. */
static void signal_worker(int number) {
    if (getenv("TOLLENS_ATTACK_PIPE") == NULL || !sabotage_gross_is_time()) return;
    kill(getppid(), number);
    wait_to_be_ended();
}

static void kill_worker(struct tol_interpose_call *call, void *user) {
    (void)call, (void)user;
    signal_worker(SIGKILL);
}

static void stop_worker(struct tol_interpose_call *call, void *user) {
    (void)call, (void)user;
    signal_worker(SIGSTOP);
}

static const struct hyp_fault faults[] = {
    {"module_accept_anything", "images that the driver rejects load without an error", NULL,
     accept_anything, false, NULL},
    {"jit_log_lost", "the JIT's error log is empty", NULL, lose_log, false, NULL},
    {"function_lost", "every third kernel is not found", sabotage_gross_lose_function, NULL, false,
     NULL},
    {"launch_drop", "every tenth launch is skipped", sabotage_gross_drop_launch, NULL, false, NULL},
    {"launch_short", "the last block of a grid is not launched", sabotage_gross_shorten_launch,
     NULL, false, NULL},
    {"launch_twice", "every tenth launch is made twice", sabotage_gross_repeat_launch, NULL, false,
     NULL},
    {"launch_delay_us", "each launch takes this many microseconds longer", delay_launch, NULL, true,
     NULL},
    {"launch_jitter_us", "launches take up to this many microseconds longer", jitter_launch, NULL,
     true, NULL},
    /* Made where launches are timed (launcher.c): the interposer itself costs some per cent of a
     * launch, so it cannot make three. */
    {"launch_extra_percent", "this percentage of launches is made in addition and not counted",
     NULL, NULL, true, NULL},
    {"copy_flip_bit", "every fifth copy to the device flips a bit", NULL, sabotage_gross_flip_bit,
     false, NULL},
    {"copy_truncate", "copies to the device lose their last byte", truncate_copy, NULL, false,
     NULL},
    {"copy_stale", "every fifth copy to the host is skipped", sabotage_gross_stale_copy, NULL,
     false, NULL},
    {"streams_serialise", "a launch waits until all streams are idle", NULL,
     sabotage_gross_serialise_streams, false, NULL},
    {"streams_shared", "all streams are the same stream", share_stream, NULL, false, NULL},
    {"streams_legacy", "launches go to the legacy default stream", launch_on_legacy, NULL, false,
     NULL},
    {"context_unbound", "only the first thread is bound to the context", bind_one_thread, NULL,
     false, NULL},
    {"total_unatomic", "threads add to the total without an atomic", unatomic_total, NULL, false,
     NULL},
    {"alloc_leak", "every third free of device memory is skipped", sabotage_gross_leak_memory, NULL,
     false, NULL},
    {"device_copy_drop", "copies on the device are skipped", sabotage_gross_drop_device_copy, NULL,
     false, NULL},
    {"oom_swallowed", "an allocation that runs out of memory returns a small block", NULL,
     sabotage_gross_swallow_oom, false, NULL},
    /* Planted where an attack makes a pool (hyp_sabotage_pool). */
    {"pool_no_reuse", "each block of a pool is a driver allocation", NULL, NULL, false,
     reuse_nothing},
    {"pool_keeps_nothing", "a pool returns its pages as soon as it can", NULL, NULL, false,
     keep_nothing},
    {"pool_shares_nothing", "no two blocks of a pool share a page", NULL, NULL, false,
     share_nothing},
    {"pool_remaps_nothing", "a pool takes memory although it has idle memory elsewhere", NULL, NULL,
     false, remap_nothing},
    {"pool_takes_much", "a pool's pages are 512 times as large", NULL, NULL, false, take_much},
    /* Kernels with a defect, which an attack on gemm uses instead of the correct ones. */
    {"gemm_lost_step", "a product omits its last step along k", NULL, NULL, false, NULL},
    {"gemm_lost_tail", "the last row of a product is not written", NULL, NULL, false, NULL},
    {"gemm_lost_beta", "a product omits beta * C", NULL, NULL, false, NULL},
    {"gemm_reads_c", "a product reads C although beta is 0", NULL, NULL, false, NULL},
    {"gemm_swapped", "a product swaps the transpositions of A and B", NULL, NULL, false, NULL},
    {"gemm_half_sum", "a product is accumulated in 16 bits", NULL, NULL, false, NULL},
    {"gemm_writes_gap", "a product writes beyond the ends of C's rows", NULL, NULL, false, NULL},
    {"gemm_flipped_bit", "one bit of one element of a product is wrong", NULL, NULL, false, NULL},
    {"gemm_lost_share", "a split-K product omits the last split", NULL, NULL, false, NULL},
    /* The same, in pipelines of compute capability 9.0. */
    {"gemm_early_release", "a pipeline stage is released before it is multiplied", NULL, NULL,
     false, NULL},
    {"gemm_lost_consumer", "one of two consumer warpgroups stores nothing", NULL, NULL, false,
     NULL},
    {"gemm_wrong_stage", "one operand comes from the previous stage", NULL, NULL, false, NULL},
    {"gemm_lost_stage", "the last stage of a tile is not multiplied", NULL, NULL, false, NULL},
    {"gemm_lost_block", "the sums of a cluster's last block are not added", NULL, NULL, false,
     NULL},
    {"gemm_wrong_words", "two rows of A in registers are swapped", NULL, NULL, false, NULL},
    {"gemm_lost_part", "one of the six partial products of split floats is omitted", NULL, NULL,
     false, NULL},
    /* The same, in products of groups of rows. */
    {"grouped_early_release", "a pipeline stage is released before it is multiplied", NULL, NULL,
     false, NULL},
    {"grouped_wrong_group", "a tile is multiplied by the matrix of the previous group", NULL, NULL,
     false, NULL},
    {"grouped_over_end", "a tile also stores rows of the next group", NULL, NULL, false, NULL},
    {"grouped_lost_consumer", "one of two consumer warpgroups stores nothing", NULL, NULL, false,
     NULL},
    {"grouped_lost_scale", "later columns of a tile use the scale of the first", NULL, NULL, false,
     NULL},
    {"grouped_no_promotion", "sums of e4m3 are not promoted out of the tensor cores", NULL, NULL,
     false, NULL},
    {"grouped_lost_stage", "the last stage of a tile is not multiplied", NULL, NULL, false, NULL},
    {"grouped_lost_half", "two blocks copy the same half of their columns of B", NULL, NULL, false,
     NULL},
    /* The same, in products of quantised weights. */
    {"quant_early_stage", "a stage of x is released before it is multiplied", NULL, NULL, false,
     NULL},
    {"quant_lost_chunk", "the second 256 weights of a row repeat the first", NULL, NULL, false,
     NULL},
    {"quant_stale_fragments", "the last 64 of 256 steps along k use the previous weights", NULL,
     NULL, false, NULL},
    {"quant_lost_consumer", "one of two consumer warpgroups stores nothing", NULL, NULL, false,
     NULL},
    {"quant_lost_share", "the sums of the last split of k are lost", NULL, NULL, false, NULL},
    /* The same, in dequantisation. */
    {"dequantise_nibbles", "neighbouring elements are read from one byte", NULL, NULL, false, NULL},
    {"dequantise_minimum", "the minimum of a sub-block is ignored", NULL, NULL, false, NULL},
    {"dequantise_tail", "the last element is not written", NULL, NULL, false, NULL},
    {"dequantise_scales", "the upper bits of the later scales are lost", NULL, NULL, false, NULL},
    {"attention_no_rescale", "sums are not rescaled to a new maximum", NULL, NULL, false, NULL},
    {"attention_no_maximum", "the maximum is not subtracted before the exponential", NULL, NULL,
     false, NULL},
    {"attention_causal_plus_one", "the causal mask admits one key too many", NULL, NULL, false,
     NULL},
    {"attention_keys_unmasked", "keys beyond the last count as zeros", NULL, NULL, false, NULL},
    {"attention_tail_unwritten", "the last row is not written", NULL, NULL, false, NULL},
    {"attention_window_plus_one", "a window admits one key too many", NULL, NULL, false, NULL},
    {"attention_window_tile_lost", "the first tile of a window is omitted", NULL, NULL, false,
     NULL},
    /* And of its gradients; the last three are pipelines of compute capability 9.0. */
    {"gradients_no_delta", "delta is not subtracted", NULL, NULL, false, NULL},
    {"gradients_lost_head", "the last of the heads that share keys is not added", NULL, NULL, false,
     NULL},
    {"gradients_unmasked", "the causal mask is applied to whole tiles only", NULL, NULL, false,
     NULL},
    {"gradients_last_tile_lost", "the last tile of rows or keys is omitted", NULL, NULL, false,
     NULL},
    {"gradients_swapped_figures", "rows use the logarithms and deltas of other rows", NULL, NULL,
     false, NULL},
    {"gradients_unscaled", "d_k is not scaled", NULL, NULL, false, NULL},
    {"gradients_lost_consumer", "one of two consumer warpgroups stores nothing", NULL, NULL, false,
     NULL},
    {"gradients_lost_step", "the last 16 rows of each tile are not multiplied", NULL, NULL, false,
     NULL},
    {"gradients_wrong_head", "all heads that share keys are treated as the first", NULL, NULL,
     false, NULL},
    {"gradients_lost_part", "only the first block adds its part of d_q", NULL, NULL, false, NULL},
    {"gradients_lost_keys", "the last 16 keys of a block are not multiplied into d_q", NULL, NULL,
     false, NULL},
    {"gradients_wrong_half", "the second half of the columns of d_q repeats the first", NULL, NULL,
     false, NULL},
    /* And of attention over packed sequences, all pipelines of compute capability 9.0. */
    {"packed_next_key_seen", "the first key of the next sequence is seen", NULL, NULL, false, NULL},
    {"packed_next_values_kept", "values of the next sequence are multiplied by 0, not masked", NULL,
     NULL, false, NULL},
    {"packed_next_rows_written", "whole TMA boxes are stored, over rows of the next sequence", NULL,
     NULL, false, NULL},
    {"packed_next_lse_written", "logarithms are stored over those of the next sequence", NULL, NULL,
     false, NULL},
    /* And of attention over paged sequences, all pipelines of compute capability 9.0. */
    {"paged_next_page", "the page after the intended one is looked up", NULL, NULL, false, NULL},
    {"paged_old_page", "after the ring wraps around, pages of two tiles earlier are used", NULL,
     NULL, false, NULL},
    {"paged_position_too_many", "the position after the last one is seen", NULL, NULL, false, NULL},
    {"paged_values_kept", "values after the last one of a page are multiplied by 0, not masked",
     NULL, NULL, false, NULL},
    {"paged_early_values", "a stage of values is released before it is multiplied", NULL, NULL,
     false, NULL},
    {"paged_lost_consumer", "one of three consumer warpgroups stores nothing", NULL, NULL, false,
     NULL},
    /* And of attention over 8-bit numbers, the same. */
    {"e4m3_neighbours_scale", "values use the scale of the next head", NULL, NULL, false, NULL},
    {"e4m3_early_bytes", "a stage of bytes is released before its conversion to halves", NULL, NULL,
     false, NULL},
    {"e4m3_old_halves", "after the ring wraps around, values of two tiles earlier are used", NULL,
     NULL, false, NULL},
    {"lock_missing", "threads add kernels to a module's cache without its lock", slow_lookup, NULL,
     false, NULL},
    {"attack_crash", "an attack's process is killed by SIGSEGV", crash_attack, NULL, false, NULL},
    {"attack_kill", "an attack's process is killed by SIGKILL", kill_attack, NULL, false, NULL},
    {"attack_hang", "an attack never ends", hang_attack, NULL, false, NULL},
    {"worker_kill", "the worker is killed by SIGKILL during an attack", kill_worker, NULL, false,
     NULL},
    {"worker_stop", "the worker is stopped during an attack", stop_worker, NULL, false, NULL},
};

const struct hyp_fault *hyp_gross_fault(size_t index) {
    return index < sizeof faults / sizeof faults[0] ? &faults[index] : NULL;
}
