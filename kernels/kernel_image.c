/*
 * Which image a device runs, and unpacking it.
 */
#include "kernel_image.h"

#include "core/check.h"

#include <lzma.h>
#include <stdlib.h>

static bool runs_on(const struct kn_image *image, int compute_capability) {
    if (image->compute_capability > compute_capability) return false;
    if (image->is_exact) return image->compute_capability == compute_capability;
    return !image->is_cubin || image->compute_capability / 10 == compute_capability / 10;
}

static bool kernel_image_is_better(const struct kn_image *image, const struct kn_image *best) {
    if (best == NULL) return true;
    if (image->is_cubin != best->is_cubin) return image->is_cubin != 0;
    return image->compute_capability > best->compute_capability;
}

const struct kn_image *kn_image_pick(const struct kn_image *images, int compute_capability,
                                     bool with_cubins) {
    const struct kn_image *best = NULL;
    for (const struct kn_image *image = images; image->packed != NULL; image++) {
        if (image->is_cubin && !with_cubins) continue;
        if (runs_on(image, compute_capability) && kernel_image_is_better(image, best)) best = image;
    }
    return best;
}

tol_status kn_image_unpack(const struct kn_image *image, char **bytes) {
    tol_status status = TOL_OK;
    uint64_t memory = UINT64_MAX; /* the streams are our own */
    size_t read = 0, written = 0;
    lzma_ret said = LZMA_OK;
    char *room = malloc(image->bytes + 1);
    TOL_CHECK(room != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a kernel's image of %zu bytes",
              image->bytes);
    said = lzma_stream_buffer_decode(&memory, 0, NULL, image->packed, &read, image->packed_bytes,
                                     (uint8_t *)room, &written, image->bytes);
    TOL_CHECK(said != LZMA_MEM_ERROR, TOL_OUT_OF_HOST_MEMORY,
              "no memory to unpack a kernel's image of %zu bytes", image->bytes);
    TOL_CHECK(said == LZMA_OK && written == image->bytes, TOL_INVALID_MODULE,
              "a kernel's image is damaged: liblzma's code %d, %zu bytes of %zu", (int)said,
              written, image->bytes);
    room[written] = '\0';
    *bytes = room;
    return TOL_OK;
out:
    free(room);
    return status;
}

static tol_status kernel_image_load(struct tol_context *context, const struct kn_image *image,
                                    struct tol_module **module) {
    char *bytes = NULL;
    tol_status status = kn_image_unpack(image, &bytes);
    if (status == TOL_OK) status = tol_module_load(context, bytes, image->bytes, NULL, module);
    free(bytes);
    return status;
}

tol_status kn_image_load(struct tol_context *context, const struct kn_image *images,
                         struct tol_module **module) {
    tol_status status = TOL_OK;
    const int capability = tol_context_device(context)->compute_capability;
    const struct kn_image *image = kn_image_pick(images, capability, true);
    TOL_CHECK(image != NULL, TOL_UNSUPPORTED,
              "the kernel is compiled for other devices than one of compute capability %d.%d",
              capability / 10, capability % 10);
    status = kernel_image_load(context, image, module);
    if (status == TOL_INVALID_MODULE && image->is_cubin) {
        image = kn_image_pick(images, capability, false);
        if (image != NULL) status = kernel_image_load(context, image, module);
    }
out:
    return status;
}
