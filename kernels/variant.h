/*
 * Variant: one of several kernels that compute the same. An operation has one table of them.
 *
 *     static const struct kn_variant rows[] = {
 *         {.name = "tensor", .entry = "scale_tensor", .images = kn_images_scale_2_tensor,
 *          .compute_capability_min = 80, .refuse = tensor_refuses},
 *         {.name = "naive", .entry = "scale_naive", .images = kn_images_scale_1_naive,
 *          .compute_capability_min = 75}};
 *     const struct kn_variants kn_scale_variants = {"scale", rows, 2};
 *
 * The table lists the best first: the first row that serves the device and the problem is picked.
 * Rows share a name if one idea was compiled several times, for example for each transposition.
 * Thread-safe: all is constant.
 */
#ifndef KN_VARIANT_H
#define KN_VARIANT_H

#include "kernel_image.h"

struct kn_variant {
    const char *name;              /* by which a caller forces it: "tensor" */
    const char *entry;             /* the kernel's name in its image */
    const struct kn_image *images; /* KN_IMAGES */
    int compute_capability_min;    /* 10 * major + minor */
    /* Returns NULL if the kernel serves the problem, else why not, as a clause: "k is no multiple
     * of 8". The operation defines what a problem is. NULL: the kernel serves all problems. */
    const char *(*refuse)(const void *problem);
    unsigned threads;      /* of a block */
    unsigned shared_bytes; /* dynamic, of a block; above 48 KiB enabled when the kernel is loaded */
    unsigned tile[3];      /* what a block computes, in the operation's own dimensions */
    unsigned cluster;      /* blocks of a cluster; 1 if the kernel takes tensor maps; else 0 */
    bool packs;            /* the operation copies operands for it, so that tensor maps serve */
};

struct kn_variants {
    const char *operation; /* "gemm" */
    const struct kn_variant *rows;
    size_t count;
};

/*
 * Picks the first row that serves; if name is not NULL, only among the rows of that name.
 * TOL_NOT_FOUND: no row has that name; the message lists the names. TOL_UNSUPPORTED: no row serves;
 * the message says why not for each.
 */
tol_status kn_variant_pick(const struct kn_variants *variants, const struct tol_device *device,
                           const char *name, const void *problem,
                           const struct kn_variant **variant);

#endif
