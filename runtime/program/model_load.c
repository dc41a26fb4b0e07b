/*
 * Loads, and copies of pinned memory, by the host's clock.
 *
 * The first load may read the file from a disk, and the first copy wakes the bus; the fastest of a
 * few is what both are held by.
 */
#include "model_load.h"

#include "harness/clock.h"

enum { LOADS = 4, TURNS = 4, COPIES = 16, SOFT_COPIES = 1, BLOCK_BYTES = 32 << 20 };

static tol_status time_copies(struct tol_context *context, double *bytes_per_s) {
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    const int copies = tol_context_device(context)->soft ? SOFT_COPIES : COPIES;
    tol_status status = tol_stream_create(context, NULL, &stream);
    if (status == TOL_OK) status = tol_buffer_create(context, BLOCK_BYTES, 1, &buffer);
    if (status == TOL_OK) status = tol_pinned_create(context, BLOCK_BYTES, &pinned);
    for (int turn = 0; turn < TURNS && status == TOL_OK; turn++) {
        const uint64_t begin = hyp_clock_ns();
        for (int i = 0; i < copies && status == TOL_OK; i++) {
            status = tol_copy_to_device(stream, buffer, 0, pinned, 0, BLOCK_BYTES);
        }
        if (status == TOL_OK) status = tol_stream_synchronize(stream);
        const double rate = (double)copies * BLOCK_BYTES * 1e9 / (double)(hyp_clock_ns() - begin);
        if (rate > *bytes_per_s) *bytes_per_s = rate;
    }
    return status;
}

tol_status hyp_model_load(const struct tol_model *model, struct tol_context *context,
                          const struct tol_load_options *options, struct tol_loaded **loaded,
                          struct hyp_model_load *load) {
    tol_status status = TOL_OK;
    const double bytes = (double)tol_model_shape(model)->weight_bytes;
    *load = (struct hyp_model_load){.bytes_per_s = 0};
    for (int i = 0; i < LOADS && status == TOL_OK; i++) {
        struct tol_loaded_stats stats;
        tol_model_unload(*loaded);
        *loaded = NULL;
        status = tol_model_load(model, context, options, loaded);
        if (status != TOL_OK) break;
        tol_loaded_stats(*loaded, &stats);
        const double rate = bytes * 1e9 / (double)(stats.read_ns + 1);
        if (rate > load->bytes_per_s) load->bytes_per_s = rate;
    }
    return status == TOL_OK ? time_copies(context, &load->pinned_bytes_per_s) : status;
}
