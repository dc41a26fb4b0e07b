/*
 * Image: a compiled form of a .cu file that the build puts into the library (ci/kernel_image.py).
 *
 * Each file has its PTX, which runs on any device from its target on; that of sm_90a on 9.0 alone.
 * Programs that `ninja cubins` links have cubins too, which load without compilation on devices of
 * the same kind. No files are read. Each image is an .xz stream with a CRC: unpacking takes a
 * millisecond or two, and a program with all kernels in it has 2 MB of them instead of 20.
 * Thread-safe: all is constant.
 */
#ifndef KN_KERNEL_IMAGE_H
#define KN_KERNEL_IMAGE_H

#include "tollens.h"

struct kn_image {
    const void *packed; /* NULL ends a list of images */
    size_t packed_bytes;
    size_t bytes;               /* unpacked */
    int32_t compute_capability; /* of its target, 10 * major + minor */
    int32_t is_cubin;
    int64_t is_exact; /* of a target such as sm_90a, whose code no other device runs */
};

/* KN_IMAGES(gemm_1_naive); declares the images of gemm_1_naive.cu. */
#define KN_IMAGES(name) extern const struct kn_image kn_images_##name[]

/* The best image for a device; NULL if all images are for others. A cubin runs on devices of its
 * major number, from its minor number on; PTX on all devices from its target on; what is exact, on
 * devices of its target alone. */
const struct kn_image *kn_image_pick(const struct kn_image *images, int compute_capability,
                                     bool with_cubins);

/* Unpacks an image: image->bytes bytes and a NUL, which the caller frees.
 * TOL_OUT_OF_HOST_MEMORY. TOL_INVALID_MODULE: the packed bytes are damaged. */
tol_status kn_image_unpack(const struct kn_image *image, char **bytes);

/* Loads the best image; the PTX if the driver rejects the cubin. TOL_UNSUPPORTED: all images are
 * for other devices. TOL_INVALID_MODULE: also if the packed bytes are damaged. Else fails as
 * tol_module_load does. */
tol_status kn_image_load(struct tol_context *context, const struct kn_image *images,
                         struct tol_module **module);

#endif
