/*
 * The memory of a product, and whether x is rounded for it.
 */
#include "quantised/linear/linear_problem.h"

#include "quantised/formats/linear_arguments.h"
#include "quantised/formats/rounded.h"

enum { BYTES_CAPABILITY = 80 };

size_t kn_linear_tickets(size_t columns, size_t rows) {
    const size_t tiles = (columns + ROUNDED_COLUMNS - 1) / ROUNDED_COLUMNS;
    return tiles * (rows / LINEAR_CHUNK) * sizeof(uint32_t);
}

bool kn_linear_is_bytes(const struct tol_device *device, enum kn_weight_format format) {
    return (format == KN_WEIGHT_Q4_K || format == KN_WEIGHT_Q5_K || format == KN_WEIGHT_Q6_K) &&
           device->compute_capability >= BYTES_CAPABILITY;
}

size_t kn_linear_workspace(size_t columns, size_t k) {
    const size_t tiles = (columns + LINEAR_WIDE_COLUMNS - 1) / LINEAR_WIDE_COLUMNS;
    const size_t split = tiles * ((k + LINEAR_CHUNK - 1) / LINEAR_CHUNK) * LINEAR_WIDE_CHUNK;
    const size_t rounded = kn_rounded_bytes(columns, k);
    return split > rounded ? split : rounded;
}
