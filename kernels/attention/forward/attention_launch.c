/*
 * The shape of a launch of attention, and its parameters.
 */
#include "attention/forward/attention_launch.h"

#include <assert.h>

struct tol_launch_shape attention_tiles(const struct kn_variant *variant,
                                        const struct kn_attention *x) {
    const bool is_tiled = variant->tile[0] != 0;
    const size_t rows = is_tiled ? variant->tile[0] : ATTENTION_WARPS;
    const struct tol_launch_shape shape = {.grid_x = (unsigned)((x->q_length + rows - 1) / rows),
                                           .grid_y = (unsigned)x->heads,
                                           .grid_z = (unsigned)x->batch,
                                           .block_x = variant->threads,
                                           .block_y = is_tiled ? 1 : ATTENTION_WARPS,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    assert((size_t)shape.grid_x * rows >= x->q_length && shape.block_x > 0);
    return shape;
}

tol_status attention_launch(struct tol_stream *stream, const struct attention_launch *launch,
                            void *arguments, unsigned bytes) {
    void *values[ATTENTION_LAUNCH_MAPS_MAX + 1];
    unsigned sizes[ATTENTION_LAUNCH_MAPS_MAX + 1];
    const unsigned count = launch->map_count;
    assert(count <= ATTENTION_LAUNCH_MAPS_MAX);
    for (unsigned i = 0; i < count; i++) {
        values[i] = &launch->maps[i], sizes[i] = sizeof launch->maps[i];
    }
    values[count] = arguments, sizes[count] = bytes;
    const struct tol_arguments parameters = {count + 1, values, sizes};
    return (launch->is_programmatic ? tol_launch_programmatic : tol_launch)(
        stream, launch->kernel, launch->shape, parameters);
}
