/*
 * Device buffers and their synchronous copies: check the range, call the driver, and wait.
 *
 * The driver's own synchronous calls are not quite that: a fill, a copy on the device and a copy
 * from pageable memory may return before the device has done them, and a stream that is not ordered
 * after the legacy one, as ours are not, would then overtake them (CUDA Driver API, "API
 * synchronization behavior"). So each of these waits for the legacy stream.
 */
#include "tollens/memory.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "core/residence.h"
#include "tollens/module.h"
#include "buffer_state.h"
#include "tollens/health.h"
#include "range.h"

#include <stdlib.h>

static void memory_report(struct tol_holder *holder, tol_held_visit *visit, void *user) {
    const struct tol_buffer *buffer =
        (void *)((char *)holder - offsetof(struct tol_buffer, holder));
    visit(user, &(struct tol_held){.kind = TOL_HELD_BUFFER,
                                   .address = buffer->address,
                                   .bytes = buffer->bytes,
                                   .tag = "",
                                   .site = buffer->site});
}

tol_status tol_buffer_create(struct tol_context *context, size_t count, size_t element_bytes,
                             struct tol_buffer **result) {
    TOL_RANGE("tol_buffer_create", 0);
    tol_status status = TOL_OK;
    struct tol_buffer *buffer = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_buffer_create: an argument is NULL");
    TOL_CHECK(count > 0 && element_bytes > 0, TOL_INVALID_ARGUMENT,
              "a buffer of %zu elements of %zu bytes would be empty", count, element_bytes);
    TOL_CHECK(count <= SIZE_MAX / element_bytes, TOL_OUT_OF_RANGE,
              "the size of %zu elements of %zu bytes does not fit a size_t", count, element_bytes);
    TOL_TRY(tol_context_enter(context));
    buffer = calloc(1, sizeof *buffer);
    TOL_CHECK(buffer != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a buffer of %zu bytes",
              sizeof *buffer);
    buffer->life.mark = TOL_ALIVE;
    buffer->context = context;
    buffer->bytes = count * element_bytes;
    CUresult answer = context->functions->cuMemAlloc_v2(&buffer->address, buffer->bytes);
    if (answer != CUDA_SUCCESS) {
        size_t free_bytes = 0, total_bytes = 0;
        context->functions->cuMemGetInfo_v2(&free_bytes, &total_bytes);
        status = tol_context_fail(context, __FILE__, __LINE__, "cuMemAlloc_v2", (int)answer,
                                  "allocating %zu bytes; %zu of %zu bytes are free", buffer->bytes,
                                  free_bytes, total_bytes);
        goto out;
    }
    status = tol_context_refuse_astray(context, buffer->address, "the new buffer");
    if (status != TOL_OK) {
        context->functions->cuMemFree_v2(buffer->address);
        goto out;
    }
    tol_context_retain(context);
    buffer->site = __builtin_return_address(0);
    tol_context_add_holder(context, &buffer->holder, memory_report);
    *result = buffer;
    buffer = NULL;
out:
    free(buffer);
    return status;
}

void tol_buffer_destroy(struct tol_buffer *buffer) {
    if (buffer == NULL || buffer->life.mark != TOL_ALIVE) return;
    struct tol_context *context = buffer->context;
    if (buffer->module != NULL) {
        tol_module_destroy(buffer->module);
    } else {
        tol_context_drop_holder(context, &buffer->holder);
        tol_context_free_later(context, buffer->address, NULL);
        tol_context_destroy(context);
    }
    tol_retire(&buffer->life);
}

size_t tol_buffer_bytes(const struct tol_buffer *buffer) {
    return buffer->life.mark == TOL_ALIVE ? buffer->bytes : 0;
}

CUdeviceptr tol_buffer_address(const struct tol_buffer *buffer) {
    return buffer->life.mark == TOL_ALIVE ? buffer->address : 0;
}

