/*
 * The layout and addresses of the operands of attention, checked against their buffers.
 */
#include "attention/forward/attention_operand.h"

#include "core/check.h"
#include "operand.h"

static size_t element_of(const struct kn_attention *x, const struct attention_operand *operand) {
    return operand->element != 0 ? operand->element : kn_type_bytes(x->type);
}

tol_status attention_operand_locate(const struct kn_attention *x, const struct kn_heads *heads,
                                    struct attention_operand *operand) {
    tol_status status = TOL_OK;
    const size_t element = element_of(x, operand);
    size_t row = heads->row_stride, head = heads->head_stride, batch = heads->batch_stride;
    size_t first = 0, extent = 0, last = heads->offset;
    if (row == 0 && head == 0 && batch == 0) {
        row = x->head_size, head = operand->rows * row, batch = operand->heads * head;
    }
    if (x->batch == 0 || operand->heads == 0 || operand->rows == 0) return TOL_OK;
    TOL_CHECK(heads->buffer != NULL, TOL_INVALID_ARGUMENT, "%s has no buffer", operand->name);
    const size_t bytes = tol_buffer_bytes(heads->buffer);
    const bool fits =
        kn_add_product(&last, x->batch - 1, batch) &&
        kn_add_product(&last, operand->heads - 1, head) &&
        kn_add_product(&last, operand->rows - 1, row) && kn_add_product(&last, x->head_size, 1) &&
        kn_add_product(&extent, last, element) && kn_add_product(&first, heads->offset, element);
    TOL_CHECK(fits && extent <= bytes, TOL_OUT_OF_RANGE,
              "%s is %zu x %zu x %zu rows of %zu elements of %zu bytes, %zu, %zu and %zu apart, "
              "from element %zu on, and its buffer has %zu bytes",
              operand->name, x->batch, operand->heads, operand->rows, x->head_size, element, batch,
              head, row, heads->offset, bytes);
    operand->strides =
        (struct attention_strides){(long long)batch, (long long)head, (long long)row};
    status = kn_operand_locate(operand->name, heads->buffer, first, extent, element,
                               &operand->begin, &operand->end);
out:
    return status;
}

/* Sorted by stride, each dimension lies between two steps of the next, or has one element. */
bool attention_operand_is_written_once(const struct kn_attention *x,
                                       const struct attention_operand *out) {
    size_t counts[3] = {x->batch, out->heads, out->rows}, extent = x->head_size;
    size_t steps[3] = {(size_t)out->strides.batch, (size_t)out->strides.head,
                       (size_t)out->strides.row};
    if (out->begin == out->end) return true;
    for (size_t turn = 0; turn < 3; turn++) {
        size_t least = 3;
        for (size_t i = 0; i < 3; i++) {
            if (counts[i] > 1 && (least == 3 || steps[i] < steps[least])) least = i;
        }
        if (least == 3) return true;
        if (steps[least] < extent) return false;
        extent += (counts[least] - 1) * steps[least];
        counts[least] = 1;
    }
    return true;
}

tol_status attention_operand_is_apart(const struct attention_operand *out, const char *name,
                                      CUdeviceptr begin, CUdeviceptr end) {
    tol_status status = TOL_OK;
    TOL_CHECK(out->end <= begin || end <= out->begin, TOL_INVALID_ARGUMENT, "%s overlaps %s",
              out->name, name);
out:
    return status;
}

tol_status attention_operand_check_place(const char *name, struct kn_place place, size_t bytes,
                                         size_t alignment, const struct kn_place written[2]) {
    tol_status status = TOL_OK;
    static const char *const names[] = {"out", "lse"};
    TOL_CHECK(place.address != 0 && place.address % alignment == 0, TOL_INVALID_ARGUMENT,
              "%s at %#llx is NULL or not aligned to %zu bytes", name,
              (unsigned long long)place.address, alignment);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE, "%s needs %zu bytes, and there are %zu", name,
              bytes, place.bytes);
    for (int i = 0; i < 2; i++) {
        TOL_CHECK(!kn_place_overlap(written[i], written[i].bytes, place, bytes),
                  TOL_INVALID_ARGUMENT, "%s overlaps %s", names[i], name);
    }
out:
    return status;
}

bool attention_operand_is_aligned(const struct kn_attention *x,
                                  const struct attention_operand *operand) {
    const long long element = (long long)element_of(x, operand);
    return operand->begin % 16 == 0 && operand->strides.row * element % 16 == 0 &&
           operand->strides.head * element % 16 == 0 && operand->strides.batch * element % 16 == 0;
}
