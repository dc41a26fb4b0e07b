/*
 * Image: a compiled form of a .cu file, which the build puts into the library
 * (ci/kernel_image.py).
 *
 * Each file has its PTX, which any device from its target on can run, and in what `ninja cubins`
 * links also cubins, which a device of the same kind loads without compiling. Nothing is read from
 * files. All are packed, each as an .xz stream with a CRC: unpacking takes a millisecond or two, a
 * program with all kernels in it has 2 MB of them instead of 18. Thread-safe: all is constant.
 */
#ifndef KN_KERNEL_IMAGE_H
#define KN_KERNEL_IMAGE_H

#include "tollens.h"

struct kn_image {
    const void *packed; /* NULL ends a list of images */
    size_t packed_bytes;
    size_t bytes;               /* unpacked */
    int32_t compute_capability; /* what it was compiled for, 10 * major + minor */
    int32_t is_cubin;
};

/* KN_IMAGES(gemm_1_naive); declares what came of gemm_1_naive.cu. */
#define KN_IMAGES(name) extern const struct kn_image kn_images_##name[]

/* The best image for a device; NULL where all are for newer ones. A cubin runs on devices of its
 * major number, from its minor number on; PTX on all from its number on. */
const struct kn_image *kn_image_pick(const struct kn_image *images, int compute_capability,
                                     bool with_cubins);

/* The unpacked bytes of one image, image->bytes of them, and a NUL behind; the caller frees them.
 * TOL_OUT_OF_HOST_MEMORY; TOL_INVALID_MODULE: it does not unpack to what was packed. */
tol_status kn_image_unpack(const struct kn_image *image, char **bytes);

/* Loads the best image; where the driver does not take cubins, or not this one, the PTX.
 * TOL_UNSUPPORTED: all images are for newer devices. TOL_INVALID_MODULE: also where an image does
 * not unpack to what was packed. Else as tol_module_load. */
tol_status kn_image_load(struct tol_context *context, const struct kn_image *images,
                         struct tol_module **module);

#endif
