/*
 * The corpus's program of clusters.
 */
#include "corpus_scene.h"

enum { THREADS = 128, BLOCKS = 16, COUNT = THREADS * BLOCKS, BINS = 64 };

static int32_t in[COUNT], out[COUNT];

static void fill(void) {
    uint32_t state = 12345;
    for (uint32_t i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        in[i] = (int32_t)(state >> 12);
    }
}

#define SAME(what, i, found, expected)                                                             \
    cr_assert_eq(found, expected, "%s: %s: %u: %d, not %d", corpus_version(), what, (unsigned)(i), \
                 (int)(found), (int)(expected))

static void check_bins(CUmodule module) {
    int32_t counts[BINS] = {0}, found[BINS];
    uint32_t count = COUNT - 5;
    for (uint32_t i = 0; i < count; i++) counts[(uint32_t)in[i] % BINS] += 2;
    CUdeviceptr data = corpus_put(in, sizeof in), bins = corpus_put(NULL, sizeof counts);
    CORPUS_LAUNCH(module, "count_bins", 8, THREADS, 0, &data, &bins, &count);
    corpus_get(bins, found, sizeof found);
    for (uint32_t i = 0; i < BINS; i++) SAME("count_bins", i, found[i], counts[i]);
}

/* In a grid of 4 by 4 blocks. */
static void check_rows(CUmodule module) {
    uint32_t steps = 7;
    CUdeviceptr data = corpus_put(in, sizeof in);
    CORPUS_LAUNCH_2D(module, "pass_on", 4, 4, THREADS, 1, 0, &data, &steps);
    corpus_get(data, out, sizeof out);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t x = block % 4, y = block / 4, rank = y % 2 * 2 + x % 2;
        uint32_t from = (rank + 4 - steps % 4) % 4;
        uint32_t source = (y / 2 * 2 + from / 2) * 4 + x / 2 * 2 + from % 2;
        for (uint32_t t = 0; t < THREADS; t++) {
            uint32_t place = steps % 2 == 1 ? THREADS - 1 - t : t;
            SAME("pass_on", block * THREADS + t, out[block * THREADS + t],
                 in[source * THREADS + place] + (int32_t)steps);
        }
    }
}

static void check_sums(CUmodule module) {
    enum { EXTENT = 8 };
    int32_t sums[BLOCKS / EXTENT];
    CUdeviceptr data = corpus_put(in, sizeof in), twice = corpus_put(NULL, sizeof out);
    CUdeviceptr result = corpus_put(NULL, sizeof sums);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {EXTENT, 1, 1}};
    CUlaunchConfig config = {.gridDimX = BLOCKS,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = THREADS,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    void *arguments[] = {&data, &result, &twice};
    CUfunction function = test_function(module, "sum_clusters");
    cr_assert_eq(cuLaunchKernelEx(&config, function, arguments, NULL), CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS, "%s", test_log());
    corpus_get(result, sums, sizeof sums);
    corpus_get(twice, out, sizeof out);
    for (uint32_t c = 0; c < BLOCKS / EXTENT; c++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < EXTENT * THREADS; i++) {
            sum += (uint32_t)in[c * EXTENT * THREADS + i];
        }
        SAME("sum_clusters", c, sums[c], (int32_t)sum);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("twice", i, out[i], 2 * in[i] + (int32_t)(i / THREADS % EXTENT));
    }
}

static void check(CUmodule module) {
    fill();
    check_bins(module);
    check_rows(module);
    check_sums(module);
}

CORPUS_TEST(corpus_clusters, blocks_use_each_others_memory,
            { cr_assert_eq(corpus_each("clusters", check), 1); })
