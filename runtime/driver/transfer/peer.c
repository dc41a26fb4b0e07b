/*
 * Copies from one device to another.
 *
 * If the devices can access each other, access is enabled and the driver copies. Otherwise, or if
 * the driver does not enable it, data goes through two portable staging blocks: one device fills
 * one block while the other device empties the other.
 */
#include "core/deadline.h"
#include "core/monotonic.h"
#include "core/nvtx.h"
#include "transfer_state.h"

#include <stdio.h>

/* Whether the destination's context may use the source's memory from now on. Where another part of
 * the program disables the access later, the driver still copies. */
static tol_status peer_reach(struct tol_transfer *to, struct tol_transfer *from, bool *can_reach) {
    tol_status status = TOL_OK;
    struct tol_context *context = to->context;
    _Atomic(uint64_t) *reached =
        &to->reached[(unsigned)from->context->device.ordinal % TOL_TRANSFER_PEERS];
    int can = 0;
    *can_reach = atomic_load_explicit(reached, memory_order_relaxed) == from->context->id;
    if (*can_reach) return TOL_OK;
    TOL_CONTEXT_CU(context, cuDeviceCanAccessPeer,
                   (&can, context->device_handle, from->context->device_handle),
                   "checking whether device %d can access device %d", context->device.ordinal,
                   from->context->device.ordinal);
    if (can == 0) return TOL_OK;
    CUresult answer = context->functions->cuCtxEnablePeerAccess(from->context->handle, 0);
    switch ((int)answer) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
        *can_reach = true;
        atomic_store_explicit(reached, from->context->id, memory_order_relaxed);
        return TOL_OK;
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case CUDA_ERROR_TOO_MANY_PEERS:
        return TOL_OK;
    default:
        return tol_context_fail(context, __FILE__, __LINE__, "cuCtxEnablePeerAccess", (int)answer,
                                "allowing device %d to access device %d's memory",
                                context->device.ordinal, from->context->device.ordinal);
    }
out:
    return status;
}

/* Whether the stream is done within the first milliseconds, during which it is polled: a wait that
 * sleeps may end 0.1 ms late. */
static bool is_done_soon(const struct tol_transfer *to) {
    enum { SPIN_NS = 4000000, QUERIES = 16 };
    const struct tol_driver_table *driver = to->context->functions;
    CUresult result = driver->cuStreamQuery(to->stream->handle);
    if (result != CUDA_ERROR_NOT_READY) return result == CUDA_SUCCESS;
    const uint64_t end_ns = tol_now_ns() + SPIN_NS;
    while (result == CUDA_ERROR_NOT_READY && tol_now_ns() < end_ns) {
        for (int i = 0; i < QUERIES && result == CUDA_ERROR_NOT_READY; i++) {
            result = driver->cuStreamQuery(to->stream->handle);
        }
    }
    return result == CUDA_SUCCESS;
}

static tol_status copy_directly(struct tol_transfer *to, CUdeviceptr destination,
                                struct tol_transfer *from, CUdeviceptr source, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_TRANSFER_CU(to, cuMemcpyPeerAsync,
                    (destination, to->context->handle, source, from->context->handle, bytes,
                     to->stream->handle),
                    "copying %zu bytes from device %d to device %d", bytes,
                    from->context->device.ordinal, to->context->device.ordinal);
    /* The later wait finds errors and timeouts. */
    if (!is_done_soon(to)) TOL_TRY(tol_transfer_wait(to));
    atomic_fetch_add(&to->peer_direct, 1);
out:
    return status;
}

/* A block on its way from device to device. */
struct hop {
    struct tol_stage *stage;
    struct tol_event arrived; /* the destination's: it has emptied the block */
    bool leaving, arriving;   /* copies in flight */
};

enum { HOPS = 2 };

static tol_status wait_arrival(struct tol_transfer *to, struct hop *hop) {
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(to->options.deadline_ms);
    if (!hop->arriving) return TOL_OK;
    TOL_TRY(tol_context_enter(to->context));
    TOL_TRY(tol_deadline_wait_event(&hop->arrived, &deadline));
    hop->arriving = false;
out:
    return status;
}

/* From the source into the block. */
static tol_status peer_leave(struct tol_transfer *from, struct hop *hop, CUdeviceptr source,
                             size_t bytes) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_context_enter(from->context));
    TOL_TRANSFER_CU(
        from, cuMemcpyDtoHAsync_v2, (hop->stage->data, source, bytes, from->stream->handle),
        "copying %zu bytes from device %d to the host", bytes, from->context->device.ordinal);
    hop->leaving = true;
    TOL_TRANSFER_CU(from, cuEventRecord, (hop->stage->done.handle, from->stream->handle),
                    "recording a copy from device %d", from->context->device.ordinal);
out:
    return status;
}

