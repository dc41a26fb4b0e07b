/*
 * What the host needs for step 7: when it serves, and the tensor maps that it takes beside its
 * arguments. Internal to the operation.
 */
#ifndef KN_ATTENTION_MAPS_H
#define KN_ATTENTION_MAPS_H

#include "attention/forward/attention_problem.h"
#include "boxes.h"

/* The parameters of attention_7_hopper.cu and attention_packed_3_hopper.cu. */
struct attention_maps {
    CUtensorMap q, k, v, out;
};

/* The rows of q and the bytes of shared memory of a block of attention_hopper.cuh for heads of up
 * to d elements, as QUERIES and ROOM there: rows of q, two tiles of keys and two of values. */
#define ATTENTION_HOPPER_ROWS(d) ((d) == 64 ? 192 : 128)
#define ATTENTION_HOPPER_BYTES(d)                                                                  \
    ((ATTENTION_HOPPER_ROWS(d) + 4 * ((d) == 256 ? 64 : 128)) * 2 * (d) + 2048)

/* Why the kernel of attention_hopper.cuh for heads of up to head_size elements does not serve the
 * problem, whose type is the kernel's; NULL: it does. */
const char *attention_maps_refuse(const struct attention_problem *problem, size_t head_size);

/* Makes the maps. is_bytes: elements of q, k and v have 8 bits. Fails as the driver does. */
tol_status attention_maps_make(struct tol_context *context, const struct attention_problem *problem,
                               bool is_bytes, struct attention_maps *maps);

/* Launches a kernel of a variant: with maps of the problem in front of its arguments where the
 * variant takes them. Fails as attention_maps_make and tol_launch do. */
tol_status attention_maps_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_variant *variant, const struct tol_kernel *kernel,
                                 struct tol_launch_shape shape,
                                 const struct attention_problem *problem, bool is_bytes,
                                 void *arguments, unsigned size);

#endif
