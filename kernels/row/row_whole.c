/*
 * Whole rows: which kernels take them.
 */
#include "row/row_whole.h"

enum { WARP = 32, PIECE_BYTES = 16 };

const char *kn_row_whole(const struct kn_rows_place *place) {
    if (place->begin == 0) return NULL;
    if (place->begin % PIECE_BYTES != 0) return "a row begins at no multiple of 16 bytes";
    if (place->rows > 1 && place->stride * place->element_bytes % PIECE_BYTES != 0) {
        return "a row begins at no multiple of 16 bytes";
    }
    return place->columns * place->element_bytes % PIECE_BYTES == 0
               ? NULL
               : "a row has no multiple of 16 bytes";
}

static const char *holds(const struct kn_row_fit *fit, enum kn_type type, size_t pieces) {
    static const char *const clauses[KN_TYPES] = {"the type is not f32", "the type is not f16",
                                                  "the type is not bf16"};
    if (fit->type != type) return clauses[type];
    if (fit->not_whole != NULL) return fit->not_whole;
    return fit->pieces <= pieces ? NULL : "the registers do not hold a row";
}

#define HOLDS(name, type, threads, pieces)                                                         \
    const char *kn_row_##name##_##pieces(const void *fit) {                                        \
        return holds(fit, type, (size_t)(threads) * (pieces));                                     \
    }
HOLDS(whole_f16, KN_F16, WARP, 1)
HOLDS(whole_f16, KN_F16, WARP, 2)
HOLDS(whole_f16, KN_F16, 256, 4)
HOLDS(wide_f16, KN_F16, 512, 2)
HOLDS(ring_f16, KN_F16, 128, 4)
HOLDS(whole_bf16, KN_BF16, WARP, 1)
HOLDS(whole_bf16, KN_BF16, WARP, 2)
HOLDS(whole_bf16, KN_BF16, 256, 4)
HOLDS(wide_bf16, KN_BF16, 512, 2)
HOLDS(ring_bf16, KN_BF16, 128, 4)
HOLDS(whole_f32, KN_F32, 1024, 8)

struct tol_launch_shape kn_row_shape_that_stays(const struct kn_variant *variant,
                                                const struct kn_row_fit *fit, size_t rows,
                                                const struct tol_device *device) {
    struct tol_launch_shape shape = kn_row_shape(variant, fit, rows);
    const unsigned most = variant->tile[2] * (unsigned)device->multiprocessors;
    if (variant->tile[2] != 0 && shape.grid_x > most) shape.grid_x = most;
    return shape;
}
