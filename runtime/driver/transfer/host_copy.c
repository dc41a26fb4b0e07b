/*
 * Copies between host and device, as pieces: parts of one range, or groups of small ones.
 */
#include "transfer_state.h"

#include "core/nvtx.h"
#include "streamed.h"
#include <stdlib.h>
#include <string.h>

/* A copy uses one more sleeping helper per HELPER_BYTES, or one more spinning helper per
 * SPINNER_BYTES. Pieces grow to at least PIECE_MIN, because the device idles between two pieces. */
enum { HELPER_BYTES = 1 << 20, SPINNER_BYTES = 128 << 10, PIECE_MIN = 512 << 10 };

/* What a thread copies at once. A write packs an eighth of a piece, from PART_MIN to PART_MAX. */
enum { READ_PART = 16 << 10, PART_MAX = 256 << 10, PART_MIN = 64 << 10, PARTS = 8 };

/* ---- one range ---- */

struct range {
    CUdeviceptr device;
    char *host;
    size_t bytes, piece_bytes, part_bytes;
    size_t first_bytes, ramp; /* the first ramp pieces have first_bytes, then twice that, ... */
    enum tol_transfer_pack way;
};

static size_t piece_begin(const struct range *range, size_t piece) {
    const size_t small = piece < range->ramp ? piece : range->ramp;
    return range->first_bytes * (((size_t)1 << small) - 1) + (piece - small) * range->piece_bytes;
}

static size_t host_copy_bytes_of(const struct range *range, size_t piece) {
    const size_t left = range->bytes - piece_begin(range, piece);
    const size_t most = piece < range->ramp ? range->first_bytes << piece : range->piece_bytes;
    return left < most ? left : most;
}

static size_t count_pieces(const struct range *range) {
    size_t count = 0;
    while (count < range->ramp && piece_begin(range, count) < range->bytes) count++;
    const size_t begin = piece_begin(range, count);
    if (begin >= range->bytes) return count;
    return count + (range->bytes - begin - 1) / range->piece_bytes + 1;
}

