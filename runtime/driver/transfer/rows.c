/*
 * Copies of rows: packed on the host into staging blocks, spread by the device's own 2-D copy.
 *
 * If a row is longer than a block, it is divided, and a piece is a part of one row.
 */
#include "transfer_state.h"

#include "core/nvtx.h"
#include <string.h>

struct rows {
    CUdeviceptr device; /* of the first row */
    char *host;
    size_t width, height, device_pitch, host_pitch;
    size_t part;       /* bytes of a row in a piece */
    size_t parts;      /* to a row */
    size_t piece_rows; /* in a piece; 1 where rows are cut */
};

/* Where a piece begins and how large it is. */
struct box {
    size_t x, y, width, height;
};

static struct box box_of(const struct rows *rows, size_t piece) {
    struct box box = {.x = piece % rows->parts * rows->part,
                      .y = piece / rows->parts * rows->piece_rows};
    box.width = rows->width - box.x < rows->part ? rows->width - box.x : rows->part;
    box.height = rows->height - box.y < rows->piece_rows ? rows->height - box.y : rows->piece_rows;
    return box;
}

/* Of a piece, some rows each. */
enum { PARTS = 8 };

static void pack_rows(const void *copy, size_t piece, size_t part, char *stage) {
    const struct rows *rows = copy;
    struct box box = box_of(rows, piece);
    const size_t end = box.height * (part + 1) / PARTS;
    for (size_t i = box.height * part / PARTS; i < end; i++) {
        memcpy(stage + i * box.width, rows->host + (box.y + i) * rows->host_pitch + box.x,
               box.width);
    }
}

static void unpack_rows(const void *copy, size_t piece, size_t part, const char *stage) {
    const struct rows *rows = copy;
    struct box box = box_of(rows, piece);
    const size_t end = box.height * (part + 1) / PARTS;
    for (size_t i = box.height * part / PARTS; i < end; i++) {
        memcpy(rows->host + (box.y + i) * rows->host_pitch + box.x, stage + i * box.width,
               box.width);
    }
}

/* The pitch of a single row does not matter, and may be larger than a device accepts. */
static size_t pitch_of(const struct rows *rows, const struct box *box) {
    return box->height > 1 ? rows->device_pitch : box->width;
}

static CUresult rows_queue_write(const void *copy, size_t piece, char *stage,
                                 const struct tol_driver_table *driver, CUstream stream) {
    const struct rows *rows = copy;
    struct box box = box_of(rows, piece);
    const CUDA_MEMCPY2D call = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = stage,
                                .srcPitch = box.width,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = rows->device + box.y * rows->device_pitch + box.x,
                                .dstPitch = pitch_of(rows, &box),
                                .WidthInBytes = box.width,
                                .Height = box.height};
    return driver->cuMemcpy2DAsync_v2(&call, stream);
}

static CUresult rows_queue_read(const void *copy, size_t piece, char *stage,
                                const struct tol_driver_table *driver, CUstream stream) {
    const struct rows *rows = copy;
    struct box box = box_of(rows, piece);
    const CUDA_MEMCPY2D call = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = rows->device + box.y * rows->device_pitch + box.x,
                                .srcPitch = pitch_of(rows, &box),
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = stage,
                                .dstPitch = box.width,
                                .WidthInBytes = box.width,
                                .Height = box.height};
    return driver->cuMemcpy2DAsync_v2(&call, stream);
}

/* The bytes from the first row's begin to the last one's end. TOL_OUT_OF_RANGE: too many. */
static tol_status rows_span_of(const struct tol_transfer_rows *rows, size_t pitch, size_t *span) {
    tol_status status = TOL_OK;
    TOL_CHECK(!__builtin_mul_overflow(rows->height - 1, pitch, span) &&
                  !__builtin_add_overflow(*span, rows->width, span),
              TOL_OUT_OF_RANGE, "the size of %zu rows, %zu bytes apart, does not fit a size_t",
              rows->height, pitch);
out:
    return status;
}

static tol_status rows_check_device(const struct tol_transfer *transfer, struct tol_place place,
                                    const struct tol_transfer_rows *rows) {
    tol_status status = TOL_OK;
    size_t span = 0;
    TOL_CHECK(rows->device_pitch >= rows->width && rows->device_pitch <= transfer->pitch_max,
              TOL_INVALID_ARGUMENT,
              "rows of %zu bytes have a device pitch of %zu; it must be at least the width and at "
              "most %zu",
              rows->width, rows->device_pitch, transfer->pitch_max);
    TOL_TRY(rows_span_of(rows, rows->device_pitch, &span));
    status = tol_transfer_check_place(transfer, place, rows->offset, span);
out:
    return status;
}