/* From the block to the destination, as soon as it is full. */
static tol_status peer_arrive(struct tol_transfer *to, struct tol_transfer *from, struct hop *hop,
                              CUdeviceptr destination, size_t bytes) {
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(from->options.deadline_ms);
    TOL_TRY(tol_context_enter(from->context));
    TOL_TRY(tol_deadline_wait_event(&hop->stage->done, &deadline));
    hop->leaving = false;
    TOL_TRY(tol_context_enter(to->context));
    TOL_TRANSFER_CU(
        to, cuMemcpyHtoDAsync_v2, (destination, hop->stage->data, bytes, to->stream->handle),
        "copying %zu bytes from the host to device %d", bytes, to->context->device.ordinal);
    hop->arriving = true;
    TOL_TRANSFER_CU(to, cuEventRecord, (hop->arrived.handle, to->stream->handle),
                    "recording a copy to device %d", to->context->device.ordinal);
out:
    return status;
}

/* Two, if the second block is free: waiting for it could mean waiting for another copy that also
 * waits. */
static tol_status open_hops(struct tol_transfer *to, struct tol_transfer *from, struct hop *hops,
                            size_t *count) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < HOPS; i++) {
        status =
            tol_stages_take(&from->stages, i == 0 ? from->options.deadline_ms : 0, &hops[i].stage);
        if (status == TOL_NOT_READY && i > 0) return TOL_OK;
        if (status != TOL_OK) goto out;
        *count = i + 1;
        TOL_TRY(tol_context_enter(to->context));
        hops[i].arrived.context = to->context;
        TOL_CONTEXT_CU(to->context, cuEventCreate,
                       (&hops[i].arrived.handle, CU_EVENT_DISABLE_TIMING),
                       "creating an event for a copy between devices");
    }
out:
    return status;
}

/* Waits for work in flight and releases the blocks. If copies failed, the streams may be ahead of
 * the events. */
static void close_hops(struct tol_transfer *to, struct tol_transfer *from, struct hop *hops) {
    for (size_t i = 0; i < HOPS; i++) {
        struct hop *hop = &hops[i];
        if (hop->leaving && tol_context_enter(from->context) == TOL_OK) {
            hop->leaving = tol_transfer_wait(from) != TOL_OK;
        }
        if (tol_bound_context != to->context->id) (void)tol_context_bind_slow(to->context);
        if (hop->arriving) hop->arriving = tol_transfer_wait(to) != TOL_OK;
        if (hop->arrived.handle != NULL) {
            to->context->functions->cuEventDestroy_v2(hop->arrived.handle);
        }
        /* A block whose copy to the destination never ended is not reused. */
        if (hop->stage != NULL && !hop->arriving) {
            tol_stages_give(&from->stages, hop->stage, hop->leaving);
        }
    }
}

static tol_status copy_through_host(struct tol_transfer *to, CUdeviceptr destination,
                                    struct tol_transfer *from, CUdeviceptr source, size_t bytes) {
    tol_status status = TOL_OK;
    struct hop hops[HOPS] = {0};
    size_t depth = 1;
    const size_t block = from->options.block_bytes;
    const size_t count = (bytes - 1) / block + 1;
    TOL_TRY(open_hops(to, from, hops, &depth));
    for (size_t i = 0, lag = depth - 1; i < count + lag; i++) {
        if (i < count) {
            struct hop *hop = &hops[i % depth];
            size_t offset = i * block, left = bytes - offset;
            TOL_TRY(wait_arrival(to, hop));
            TOL_TRY(peer_leave(from, hop, source + offset, left < block ? left : block));
        }
        if (i >= lag) {
            size_t offset = (i - lag) * block, left = bytes - offset;
            TOL_TRY(peer_arrive(to, from, &hops[(i - lag) % depth], destination + offset,
                                left < block ? left : block));
        }
    }
    for (size_t i = 0; i < HOPS; i++) TOL_TRY(wait_arrival(to, &hops[i]));
    atomic_fetch_add(&to->peer_through_host, 1);
out:
    if (status == TOL_OK) {
        close_hops(to, from, hops);
    } else {
        char message[TOL_MESSAGE_BYTES];
        int result = tol_message_cuda();
        snprintf(message, sizeof message, "%s", tol_message());
        close_hops(to, from, hops);
        (void)tol_fail_again(status, result, message);
    }
    return status;
}

tol_status tol_transfer_peer(struct tol_transfer *to, struct tol_place destination,
                             size_t destination_offset, struct tol_transfer *from,
                             struct tol_place source, size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_transfer_peer", bytes);
    tol_status status = TOL_OK;
    bool can_reach = false;
    TOL_TRY(tol_transfer_check(to, "tol_transfer_peer", NULL, 0));
    TOL_TRY(tol_transfer_check(from, "tol_transfer_peer", NULL, 0));
    if (to->context == from->context) {
        return tol_transfer_copy(to, destination, destination_offset, source, source_offset, bytes);
    }
    TOL_TRY(tol_transfer_check_place(to, destination, destination_offset, bytes));
    TOL_TRY(tol_transfer_check_place(from, source, source_offset, bytes));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_context_check(from->context));
    TOL_TRY(tol_context_enter(to->context));
    TOL_TRY(peer_reach(to, from, &can_reach));
    CUdeviceptr at = destination.address + destination_offset;
    CUdeviceptr source_at = source.address + source_offset;
    status = can_reach ? copy_directly(to, at, from, source_at, bytes)
                       : copy_through_host(to, at, from, source_at, bytes);
out:
    return status;
}
