/*
 * The layout and addresses of the operands of attention, checked against their buffers.
 */
#include "attention/forward/attention_operand.h"

#include "core/check.h"
#include "operand.h"

static size_t attention_operand_element_of(const struct kn_attention *x,
                                           const struct attention_operand *operand) {
    return operand->element != 0 ? operand->element : kn_type_bytes(x->type);
}

tol_status attention_operand_locate(const struct kn_attention *x, const struct kn_heads *heads,
                                    struct attention_operand *operand) {
    tol_status status = TOL_OK;
    const size_t element = attention_operand_element_of(x, operand);
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

struct attention_span attention_span_of(const struct attention_operand *operand) {
    return (struct attention_span){operand->name, operand->begin, operand->end};
}

struct attention_span attention_span_of_buffer(const char *name, const struct tol_buffer *buffer) {
    if (buffer == NULL) return (struct attention_span){name, 0, 0};
    const CUdeviceptr begin = tol_buffer_address(buffer);
    return (struct attention_span){name, begin, begin + tol_buffer_bytes(buffer)};
}

static bool span_overlaps(const struct attention_span *a, const struct attention_span *b) {
    const bool are_empty = a->begin == a->end || b->begin == b->end;
    return !are_empty && a->begin < b->end && b->begin < a->end;
}

tol_status attention_spans_check(const struct attention_span *spans, size_t written, size_t count) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < written; i++) {
        for (size_t j = 0; j < count; j++) {
            TOL_CHECK(j == i || !span_overlaps(&spans[i], &spans[j]), TOL_INVALID_ARGUMENT,
                      "%s overlaps %s", spans[i].name, spans[j].name);
        }
    }
out:
    return status;
}

bool attention_operand_is_aligned(const struct kn_attention *x,
                                  const struct attention_operand *operand) {
    const long long element = (long long)attention_operand_element_of(x, operand);
    return operand->begin % 16 == 0 && operand->strides.row * element % 16 == 0 &&
           operand->strides.head * element % 16 == 0 && operand->strides.batch * element % 16 == 0;
}
