/*
 * Creating and destroying a transfer, copies on the device, and checks of addresses.
 */
#include "core/deadline.h"
#include "core/nvtx.h"
#include "core/residence.h"
#include "transfer_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The device idles 3 us between two copies, a fiftieth of the 150 us that 8 MiB take. One thread
 * copies 6 GB/s and more with others, so 12 exceed PCI Express 5. Smaller blocks, or one per
 * thread, stay modified in the threads' caches, where a device reads them at half the speed, so
 * stores bypass the caches from 64 KiB on. The first piece has 256 KiB, because each further one
 * has a fixed cost. */
void tol_transfer_default(struct tol_transfer_options *options) {
    enum { THREADS_MAX = 12 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long threads = cores < 4 ? cores - 1 : cores * 3 / 4;
    if (threads < 1) threads = 1;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    *options = (struct tol_transfer_options){.block_bytes = (size_t)8 << 20,
                                             .first_bytes = (size_t)256 << 10,
                                             .pack = TOL_TRANSFER_STREAMED,
                                             .unpack = TOL_TRANSFER_CACHED,
                                             .streamed_bytes = (size_t)64 << 10,
                                             .threads = (unsigned)threads,
                                             .spinners = 3,
                                             .spin_us = 200,
                                             .deadline_ms = TOL_DEADLINE_MS,
                                             .attempts = 8,
                                             .pause_us = 100};
}

tol_status tol_transfer_create(struct tol_context *context,
                               const struct tol_transfer_options *options,
                               struct tol_transfer **result) {
    tol_status status = TOL_OK;
    struct tol_transfer *transfer = NULL;
    int pitch_max = 0;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_transfer_create: an argument is NULL");
    TOL_CHECK(options == NULL || (options->block_bytes > 0 && options->threads > 0 &&
                                  options->attempts > 0 && options->deadline_ms > 0),
              TOL_INVALID_ARGUMENT, "block_bytes is %zu, threads %u, attempts %u, deadline_ms %u",
              options->block_bytes, options->threads, options->attempts, options->deadline_ms);
    TOL_TRY(tol_context_enter(context));
    transfer = calloc(1, sizeof *transfer);
    TOL_CHECK(transfer != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a transfer");
    tol_transfer_default(&transfer->options);
    if (options != NULL) transfer->options = *options;
    struct tol_transfer_options *o = &transfer->options;
    if (o->threads > TOL_TEAM_THREADS) o->threads = TOL_TEAM_THREADS;
    TOL_CHECK((int)o->pack >= 0 && o->pack <= TOL_TRANSFER_CACHED && (int)o->unpack >= 0 &&
                  o->unpack <= TOL_TRANSFER_CACHED,
              TOL_INVALID_ARGUMENT, "pack is %d and unpack %d: each is an enum tol_transfer_pack",
              (int)o->pack, (int)o->unpack);
    TOL_CONTEXT_CU(context, cuDeviceGetAttribute,
                   (&pitch_max, CU_DEVICE_ATTRIBUTE_MAX_PITCH, context->device_handle),
                   "getting the largest pitch");
    TOL_TRY(tol_stream_create(context, NULL, &transfer->stream));
    transfer->context = context;
    transfer->pitch_max = (size_t)pitch_max;
    transfer->retry = (struct tol_retry_policy){.clock = &tol_retry_real_clock,
                                                .attempts = o->attempts,
                                                .first_pause_ns = (uint64_t)o->pause_us * 1000,
                                                .deadline_ns = (uint64_t)o->deadline_ms * 1000000,
                                                .retries_made = &transfer->retries};
    /* The blocks of a large copy, and the same number for small ones beside it. */
    tol_stages_open(&transfer->stages, context, o->block_bytes, 2 * TOL_TRANSFER_BLOCKS,
                    &transfer->retry);
    tol_team_open(&transfer->team, o->spinners, (uint64_t)o->spin_us * 1000);
    tol_context_retain(context);
    *result = transfer;
    transfer = NULL;
out:
    free(transfer);
    return status;
}

void tol_transfer_destroy(struct tol_transfer *transfer) {
    if (transfer == NULL) return;
    struct tol_context *context = transfer->context;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    tol_team_close(&transfer->team);
    tol_stages_close(&transfer->stages);
    tol_stream_destroy(transfer->stream);
    free(transfer);
    tol_context_destroy(context);
}

struct tol_context *tol_transfer_context(const struct tol_transfer *transfer) {
    return transfer->context;
}

struct tol_place tol_place_of_buffer(const struct tol_buffer *buffer) {
    if (buffer == NULL) return (struct tol_place){0};
    return (struct tol_place){tol_buffer_address(buffer), tol_buffer_bytes(buffer)};
}

struct tol_place tol_place_of_block(const struct tol_pool *pool, struct tol_block block) {
    return (struct tol_place){tol_pool_address(pool, block), tol_pool_bytes(pool, block)};
}

tol_status tol_transfer_check(const struct tol_transfer *transfer, const char *function,
                              const void *host, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(transfer != NULL && (host != NULL || bytes == 0), TOL_INVALID_ARGUMENT,
              "%s: an argument is NULL", function);
    TOL_CHECK(bytes <= UINTPTR_MAX - (uintptr_t)host, TOL_OUT_OF_RANGE,
              "%s: %zu bytes at %p exceed the address space", function, bytes, host);
out:
    return status;
}

tol_status tol_transfer_check_place(const struct tol_transfer *transfer, struct tol_place place,
                                    size_t offset, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 || bytes == 0, TOL_INVALID_ARGUMENT,
              "a copy of %zu bytes: the device address is 0", bytes);
    TOL_CHECK(bytes <= place.bytes && offset <= place.bytes - bytes &&
                  place.bytes <= UINT64_MAX - place.address,
              TOL_OUT_OF_RANGE, "%zu bytes at offset %zu are not inside a place of %zu bytes",
              bytes, offset, place.bytes);
    if (bytes == 0 || !transfer->context->device_memory_only) return TOL_OK;
    TOL_TRY(tol_context_enter(transfer->context));
    status =
        tol_context_refuse_astray(transfer->context, place.address + offset, "the place of a copy");
out:
    return status;
}

tol_status tol_transfer_wait(struct tol_transfer *transfer) {
    struct tol_deadline deadline = tol_deadline_after(transfer->options.deadline_ms);
    return tol_deadline_wait_stream(transfer->stream, &deadline);
}

tol_status tol_transfer_copy(struct tol_transfer *transfer, struct tol_place destination,
                             size_t destination_offset, struct tol_place source,
                             size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_transfer_copy", bytes);
    tol_status status = TOL_OK;
    TOL_TRY(tol_transfer_check(transfer, "tol_transfer_copy", NULL, 0));
    TOL_TRY(tol_transfer_check_place(transfer, destination, destination_offset, bytes));
    TOL_TRY(tol_transfer_check_place(transfer, source, source_offset, bytes));
    if (bytes == 0) return TOL_OK;
    CUdeviceptr to = destination.address + destination_offset;
    CUdeviceptr from = source.address + source_offset;
    TOL_CHECK(to + bytes <= from || from + bytes <= to, TOL_INVALID_ARGUMENT,
              "the ranges of a copy of %zu bytes overlap", bytes);
    TOL_TRY(tol_context_enter(transfer->context));
    TOL_TRANSFER_CU(transfer, cuMemcpyDtoDAsync_v2, (to, from, bytes, transfer->stream->handle),
                    "copying %zu bytes on the device", bytes);
    status = tol_transfer_wait(transfer);
out:
    return status;
}

tol_status tol_transfer_is_resident(struct tol_transfer *transfer, CUdeviceptr address,
                                    bool *resident) {
    tol_status status = TOL_OK;
    enum tol_residence residence = TOL_RESIDENCE_UNKNOWN;
    TOL_CHECK(transfer != NULL && resident != NULL, TOL_INVALID_ARGUMENT,
              "tol_transfer_is_resident: an argument is NULL");
    TOL_TRY(tol_context_enter(transfer->context));
    TOL_TRY(tol_context_residence(transfer->context, address, &residence));
    *resident = residence == TOL_RESIDENCE_DEVICE;
out:
    return status;
}

tol_status tol_transfer_stats(struct tol_transfer *transfer, struct tol_transfer_stats *stats) {
    tol_status status = TOL_OK;
    TOL_CHECK(transfer != NULL && stats != NULL, TOL_INVALID_ARGUMENT,
              "tol_transfer_stats: an argument is NULL");
    pthread_mutex_lock(&transfer->stages.lock);
    const uint64_t pinned = transfer->stages.count * (uint64_t)transfer->options.block_bytes;
    const int found = tol_stages_node(&transfer->stages);
    pthread_mutex_unlock(&transfer->stages.lock);
    *stats = (struct tol_transfer_stats){
        .pinned_bytes = pinned,
        .pieces = atomic_load(&transfer->pieces),
        .retries = atomic_load(&transfer->retries),
        .peer_direct = atomic_load(&transfer->peer_direct),
        .peer_through_host = atomic_load(&transfer->peer_through_host),
        .numa_node = transfer->stages.node,
        .numa_found = found,
    };
out:
    return status;
}