static void copy_part(enum tol_transfer_pack way, void *to, const void *from, size_t bytes) {
    if (way == TOL_TRANSFER_STREAMED) {
        tol_stream_copy(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

/* The bytes of the part that begins at an offset of its piece. The last piece may be shorter. */
static size_t part_at(const struct range *range, size_t piece, size_t offset) {
    size_t bytes = host_copy_bytes_of(range, piece);
    if (offset >= bytes) return 0;
    return bytes - offset < range->part_bytes ? bytes - offset : range->part_bytes;
}

static void pack_range(const void *copy, size_t piece, size_t part, char *stage) {
    const struct range *range = copy;
    const size_t offset = part * range->part_bytes;
    const char *from = range->host + piece_begin(range, piece) + offset;
    const size_t bytes = part_at(range, piece, offset);
    if (bytes > 0) copy_part(range->way, stage + offset, from, bytes);
}

static void unpack_range(const void *copy, size_t piece, size_t part, const char *stage) {
    const struct range *range = copy;
    const size_t offset = part * range->part_bytes;
    const size_t bytes = part_at(range, piece, offset);
    char *to = range->host + piece_begin(range, piece) + offset;
    if (bytes > 0) copy_part(range->way, to, stage + offset, bytes);
}

static CUresult host_copy_queue_write(const void *copy, size_t piece, char *stage,
                                      const struct tol_driver_table *driver, CUstream stream) {
    const struct range *range = copy;
    return driver->cuMemcpyHtoDAsync_v2(range->device + piece_begin(range, piece), stage,
                                        host_copy_bytes_of(range, piece), stream);
}

static CUresult host_copy_queue_read(const void *copy, size_t piece, char *stage,
                                     const struct tol_driver_table *driver, CUstream stream) {
    const struct range *range = copy;
    return driver->cuMemcpyDtoHAsync_v2(stage, range->device + piece_begin(range, piece),
                                        host_copy_bytes_of(range, piece), stream);
}

static size_t helpers_for(const struct tol_transfer *transfer, size_t bytes) {
    const struct tol_transfer_options *options = &transfer->options;
    size_t worth = bytes / HELPER_BYTES, near = bytes / SPINNER_BYTES;
    if (near > options->spinners) near = options->spinners;
    if (worth < near && options->spin_us > 0) worth = near;
    return worth < options->threads - 1 ? worth : options->threads - 1;
}

/* The sizes of pieces and parts. */
static void host_copy_cut(const struct tol_transfer *transfer, struct range *range, bool is_write) {
    const struct tol_transfer_options *options = &transfer->options;
    /* If there would be too few blocks to keep all threads and the device busy, pieces are
     * smaller. */
    size_t even = range->bytes / (2 * (size_t)TOL_TRANSFER_BLOCKS);
    if (even < PIECE_MIN) even = PIECE_MIN;
    range->piece_bytes = options->block_bytes;
    if (even < range->piece_bytes) range->piece_bytes = (even + 4095) & ~(size_t)4095;
    if (range->piece_bytes > options->block_bytes) range->piece_bytes = options->block_bytes;
    range->first_bytes = options->first_bytes;
    while (range->first_bytes > 0 && range->first_bytes << range->ramp < range->piece_bytes) {
        range->ramp++;
    }
    range->part_bytes = (range->piece_bytes / PARTS + 4095) & ~(size_t)4095;
    if (range->part_bytes < PART_MIN) range->part_bytes = PART_MIN;
    if (range->part_bytes > PART_MAX) range->part_bytes = PART_MAX;
    if (!is_write) range->part_bytes = READ_PART;
}

static tol_status copy_range(struct tol_transfer *transfer, struct tol_place place, size_t offset,
                             void *host, size_t bytes, bool is_write) {
    tol_status status = TOL_OK;
    struct range range = {.device = place.address + offset,
                          .host = host,
                          .bytes = bytes,
                          .way = is_write ? transfer->options.pack : transfer->options.unpack};
    struct tol_pieces pieces = {.transfer = transfer,
                                .helpers = helpers_for(transfer, bytes),
                                .is_small = bytes < HELPER_BYTES,
                                .copy = &range,
                                .call = is_write ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyDtoHAsync_v2",
                                .pack = is_write ? pack_range : NULL,
                                .queue = is_write ? host_copy_queue_write : host_copy_queue_read,
                                .unpack = is_write ? NULL : unpack_range};
    if (bytes < transfer->options.streamed_bytes) range.way = TOL_TRANSFER_CACHED;
    host_copy_cut(transfer, &range, is_write);
    pieces.count = count_pieces(&range);
    pieces.parts = (range.piece_bytes - 1) / range.part_bytes + 1;
    TOL_TRY(tol_context_enter(transfer->context));
    status = tol_pieces_run(&pieces);
out:
    return status;
}

tol_status tol_transfer_write(struct tol_transfer *transfer, struct tol_place destination,
                              size_t offset, const void *source, size_t bytes) {
    TOL_RANGE("tol_transfer_write", bytes);
    tol_status status = TOL_OK;
    TOL_TRY(tol_transfer_check(transfer, "tol_transfer_write", source, bytes));
    TOL_TRY(tol_transfer_check_place(transfer, destination, offset, bytes));
    if (bytes == 0) return TOL_OK;
    status = copy_range(transfer, destination, offset, (void *)(uintptr_t)source, bytes, true);
out:
    return status;
}

tol_status tol_transfer_read(struct tol_transfer *transfer, struct tol_place source, size_t offset,
                             void *destination, size_t bytes) {
    TOL_RANGE("tol_transfer_read", bytes);
    tol_status status = TOL_OK;
    TOL_TRY(tol_transfer_check(transfer, "tol_transfer_read", destination, bytes));
    TOL_TRY(tol_transfer_check_place(transfer, source, offset, bytes));
    if (bytes == 0) return TOL_OK;
    status = copy_range(transfer, source, offset, destination, bytes, false);
out:
    return status;
}

/* ---- many ---- */

struct batch {
    const struct tol_transfer_item *items;
    size_t *first; /* the first item of each piece; after the last piece, the count */
};

/* The device address of an item. */
static CUdeviceptr host_copy_begin_of(const struct tol_transfer_item *item) {
    return item->place.address + item->offset;
}

/* The item after the last of those, from item on, that are adjacent on the device; *bytes is the
 * sum of their sizes. */
static size_t host_copy_joined(const struct batch *batch, size_t item, size_t end, size_t *bytes) {
    const struct tol_transfer_item *items = batch->items;
    size_t next = item + 1;
    *bytes = items[item].bytes;
    while (next < end &&
           host_copy_begin_of(&items[next]) == host_copy_begin_of(&items[item]) + *bytes) {
        *bytes += items[next++].bytes;
    }
    return next;
}

static void pack_batch(const void *copy, size_t piece, size_t part, char *stage) {
    const struct batch *batch = copy;
    (void)part;
    for (size_t i = batch->first[piece]; i < batch->first[piece + 1]; i++) {
        const struct tol_transfer_item *item = &batch->items[i];
        if (item->bytes > 0) memcpy(stage, item->host, item->bytes);
        stage += item->bytes;
    }
}

static void unpack_batch(const void *copy, size_t piece, size_t part, const char *stage) {
    const struct batch *batch = copy;
    (void)part;
    for (size_t i = batch->first[piece]; i < batch->first[piece + 1]; i++) {
        const struct tol_transfer_item *item = &batch->items[i];
        if (item->bytes > 0) memcpy(item->host, stage, item->bytes);
        stage += item->bytes;
    }
}

static CUresult queue_batch_write(const void *copy, size_t piece, char *stage,
                                  const struct tol_driver_table *driver, CUstream stream) {
    const struct batch *batch = copy;
    CUresult result = CUDA_SUCCESS;
    size_t bytes = 0;
    for (size_t i = batch->first[piece]; i < batch->first[piece + 1] && result == CUDA_SUCCESS;) {
        CUdeviceptr begin = host_copy_begin_of(&batch->items[i]);
        i = host_copy_joined(batch, i, batch->first[piece + 1], &bytes);
        if (bytes > 0) result = driver->cuMemcpyHtoDAsync_v2(begin, stage, bytes, stream);
        stage += bytes;
    }
    return result;
}

static CUresult queue_batch_read(const void *copy, size_t piece, char *stage,
                                 const struct tol_driver_table *driver, CUstream stream) {
    const struct batch *batch = copy;
    CUresult result = CUDA_SUCCESS;
    size_t bytes = 0;
    for (size_t i = batch->first[piece]; i < batch->first[piece + 1] && result == CUDA_SUCCESS;) {
        CUdeviceptr begin = host_copy_begin_of(&batch->items[i]);
        i = host_copy_joined(batch, i, batch->first[piece + 1], &bytes);
        if (bytes > 0) result = driver->cuMemcpyDtoHAsync_v2(stage, begin, bytes, stream);
        stage += bytes;
    }
    return result;
}

/* Copies consecutive items that fit into one block together, and larger items alone. */
static tol_status copy_batch(struct tol_transfer *transfer, size_t count,
                             const struct tol_transfer_item *items, bool is_write) {
    tol_status status = TOL_OK;
    struct batch batch = {.items = items};
    size_t filled = 0, block = transfer->options.block_bytes, end = 0;
    TOL_CHECK(count == 0 || items != NULL, TOL_INVALID_ARGUMENT,
              "a batch of copies: an argument is NULL");
    for (size_t i = 0; i < count; i++) {
        TOL_TRY(tol_transfer_check(transfer, "a batch of copies", items[i].host, items[i].bytes));
        TOL_TRY(
            tol_transfer_check_place(transfer, items[i].place, items[i].offset, items[i].bytes));
    }
    TOL_TRY(tol_context_enter(transfer->context));
    batch.first = calloc(count + 1, sizeof *batch.first);
    TOL_CHECK(batch.first != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a batch of %zu copies", count);
    for (size_t i = 0; i < count; i = end) {
        struct tol_pieces pieces = {.transfer = transfer,
                                    .parts = 1,
                                    .copy = &batch,
                                    .call =
                                        is_write ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyDtoHAsync_v2",
                                    .pack = is_write ? pack_batch : NULL,
                                    .queue = is_write ? queue_batch_write : queue_batch_read,
                                    .unpack = is_write ? NULL : unpack_batch};
        size_t bytes = 0;
        filled = 0;
        for (end = i; end < count && items[end].bytes <= block; end++) {
            if (end == i || filled + items[end].bytes > block) {
                batch.first[pieces.count++] = end;
                filled = 0;
            }
            filled += items[end].bytes;
            bytes += items[end].bytes;
        }
        batch.first[pieces.count] = end;
        pieces.helpers = helpers_for(transfer, bytes);
        pieces.is_small = bytes < HELPER_BYTES;
        if (bytes > 0) TOL_TRY(tol_pieces_run(&pieces));
        if (end < count) {
            const struct tol_transfer_item *item = &items[end++];
            TOL_TRY(
                copy_range(transfer, item->place, item->offset, item->host, item->bytes, is_write));
        }
    }
out:
    free(batch.first);
    return status;
}

tol_status tol_transfer_write_batch(struct tol_transfer *transfer, size_t count,
                                    const struct tol_transfer_item *items) {
    TOL_RANGE("tol_transfer_write_batch", 0);
    tol_status status = tol_transfer_check(transfer, "tol_transfer_write_batch", NULL, 0);
    return status != TOL_OK ? status : copy_batch(transfer, count, items, true);
}

tol_status tol_transfer_read_batch(struct tol_transfer *transfer, size_t count,
                                   const struct tol_transfer_item *items) {
    TOL_RANGE("tol_transfer_read_batch", 0);
    tol_status status = tol_transfer_check(transfer, "tol_transfer_read_batch", NULL, 0);
    return status != TOL_OK ? status : copy_batch(transfer, count, items, false);
}
