/*
 * Variant: one of several kernels that compute the same. An operation has one table of them.
 *
 *     static const struct kn_variant rows[] = {
 *         {.name = "tensor", .entry = "scale_tensor", .images = kn_images_scale_2_tensor,
 *          .compute_capability_min = 80, .types = 1 << KN_F16, .needs = ALIGNED,
 *          .refuse = scale_refuses},
 *         {.name = "naive", .entry = "scale_naive", .images = kn_images_scale_1_naive,
 *          .compute_capability_min = 75, .types = 1 << KN_F16, .refuse = scale_refuses}};
 *     const struct kn_variants kn_scale_variants = {"scale", rows, 2};
 *
 * What a kernel requires of a problem is data of its row. `refuse`, one function per operation,
 * compares a row with a problem; `decline` says where another row is expected to be faster. The
 * table lists the best first, and the first row that neither refuses nor declines is picked
 * (choose.h). Rows share a name if one idea was compiled several times, for example for each
 * transposition. Thread-safe: all is constant.
 */
#ifndef KN_VARIANT_H
#define KN_VARIANT_H

#include "kernel_image.h"

struct kn_variant {
    const char *name;              /* by which a caller forces it: "tensor" */
    const char *entry;             /* the kernel's name in its image */
    const struct kn_image *images; /* KN_IMAGES */
    int compute_capability_min;    /* 10 * major + minor */
    /* What `refuse` and `decline` compare with a problem. The operation says what they mean; 0
     * where it needs none. */
    unsigned types; /* a bit for each type or precision that the kernel takes: 1 << KN_F16 */
    unsigned needs; /* bits: layouts, alignment, tensor maps, a workspace, ... */
    unsigned cost;  /* bits: models that say where the kernel is expected to be the fastest */
    size_t size;    /* of a head, a row, ...: the one that fits, or the largest */
    /* Returns NULL if the kernel can compute the problem, else why not, as a clause: "k is no
     * multiple of 8". The operation defines what a problem is. NULL: it can compute all. */
    const char *(*refuse)(const struct kn_variant *row, const void *problem);
    /* Returns NULL if the kernel is expected to be the fastest of those that remain, else why not,
     * as a clause. Not consulted where a caller or a tuning names the variant. NULL: it is. */
    const char *(*decline)(const struct kn_variant *row, const void *problem,
                           const struct tol_device *device);
    unsigned threads;      /* of a block */
    unsigned shared_bytes; /* dynamic, of a block; above 48 KiB enabled when the kernel is loaded */
    unsigned tile[3];      /* what a block computes, in the operation's own dimensions */
    unsigned cluster;      /* blocks of a cluster; 1 if the kernel takes tensor maps; else 0 */
    bool packs;            /* the operation copies operands for it, so that tensor maps serve */
    bool pdl;              /* launched by PDL: the kernel waits for its predecessor itself */
};

struct kn_variants {
    const char *operation; /* "gemm" */
    const struct kn_variant *rows;
    size_t count;
};

#endif
