/*
 * Times a kernel that reads and a copy.
 */
#include "alike.h"

#include "core/check.h"

KN_IMAGES(read_words);

enum { THREADS = 256, PIECE_BYTES = 16, BLOCK_BYTES = 32 << 10 };

static const struct kn_variant read_row = {.name = "reading",
                                           .entry = "read_words",
                                           .images = kn_images_read_words,
                                           .compute_capability_min = 75,
                                           .threads = THREADS};

struct moves {
    struct kn_bench *bench;
    const struct tol_kernel *kernel;
    struct tol_buffer *const *from, *const *to;
    struct tol_buffer *sums;
    size_t sets, bytes;
};

static unsigned alike_blocks_of(size_t bytes) {
    return (unsigned)((bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
}

static tol_status launch_reading(void *user, size_t turn) {
    const struct moves *m = user;
    const unsigned long long count = m->bytes / PIECE_BYTES;
    return tol_launch(m->bench->stream, m->kernel,
                      (struct tol_launch_shape){alike_blocks_of(m->bytes), 1, 1, THREADS, 1, 1, 0},
                      TOL_ARGUMENTS(tol_buffer_address(m->from[turn % m->sets]), count,
                                    tol_buffer_address(m->sums)));
}

tol_status kn_bench_reading(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *buffers, size_t sets, size_t bytes) {
    tol_status status = TOL_OK;
    struct moves moves = {.bench = bench, .from = buffers, .sets = sets, .bytes = bytes};
    TOL_TRY(kn_kernels_find(bench->kernels, &read_row, &moves.kernel));
    TOL_TRY(
        tol_buffer_create(bench->context, alike_blocks_of(bytes), sizeof(uint32_t), &moves.sums));
    status = kn_bench_measure(bench, row, launch_reading, &moves);
out:
    tol_buffer_destroy(moves.sums);
    return status;
}

static tol_status launch_copying(void *user, size_t turn) {
    const struct moves *m = user;
    return tol_copy_on_device(m->bench->stream, m->to[turn % m->sets], 0, m->from[turn % m->sets],
                              0, m->bytes);
}

tol_status kn_bench_copying(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *from, struct tol_buffer *const *to,
                            size_t sets, size_t bytes) {
    struct moves moves = {.bench = bench, .from = from, .to = to, .sets = sets, .bytes = bytes};
    return kn_bench_measure(bench, row, launch_copying, &moves);
}