tol_status tol_buffer_write_at(struct tol_buffer *buffer, size_t offset, const void *source,
                               size_t bytes) {
    TOL_RANGE("tol_buffer_write_at", bytes);
    tol_status status = TOL_OK;
    TOL_CHECK(buffer != NULL && source != NULL, TOL_INVALID_ARGUMENT,
              "tol_buffer_write_at: an argument is NULL");
    TOL_TRY(tol_range_check_buffer(buffer, offset, bytes));
    TOL_TRY(tol_context_enter(buffer->context));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_context_wait_blocking(buffer->context));
    TOL_CONTEXT_CU(buffer->context, cuMemcpyHtoD_v2, (buffer->address + offset, source, bytes),
                   "writing %zu bytes at offset %zu", bytes, offset);
    status = tol_deadline_wait_legacy(buffer->context);
out:
    return status;
}

tol_status tol_buffer_read_at(const struct tol_buffer *buffer, size_t offset, void *destination,
                              size_t bytes) {
    TOL_RANGE("tol_buffer_read_at", bytes);
    tol_status status = TOL_OK;
    TOL_CHECK(buffer != NULL && destination != NULL, TOL_INVALID_ARGUMENT,
              "tol_buffer_read_at: an argument is NULL");
    TOL_TRY(tol_range_check_buffer(buffer, offset, bytes));
    TOL_TRY(tol_context_enter(buffer->context));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_context_wait_blocking(buffer->context));
    TOL_CONTEXT_CU(buffer->context, cuMemcpyDtoH_v2, (destination, buffer->address + offset, bytes),
                   "reading %zu bytes at offset %zu", bytes, offset);
out:
    return status;
}

tol_status tol_buffer_write(struct tol_buffer *buffer, const void *source, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(buffer != NULL, TOL_INVALID_ARGUMENT, "tol_buffer_write: buffer is NULL");
    TOL_TRY(tol_check_alive("buffer", &buffer->life));
    TOL_CHECK(bytes == buffer->bytes, TOL_SIZE_MISMATCH,
              "a write of %zu bytes to a buffer of %zu bytes", bytes, buffer->bytes);
    status = tol_buffer_write_at(buffer, 0, source, bytes);
out:
    return status;
}

tol_status tol_buffer_read(const struct tol_buffer *buffer, void *destination, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(buffer != NULL, TOL_INVALID_ARGUMENT, "tol_buffer_read: buffer is NULL");
    TOL_TRY(tol_check_alive("buffer", &buffer->life));
    TOL_CHECK(bytes == buffer->bytes, TOL_SIZE_MISMATCH,
              "a read of %zu bytes from a buffer of %zu bytes", bytes, buffer->bytes);
    status = tol_buffer_read_at(buffer, 0, destination, bytes);
out:
    return status;
}

tol_status tol_buffer_copy(struct tol_buffer *destination, size_t destination_offset,
                           const struct tol_buffer *source, size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_buffer_copy", bytes);
    tol_status status = TOL_OK;
    TOL_TRY(tol_range_check_copy(destination, destination_offset, source, source_offset, bytes));
    TOL_TRY(tol_context_enter(destination->context));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_context_wait_blocking(destination->context));
    TOL_CONTEXT_CU(
        destination->context, cuMemcpyDtoD_v2,
        (destination->address + destination_offset, source->address + source_offset, bytes),
        "copying %zu bytes on the device", bytes);
    status = tol_deadline_wait_legacy(destination->context);
out:
    return status;
}

tol_status tol_buffer_fill_at(struct tol_buffer *buffer, size_t offset, unsigned value,
                              size_t element_bytes, size_t count) {
    TOL_RANGE("tol_buffer_fill_at", 0);
    tol_status status = TOL_OK;
    TOL_TRY(tol_range_check_fill(buffer, offset, element_bytes, count));
    TOL_TRY(tol_context_enter(buffer->context));
    if (count == 0) return TOL_OK;
    TOL_TRY(tol_context_wait_blocking(buffer->context));
    CUdeviceptr address = buffer->address + offset;
    if (element_bytes == 1) {
        TOL_CONTEXT_CU(buffer->context, cuMemsetD8_v2, (address, (unsigned char)value, count),
                       "filling %zu bytes", count);
    } else if (element_bytes == 2) {
        TOL_CONTEXT_CU(buffer->context, cuMemsetD16_v2, (address, (unsigned short)value, count),
                       "filling %zu halfwords", count);
    } else {
        TOL_CONTEXT_CU(buffer->context, cuMemsetD32_v2, (address, value, count),
                       "filling %zu words", count);
    }
    status = tol_deadline_wait_legacy(buffer->context);
out:
    return status;
}
