/*
 * The checks and the launch that the operations of a decoder share.
 */
#include "decoder/decoder_check.h"

#include "core/check.h"

#include <string.h>

tol_status kn_decoder_bytes(const char *name, struct kn_place place, size_t bytes,
                            size_t alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % alignment == 0, TOL_INVALID_ARGUMENT,
              "%s at %#llx is NULL or not aligned to %zu bytes", name,
              (unsigned long long)place.address, alignment);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE, "%s needs %zu bytes, and there are %zu", name,
              bytes, place.bytes);
out:
    return status;
}

tol_status kn_decoder_rows(const char *name, struct kn_place place, size_t count, size_t stride,
                           size_t length, size_t element_bytes, size_t alignment) {
    tol_status status = TOL_OK;
    const size_t room = place.bytes / element_bytes;
    TOL_TRY(kn_decoder_bytes(name, place, 0, alignment));
    TOL_CHECK(stride >= length && stride * element_bytes % alignment == 0, TOL_INVALID_ARGUMENT,
              "rows of %s have %zu elements and are %zu apart", name, length, stride);
    TOL_CHECK(length <= room && (count <= 1 || (room - length) / (count - 1) >= stride),
              TOL_OUT_OF_RANGE, "%zu rows of %s of %zu elements, %zu apart, do not fit %zu bytes",
              count, name, length, stride, place.bytes);
out:
    return status;
}

static tol_status launch(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_variant *variant, struct tol_launch_shape shape,
                         const void *argument, size_t bytes, bool is_early) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    union {
        const void *in;
        void *out;
    } value = {.in = argument}; /* the launch does not write it */
    const unsigned sizes = (unsigned)bytes;
    const struct tol_arguments arguments = {1, &value.out, &sizes};
    TOL_TRY(kn_kernels_find(kernels, variant, &kernel));
    status = is_early ? tol_launch_programmatic(stream, kernel, shape, arguments)
                      : tol_launch(stream, kernel, shape, arguments);
out:
    return status;
}

tol_status kn_decoder_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_variant *variant, struct tol_launch_shape shape,
                             const void *argument, size_t bytes) {
    return launch(kernels, stream, variant, shape, argument, bytes, false);
}

tol_status kn_decoder_launch_early(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_variant *variant, struct tol_launch_shape shape,
                                   const void *argument, size_t bytes) {
    static const char *const early[] = {"early", "stay", "kept", "long"};
    bool is_early = false;
    for (size_t i = 0; i < sizeof early / sizeof *early && !is_early; i++) {
        is_early = strcmp(variant->name, early[i]) == 0;
    }
    return launch(kernels, stream, variant, shape, argument, bytes, is_early);
}
