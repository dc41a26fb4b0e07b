/*
 * Where an operand begins and ends in device memory.
 */
#include "operand.h"

#include "core/check.h"

bool kn_add_product(size_t *sum, size_t a, size_t b) {
    size_t product, total;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    if (__builtin_add_overflow(*sum, product, &total)) return false;
    *sum = total;
    return true;
}

tol_status kn_operand_locate(const char *name, const struct tol_buffer *buffer, size_t first,
                             size_t end, size_t element_bytes, CUdeviceptr *begin_address,
                             CUdeviceptr *end_address) {
    tol_status status = TOL_OK;
    const CUdeviceptr begin = tol_buffer_address(buffer) + first;
    TOL_CHECK(begin % element_bytes == 0, TOL_INVALID_ARGUMENT,
              "%s begins at %#llx, which is no multiple of an element's %zu bytes", name,
              (unsigned long long)begin, element_bytes);
    *begin_address = begin;
    *end_address = tol_buffer_address(buffer) + end;
out:
    return status;
}