static tol_status copy_rows(struct tol_transfer *transfer, const char *function,
                            struct tol_place place, void *host,
                            const struct tol_transfer_rows *rows, bool is_write) {
    tol_status status = TOL_OK;
    size_t span = 0;
    TOL_CHECK(rows != NULL, TOL_INVALID_ARGUMENT, "%s: an argument is NULL", function);
    TOL_TRY(tol_transfer_check(transfer, function, NULL, 0));
    if (rows->width == 0 || rows->height == 0) return TOL_OK;
    TOL_CHECK(rows->host_pitch >= rows->width, TOL_INVALID_ARGUMENT,
              "rows of %zu bytes have a host pitch of %zu; it must be at least the width",
              rows->width, rows->host_pitch);
    TOL_TRY(rows_span_of(rows, rows->host_pitch, &span));
    TOL_TRY(tol_transfer_check(transfer, function, host, span));
    TOL_TRY(rows_check_device(transfer, place, rows));
    const size_t block = transfer->options.block_bytes;
    struct rows copy = {.device = place.address + rows->offset,
                        .host = host,
                        .width = rows->width,
                        .height = rows->height,
                        .device_pitch = rows->device_pitch,
                        .host_pitch = rows->host_pitch,
                        .part = rows->width < block ? rows->width : block};
    copy.parts = (copy.width - 1) / copy.part + 1;
    copy.piece_rows = block / copy.part;
    const size_t groups = (copy.height - 1) / copy.piece_rows + 1;
    struct tol_pieces pieces = {.transfer = transfer,
                                .parts = PARTS,
                                .helpers = transfer->options.threads - 1,
                                .copy = &copy,
                                .call = "cuMemcpy2DAsync_v2",
                                .pack = is_write ? pack_rows : NULL,
                                .queue = is_write ? rows_queue_write : rows_queue_read,
                                .unpack = is_write ? NULL : unpack_rows};
    TOL_CHECK(!__builtin_mul_overflow(groups, copy.parts, &pieces.count), TOL_OUT_OF_RANGE,
              "copying %zu rows of %zu bytes", copy.height, copy.width);
    TOL_TRY(tol_context_enter(transfer->context));
    status = tol_pieces_run(&pieces);
out:
    return status;
}

tol_status tol_transfer_write_rows(struct tol_transfer *transfer, struct tol_place destination,
                                   const void *source, const struct tol_transfer_rows *rows) {
    TOL_RANGE("tol_transfer_write_rows", 0);
    return copy_rows(transfer, "tol_transfer_write_rows", destination, (void *)(uintptr_t)source,
                     rows, true);
}

tol_status tol_transfer_read_rows(struct tol_transfer *transfer, struct tol_place source,
                                  void *destination, const struct tol_transfer_rows *rows) {
    TOL_RANGE("tol_transfer_read_rows", 0);
    return copy_rows(transfer, "tol_transfer_read_rows", source, destination, rows, false);
}

tol_status tol_transfer_copy_rows(struct tol_transfer *transfer, struct tol_place destination,
                                  const struct tol_transfer_rows *to, struct tol_place source,
                                  const struct tol_transfer_rows *from) {
    TOL_RANGE("tol_transfer_copy_rows", 0);
    tol_status status = TOL_OK;
    size_t to_span = 0, from_span = 0;
    TOL_CHECK(to != NULL && from != NULL, TOL_INVALID_ARGUMENT,
              "tol_transfer_copy_rows: an argument is NULL");
    TOL_TRY(tol_transfer_check(transfer, "tol_transfer_copy_rows", NULL, 0));
    TOL_CHECK(to->width == from->width && to->height == from->height, TOL_INVALID_ARGUMENT,
              "the destination has %zu rows of %zu bytes and the source %zu rows of %zu",
              to->height, to->width, from->height, from->width);
    if (to->width == 0 || to->height == 0) return TOL_OK;
    TOL_TRY(rows_check_device(transfer, destination, to));
    TOL_TRY(rows_check_device(transfer, source, from));
    TOL_TRY(rows_span_of(to, to->device_pitch, &to_span));
    TOL_TRY(rows_span_of(from, from->device_pitch, &from_span));
    const CUDA_MEMCPY2D call = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = source.address + from->offset,
                                .srcPitch = from->device_pitch,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = destination.address + to->offset,
                                .dstPitch = to->device_pitch,
                                .WidthInBytes = to->width,
                                .Height = to->height};
    TOL_CHECK(call.dstDevice + to_span <= call.srcDevice ||
                  call.srcDevice + from_span <= call.dstDevice,
              TOL_INVALID_ARGUMENT, "the ranges of a copy of %zu rows overlap", to->height);
    TOL_TRY(tol_context_enter(transfer->context));
    TOL_TRANSFER_CU(transfer, cuMemcpy2DAsync_v2, (&call, transfer->stream->handle),
                    "copying %zu rows of %zu bytes on the device", to->height, to->width);
    status = tol_transfer_wait(transfer);
out:
    return status;
}
