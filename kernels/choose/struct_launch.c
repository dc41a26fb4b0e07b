/*
 * The launch of a variant's kernel with one struct.
 */
#include "choose/struct_launch.h"

#include "core/check.h"

tol_status kn_struct_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_variant *variant, struct tol_launch_shape shape,
                            const void *argument, size_t bytes) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    union {
        const void *in;
        void *out;
    } value = {.in = argument}; /* the launch does not write it */
    const unsigned sizes = (unsigned)bytes;
    const struct tol_arguments arguments = {1, &value.out, &sizes};
    TOL_TRY(kn_kernels_find(kernels, variant, &kernel));
    status = variant->pdl ? tol_launch_programmatic(stream, kernel, shape, arguments)
                          : tol_launch(stream, kernel, shape, arguments);
out:
    return status;
}
