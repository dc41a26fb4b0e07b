/*
 * Which image a device runs.
 */
#include "kernel_image.h"

#include "check.h"

static bool runs_on(const struct kn_image *image, int compute_capability) {
    if (image->compute_capability > compute_capability) return false;
    return !image->is_cubin || image->compute_capability / 10 == compute_capability / 10;
}

static bool is_better(const struct kn_image *image, const struct kn_image *best) {
    if (best == NULL) return true;
    if (image->is_cubin != best->is_cubin) return image->is_cubin != 0;
    return image->compute_capability > best->compute_capability;
}

const struct kn_image *kn_image_pick(const struct kn_image *images, int compute_capability,
                                     bool with_cubins) {
    const struct kn_image *best = NULL;
    for (const struct kn_image *image = images; image->bytes != NULL; image++) {
        if (image->is_cubin && !with_cubins) continue;
        if (runs_on(image, compute_capability) && is_better(image, best)) best = image;
    }
    return best;
}

tol_status kn_image_load(struct tol_context *context, const struct kn_image *images,
                         struct tol_module **module) {
    tol_status status = TOL_OK;
    const int capability = tol_context_device(context)->compute_capability;
    const struct kn_image *image = kn_image_pick(images, capability, true);
    TOL_CHECK(image != NULL, TOL_UNSUPPORTED,
              "the kernel is compiled for newer devices than one of compute capability %d.%d",
              capability / 10, capability % 10);
    status = tol_module_load(context, image->bytes, image->count, NULL, module);
    if (status == TOL_INVALID_MODULE && image->is_cubin) {
        image = kn_image_pick(images, capability, false);
        if (image != NULL)
            status = tol_module_load(context, image->bytes, image->count, NULL, module);
    }
out:
    return status;
}
