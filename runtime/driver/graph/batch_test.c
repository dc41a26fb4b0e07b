/*
 * Batches: in order, changed in place, made anew only where the number of kernels differs.
 */
#include "test/test_device.h"

#include <string.h>

TestSuite(batch, .fini = test_end);

enum { KERNELS = 100 };

/* Each kernel overwrites what the one before it wrote, but for one word. */
static void add_all(struct tol_batch *batch, struct tol_kernel *fill, CUdeviceptr out,
                    unsigned kernels, unsigned first) {
    for (unsigned i = 0; i < kernels; i++) {
        unsigned n = kernels - i;
        MUST(tol_batch_add(
            batch, fill, tol_launch_linear(n, 32),
            TOL_ARGUMENTS(out + 4 * (CUdeviceptr)i, first + i, (unsigned long long)n)));
    }
}

Test(batch, runs_in_order_and_changes_in_place) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_batch *batch = NULL;
    struct tol_batch_stats stats;
    static unsigned words[KERNELS];
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), KERNELS, 4, &buffer));
    MUST(tol_batch_create(test_context(), NULL, &batch));
    MUST(tol_batch_launch(batch, stream)); /* empty: no work */
    const struct {
        unsigned kernels, first, graphs, changes;
    } rounds[] = {{KERNELS, 1, 1, 0},
                  {KERNELS, 1, 1, 0},
                  {KERNELS, 7, 1, KERNELS},
                  {KERNELS / 2, 7, 2, KERNELS},
                  {KERNELS, 9, 3, KERNELS}};
    for (size_t r = 0; r < sizeof rounds / sizeof rounds[0]; r++) {
        MUST(tol_batch_clear(batch));
        add_all(batch, fill, tol_buffer_address(buffer), rounds[r].kernels, rounds[r].first);
        MUST(tol_batch_launch(batch, stream));
        MUST(tol_batch_launch(batch, stream));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(buffer, words, sizeof words));
        for (unsigned i = 0; i < rounds[r].kernels; i++) {
            cr_assert(words[i] == rounds[r].first + i, "round %zu, word %u: %u", r, i, words[i]);
        }
        MUST(tol_batch_stats(batch, &stats));
        cr_assert(stats.graphs == rounds[r].graphs && stats.changes == rounds[r].changes,
                  "round %zu: %llu graphs, %llu changes", r, (unsigned long long)stats.graphs,
                  (unsigned long long)stats.changes);
    }
    cr_assert(stats.launches == 10 && stats.kernels == KERNELS);
    MUST_FAIL(tol_batch_add(batch, fill, tol_launch_linear(0, 1), TOL_ARGUMENTS(1u)),
              TOL_OVER_LIMIT, "fill");
    MUST_FAIL(tol_batch_add(batch, NULL, tol_launch_linear(1, 1), TOL_NO_ARGUMENTS),
              TOL_INVALID_ARGUMENT, "NULL");
    tol_batch_destroy(batch);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(batch, without_an_order_all_run) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_batch *batch = NULL;
    static unsigned words[KERNELS];
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), KERNELS, 4, &buffer));
    MUST(tol_batch_create(test_context(), &(struct tol_batch_options){.unordered = true}, &batch));
    for (unsigned i = 0; i < KERNELS; i++) {
        MUST(
            tol_batch_add(batch, fill, tol_launch_linear(1, 32),
                          TOL_ARGUMENTS(tol_buffer_address(buffer) + 4 * (CUdeviceptr)i, i, 1ull)));
    }
    MUST(tol_batch_launch(batch, stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(buffer, words, sizeof words));
    for (unsigned i = 0; i < KERNELS; i++) cr_assert(words[i] == i, "word %u: %u", i, words[i]);
    tol_batch_destroy(batch);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}
