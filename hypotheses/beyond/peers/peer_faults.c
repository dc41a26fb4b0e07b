/*
 * The faults. They change the arguments of cuMemcpyPeerAsync or of a kernel, or omit a wait.
 */
#include "peer_faults.h"

#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

enum { TARGET, TARGET_CONTEXT, SOURCE, SOURCE_CONTEXT, BYTES, STREAM }; /* of a peer copy */

static bool is_copy(const struct tol_interpose_call *call) {
    return call->index == TOL_DRIVER_INDEX_cuMemcpyPeerAsync;
}

static void drop_wait(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuStreamWaitEvent) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* The source lies between guards, so the byte after it can be read. */
static void shift_source(struct tol_interpose_call *call, void *user) {
    static _Atomic unsigned copies;
    (void)user;
    if (is_copy(call) && ++copies % 5 == 0) ARGUMENT(call, SOURCE, CUdeviceptr) += 1;
}

static void skip_tail(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_copy(call)) return;
    size_t *bytes = &ARGUMENT(call, BYTES, size_t);
    if (*bytes > 1) *bytes -= *bytes % 16 > 0 ? *bytes % 16 : 1;
    if (*bytes == 0) call->forward = false, call->result = CUDA_SUCCESS;
}

/* Every seventh copy is of what the last copy of as many bytes to another device was. */
static void swap_pair(struct tol_interpose_call *call, void *user) {
    static struct {
        CUdeviceptr source;
        CUcontext context, target;
        size_t bytes;
    } last;
    static unsigned copies;
    (void)user;
    if (!is_copy(call)) return;
    const size_t bytes = ARGUMENT(call, BYTES, size_t);
    const CUcontext target = ARGUMENT(call, TARGET_CONTEXT, CUcontext);
    const bool is_swapped = ++copies % 7 == 0 && last.bytes == bytes && last.target != target;
    const CUdeviceptr source = ARGUMENT(call, SOURCE, CUdeviceptr);
    const CUcontext context = ARGUMENT(call, SOURCE_CONTEXT, CUcontext);
    if (is_swapped) {
        ARGUMENT(call, SOURCE, CUdeviceptr) = last.source;
        ARGUMENT(call, SOURCE_CONTEXT, CUcontext) = last.context;
    }
    last.source = source;
    last.context = context;
    last.target = target;
    last.bytes = bytes;
}

/* One bit in the last third of a copy of at least 10^9 bits. */
static void peer_faults_flip_bit(struct tol_interpose_call *call, void *user) {
    unsigned char byte = 0;
    (void)user;
    if (!is_copy(call) || call->result != CUDA_SUCCESS) return;
    const size_t bytes = ARGUMENT(call, BYTES, size_t);
    if (bytes < PEER_BILLION_BITS) return;
    const CUdeviceptr at = ARGUMENT(call, TARGET, CUdeviceptr) + bytes / 3 * 2 + 1;
    (void)call->driver->cuStreamSynchronize(ARGUMENT(call, STREAM, CUstream));
    if (call->driver->cuMemcpyDtoH_v2(&byte, at, 1) != CUDA_SUCCESS) return;
    byte ^= 0x10;
    (void)call->driver->cuMemcpyHtoD_v2(at, &byte, 1);
}

/* Every kernel of these attacks has the bytes as its third argument. The runtime's own copy of it,
 * which the launch is made with, is changed. */
static void shorten_kernel(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    unsigned long long *bytes = ARGUMENT(call, 9, void **)[2];
    if (*bytes > 1) --*bytes;
}

/* The runtime's copies only: the driver's own side of a comparison goes around the hooks. */
static void copy_twice(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_copy(call)) return;
    (void)call->driver->cuMemcpyPeerAsync(
        ARGUMENT(call, TARGET, CUdeviceptr), ARGUMENT(call, TARGET_CONTEXT, CUcontext),
        ARGUMENT(call, SOURCE, CUdeviceptr), ARGUMENT(call, SOURCE_CONTEXT, CUcontext),
        ARGUMENT(call, BYTES, size_t), ARGUMENT(call, STREAM, CUstream));
}

/* A tenth of a copy is made again. */
static void copy_a_tenth_more(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_copy(call)) return;
    (void)call->driver->cuMemcpyPeerAsync(
        ARGUMENT(call, TARGET, CUdeviceptr), ARGUMENT(call, TARGET_CONTEXT, CUcontext),
        ARGUMENT(call, SOURCE, CUdeviceptr), ARGUMENT(call, SOURCE_CONTEXT, CUcontext),
        ARGUMENT(call, BYTES, size_t) / 10, ARGUMENT(call, STREAM, CUstream));
}

const struct hyp_fault peer_faults[] = {
    {.name = "peer_wait_missing",
     .sentence = "no stream waits for an event, here or in the other process",
     .before = drop_wait},
    {.name = "peer_offset_wrong",
     .sentence = "every fifth copy between devices begins one byte late in its source",
     .before = shift_source},
    {.name = "peer_tail_skipped",
     .sentence = "copies between devices end at a multiple of 16 bytes, or a byte early",
     .before = skip_tail},
    {.name = "peer_pair_swapped",
     .sentence = "every seventh copy between devices has the source of the copy before it",
     .before = swap_pair},
    {.name = "peer_bit_flipped",
     .sentence = "one bit of a copy of 1,000,000,000 bits is flipped",
     .after = peer_faults_flip_bit},
    {.name = "peer_kernel_short",
     .sentence = "kernels that load, store or change another device's memory omit the last byte",
     .before = shorten_kernel},
    {.name = "peer_copied_twice",
     .sentence = "the runtime's copies between devices are made twice",
     .before = copy_twice},
    {.name = "peer_tenth_more",
     .sentence = "the runtime's copies between devices take a tenth longer",
     .before = copy_a_tenth_more},
    {.name = "peer_read_only_ignored",
     .sentence = "read-only memory can be written in the other process"},
    {.name = NULL}};

bool peer_fault_is(const struct hyp_attack *attack, const char *name) {
    return attack->session.sabotage != NULL && strcmp(attack->session.sabotage, name) == 0;
}

/* ---- the claims: their text and their saboteurs are in beyond.toml ---- */

#define PEERS_SABOTEURS(id, ...)                                                                   \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define PEERS_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "peers", .version = "1", .claims = claims, .faults = peer_faults);
