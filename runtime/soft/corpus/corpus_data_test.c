/*
 * The corpus's programs about data: sums, scans, matrices, atomics, graphs.
 */
#include "corpus_scene.h"

#include "corpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(corpus_data, .fini = test_soft_close);

#define SAME(what, i, got, expected)                                                               \
    cr_assert_eq(got, expected, "%s: %s %u: 0x%llx, not 0x%llx", corpus_version(), what,           \
                 (unsigned)(i), (unsigned long long)(got), (unsigned long long)(expected))
#define NEAR(what, i, got, expected, tolerance)                                                    \
    cr_assert(fabs((double)(got) - (expected)) <= (tolerance), "%s: %s %u: %.17g, not %.17g",      \
              corpus_version(), what, (unsigned)(i), (double)(got), (double)(expected))

static void check_blocksum(CUmodule module) {
    enum { COUNT = 3000, BLOCKS = 4, THREADS = 128 };
    static int32_t ints[COUNT];
    static int64_t longs[COUNT];
    static float floats[COUNT];
    static double doubles[COUNT];
    int64_t sums[BLOCKS] = {0};
    double largest[BLOCKS];
    uint32_t count = COUNT;
    for (uint32_t b = 0; b < BLOCKS; b++) largest[b] = -1;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t block = i / THREADS % BLOCKS;
        ints[i] = (int32_t)(corpus_mix(i) % 2001) - 1000;
        longs[i] = (int64_t)ints[i] * ((int64_t)1 << 33);
        /* Sixteenths add without rounding, in whatever order. */
        floats[i] = (float)ints[i] / 16;
        doubles[i] = ints[i] / 1024.0;
        sums[block] += ints[i];
        largest[block] = fmax(largest[block], doubles[i]);
    }
    CUdeviceptr in = corpus_put(longs, sizeof longs), out = corpus_put(NULL, 8 * BLOCKS);
    int64_t long_sums[BLOCKS];
    double double_sums[BLOCKS];
    float float_sums[BLOCKS];
    int32_t int_sums[BLOCKS];
    CORPUS_LAUNCH(module, "sum_long", BLOCKS, THREADS, 0, &in, &out, &count);
    corpus_get(out, long_sums, sizeof long_sums);
    in = corpus_put(ints, sizeof ints);
    CORPUS_LAUNCH(module, "sum_int", BLOCKS, THREADS, 0, &in, &out, &count);
    corpus_get(out, int_sums, sizeof int_sums);
    in = corpus_put(floats, sizeof floats);
    CORPUS_LAUNCH(module, "sum_float", BLOCKS, THREADS, 0, &in, &out, &count);
    corpus_get(out, float_sums, sizeof float_sums);
    in = corpus_put(doubles, sizeof doubles);
    CORPUS_LAUNCH(module, "sum_double", BLOCKS, THREADS, 0, &in, &out, &count);
    corpus_get(out, double_sums, sizeof double_sums);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        SAME("int", b, int_sums[b], sums[b]);
        SAME("long", b, long_sums[b], sums[b] * ((int64_t)1 << 33));
        NEAR("float", b, float_sums[b], (double)sums[b] / 16, 0);
        NEAR("double", b, double_sums[b], (double)sums[b] / 1024, 0);
    }
    CORPUS_LAUNCH(module, "most_double", BLOCKS, THREADS, 0, &in, &out, &count);
    corpus_get(out, double_sums, sizeof double_sums);
    for (uint32_t b = 0; b < BLOCKS; b++) NEAR("most", b, double_sums[b], largest[b], 0);

    in = corpus_put(ints, sizeof ints);
    int32_t limit = 90;
    CORPUS_LAUNCH(module, "count_large", BLOCKS, THREADS, 0, &in, &out, &limit);
    corpus_get(out, int_sums, sizeof int_sums);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        int32_t large = 0, any = 0, all = 1;
        for (uint32_t t = 0; t < THREADS; t++) {
            int32_t value = ints[b * THREADS + t];
            large += value > limit;
            any |= value > 10 * limit;
            all &= value >= 0;
        }
        SAME("count", b, int_sums[b], large + 1000 * any + 10000 * all);
    }
}

CORPUS_TEST(corpus_data, sums_of_blocks,
            { cr_assert_eq(corpus_each("blocksum", check_blocksum), 3); })

static void check_prefix(CUmodule module) {
    enum { COUNT = 5000, THREADS = 256, BLOCKS = (COUNT + THREADS - 1) / THREADS };
    static uint32_t in[COUNT], out[COUNT];
    uint32_t count = COUNT, sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) in[i] = corpus_mix(i) % 1000;
    CUdeviceptr device_in = corpus_put(in, sizeof in), device_out = corpus_put(NULL, sizeof out);
    CUdeviceptr states = corpus_put(NULL, 8 * BLOCKS), next = corpus_put(NULL, 4);
    CORPUS_LAUNCH(module, "prefix", BLOCKS, THREADS, 0, &device_in, &device_out, &states, &next,
                  &count);
    corpus_get(device_out, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) SAME("prefix", i, out[i], sum += in[i]);

    CORPUS_LAUNCH(module, "tree_scan", 1, 256, 512 * 4, &device_in, &device_out);
    corpus_get(device_out, out, 512 * 4);
    sum = 0;
    for (uint32_t i = 0; i < 512; i++) {
        SAME("exclusive", i, out[i], sum);
        sum += in[i];
    }
}

CORPUS_TEST(corpus_data, prefix_sums, { cr_assert_eq(corpus_each("prefix", check_prefix), 3); })

enum { M = 37, N = 29, K = 45 };

/* Small whole numbers, so that every order and every fma gives the same. */
static void check_products(CUmodule module) {
    static float a[M * K], b[K * N], c[M * N];
    static double da[M * K], db[K * N], dc[M * N];
    static int32_t ia[M * K], ib[K * N], ic[M * N];
    uint32_t m = M, n = N, k = K;
    for (uint32_t i = 0; i < M * K; i++) {
        a[i] = (float)(da[i] = ia[i] = (int32_t)(corpus_mix(i) % 21) - 10);
    }
    for (uint32_t i = 0; i < K * N; i++) {
        b[i] = (float)(db[i] = ib[i] = (int32_t)(corpus_mix(i + 7) % 21) - 10);
    }
    CUdeviceptr x = corpus_put(a, sizeof a), y = corpus_put(b, sizeof b);
    CUdeviceptr z = corpus_put(NULL, sizeof dc);
    CORPUS_LAUNCH_2D(module, "product_float", 2, 3, 16, 16, 0, &x, &y, &z, &m, &n, &k);
    corpus_get(z, c, sizeof c);
    x = corpus_put(da, sizeof da), y = corpus_put(db, sizeof db);
    CORPUS_LAUNCH_2D(module, "product_double", 4, 5, 8, 8, 0, &x, &y, &z, &m, &n, &k);
    corpus_get(z, dc, sizeof dc);
    x = corpus_put(ia, sizeof ia), y = corpus_put(ib, sizeof ib);
    CORPUS_LAUNCH_2D(module, "product_int", 4, 5, 8, 8, 0, &x, &y, &z, &m, &n, &k);
    corpus_get(z, ic, sizeof ic);
    for (uint32_t row = 0; row < M; row++) {
        for (uint32_t col = 0; col < N; col++) {
            int32_t sum = 0;
            for (uint32_t i = 0; i < K; i++) sum += ia[row * K + i] * ib[i * N + col];
            NEAR("float", row * N + col, c[row * N + col], sum, 0);
            NEAR("double", row * N + col, dc[row * N + col], sum, 0);
            SAME("int", row * N + col, ic[row * N + col], sum);
        }
    }
}

static void check_rows_and_heat(CUmodule module) {
    enum { ROWS = 9, VECTORS = 11, WIDTH = 70, HEIGHT = 21 };
    static float in[ROWS * VECTORS][4], bias[ROWS], out[ROWS * VECTORS][4];
    static float from[HEIGHT][WIDTH], to[HEIGHT][WIDTH];
    uint32_t rows = ROWS, vectors = VECTORS;
    int32_t width = WIDTH, height = HEIGHT;
    for (uint32_t i = 0; i < ROWS * VECTORS * 4; i++) {
        in[i / 4][i % 4] = (float)(corpus_mix(i) % 1000) - 500;
    }
    for (uint32_t i = 0; i < ROWS; i++) bias[i] = (float)i - 4.5f;
    CUdeviceptr x = corpus_put(in, sizeof in), y = corpus_put(bias, sizeof bias);
    CUdeviceptr z = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "add_rows", 2, 64, 0, &x, &y, &z, &rows, &vectors);
    corpus_get(z, out, sizeof out);
    for (uint32_t i = 0; i < ROWS * VECTORS; i++) {
        float b = bias[i / VECTORS];
        NEAR("x", i, out[i][0], in[i][0] + b, 0);
        NEAR("y", i, out[i][1], in[i][1] - b, 0);
        NEAR("z", i, out[i][2], in[i][2] * b, 0);
        NEAR("w", i, out[i][3], fmaxf(in[i][3], b), 0);
    }
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        from[i / WIDTH][i % WIDTH] = (float)(corpus_mix(i) % 64);
    }
    x = corpus_put(from, sizeof from), z = corpus_put(NULL, sizeof to);
    CORPUS_LAUNCH_2D(module, "heat", 3, 3, 32, 8, 0, &x, &z, &width, &height);
    corpus_get(z, to, sizeof to);
    for (int32_t r = 0; r < HEIGHT; r++) {
        for (int32_t c = 0; c < WIDTH; c++) {
            int32_t up = r > 0 ? r - 1 : 0, down = r < HEIGHT - 1 ? r + 1 : r;
            int32_t left = c > 0 ? c - 1 : 0, right = c < WIDTH - 1 ? c + 1 : c;
            float around = from[up][c] + from[down][c] + from[r][left] + from[r][right];
            NEAR("heat", r * WIDTH + c, to[r][c], 0.5f * from[r][c] + 0.125f * around, 0);
        }
    }
}

static void check_sparse(CUmodule module) {
    enum { ROWS = 100, ENTRIES_MAX = ROWS * 60 };
    static uint32_t begins[ROWS + 1], columns[ENTRIES_MAX];
    static double values[ENTRIES_MAX], x[ROWS], expected[ROWS], y[ROWS];
    uint32_t rows = ROWS, entries = 0;
    for (uint32_t r = 0; r < ROWS; r++) {
        x[r] = (double)(corpus_mix(r) % 17) - 8;
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        begins[r] = entries;
        for (uint32_t n = corpus_mix(r * 3) % 60; n > 0; n--, entries++) {
            columns[entries] = corpus_mix(entries) % ROWS;
            values[entries] = (double)(corpus_mix(entries + 5) % 9) - 4;
            expected[r] += values[entries] * x[columns[entries]];
        }
    }
    begins[ROWS] = entries;
    CUdeviceptr b = corpus_put(begins, sizeof begins), c = corpus_put(columns, sizeof columns);
    CUdeviceptr v = corpus_put(values, sizeof values), in = corpus_put(x, sizeof x);
    CUdeviceptr out = corpus_put(NULL, sizeof y);
    static const char *const kernels[] = {"sparse_by_threads", "sparse_by_warps"};
    for (int k = 0; k < 2; k++) {
        CORPUS_LAUNCH(module, kernels[k], k == 0 ? 2 : 25, k == 0 ? 64 : 128, 0, &b, &c, &v, &in,
                      &out, &rows);
        corpus_get(out, y, sizeof y);
        for (uint32_t r = 0; r < ROWS; r++) NEAR(kernels[k], r, y[r], expected[r], 0);
    }
    memset(expected, 0, sizeof expected);
}

static void check_matrices(CUmodule module) {
    check_products(module);
    check_rows_and_heat(module);
    check_sparse(module);
}

CORPUS_TEST(corpus_data, matrices, { cr_assert_eq(corpus_each("matrices", check_matrices), 3); })

/* As in atomics.cu. */
struct cells {
    double sum;
    float most, least;
    uint32_t ands, ors, xors, wrapped, down, largest, smallest;
    uint64_t wide, wide_most;
    uint16_t half[2];
    uint32_t exchanged;
};

static void check_combine(CUmodule module) {
    enum { COUNT = 500 };
    float in[COUNT];
    uint32_t count = COUNT;
    struct cells cells = {.most = -INFINITY, .least = -INFINITY, .ands = ~0u, .smallest = ~0u},
                 expected = cells;
    for (uint32_t i = 0; i < COUNT; i++) {
        in[i] = (float)(int32_t)(corpus_mix(i) % 4001) - 2000;
        expected.sum += in[i];
        expected.most = fmaxf(expected.most, in[i]);
        expected.least = fmaxf(expected.least, -in[i]);
        expected.ands &= ~(1u << (i % 7));
        expected.ors |= 1u << (i % 11);
        expected.xors ^= i;
        expected.wrapped = expected.wrapped >= 9 ? 0 : expected.wrapped + 1;
        expected.down = expected.down == 0 || expected.down > 9 ? 9 : expected.down - 1;
        expected.largest = (i ^ 0x55) > expected.largest ? i ^ 0x55 : expected.largest;
        expected.smallest = (i ^ 0x55) < expected.smallest ? i ^ 0x55 : expected.smallest;
        expected.wide += (uint64_t)i << 30;
        expected.wide_most = (uint64_t)i << 40;
        expected.half[i & 1] = (uint16_t)(expected.half[i & 1] + 3);
    }
    CUdeviceptr c = corpus_put(&cells, sizeof cells), x = corpus_put(in, sizeof in);
    CORPUS_LAUNCH(module, "combine", 4, 128, 0, &c, &x, &count);
    corpus_get(c, &cells, sizeof cells);
    cr_assert(cells.exchanged < COUNT);
    cells.exchanged = 0;
    cr_assert(cells.sum == expected.sum && cells.most == expected.most &&
                  cells.least == expected.least,
              "%g %g %g", cells.sum, (double)cells.most, (double)cells.least);
    cr_assert(memcmp(&cells.ands, &expected.ands, sizeof cells - offsetof(struct cells, ands)) ==
              0);
}

static void check_joined(CUmodule module) {
    enum { COUNT = 300, KEYS = 20 };
    uint32_t keys[COUNT], counts[KEYS] = {0}, ranks[COUNT], seen[KEYS] = {0}, count = COUNT;
    uint32_t expected[KEYS] = {0};
    for (uint32_t i = 0; i < COUNT; i++) expected[keys[i] = corpus_mix(i) % (KEYS - 1) + 1]++;
    CUdeviceptr k = corpus_put(keys, sizeof keys), c = corpus_put(NULL, sizeof counts);
    CUdeviceptr r = corpus_put(NULL, sizeof ranks);
    CORPUS_LAUNCH(module, "joined", 3, 128, 0, &k, &c, &r, &count);
    corpus_get(c, counts, sizeof counts);
    corpus_get(r, ranks, sizeof ranks);
    for (uint32_t i = 0; i < KEYS; i++) SAME("count", i, counts[i], expected[i]);
    /* Each key's ranks are all the numbers below its count, once each: their sum tells. */
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert(ranks[i] < counts[keys[i]]);
        seen[keys[i]] += ranks[i];
    }
    for (uint32_t i = 0; i < KEYS; i++) SAME("rank", i, seen[i], counts[i] * (counts[i] - 1) / 2);
}

static void check_locked(CUmodule module) {
    enum { BLOCKS = 5, THREADS = 40 };
    uint32_t total = 0, order[BLOCKS], seen = 0;
    CUdeviceptr t = corpus_put(NULL, sizeof total), o = corpus_put(NULL, sizeof order);
    CORPUS_LAUNCH(module, "locked", BLOCKS, THREADS, 0, &t, &o);
    corpus_get(t, &total, sizeof total);
    corpus_get(o, order, sizeof order);
    SAME("total", 0, total, BLOCKS * (THREADS + THREADS / 2));
    for (uint32_t i = 0; i < BLOCKS; i++) seen |= 1u << order[i];
    SAME("order", 0, seen, ((1u << BLOCKS) - 1) << 1);
}

static void check_tables(CUmodule module) {
    enum { COUNT = 600, ROOM = 1024, BYTES = 5000 };
    static uint32_t keys[COUNT], table[ROOM], bins[64], expected[64];
    static uint8_t bytes[BYTES];
    uint32_t count = COUNT, mask = ROOM - 1, found = 0, distinct = 0, byte_count = BYTES;
    for (uint32_t i = 0; i < COUNT; i++) keys[i] = corpus_mix(i / 2) | 1;
    CUdeviceptr k = corpus_put(keys, sizeof keys), t = corpus_put(NULL, sizeof table);
    CORPUS_LAUNCH(module, "insert", 5, 128, 0, &k, &t, &mask, &count);
    corpus_get(t, table, sizeof table);
    for (uint32_t i = 0; i < COUNT; i += 2) {
        uint32_t at = corpus_mix(keys[i]) & mask;
        while (table[at] != 0 && table[at] != keys[i]) at = (at + 1) & mask;
        found += table[at] == keys[i];
        bool again = false;
        for (uint32_t j = 0; j < i; j += 2) again |= keys[j] == keys[i];
        distinct += !again;
    }
    SAME("found", 0, found, COUNT / 2);
    for (uint32_t i = 0; i < ROOM; i++) distinct -= table[i] != 0;
    SAME("distinct", 0, distinct, 0);

    memset(expected, 0, sizeof expected);
    for (uint32_t i = 0; i < BYTES; i++) expected[(bytes[i] = (uint8_t)corpus_mix(i)) / 4]++;
    CUdeviceptr b = corpus_put(bytes, sizeof bytes), h = corpus_put(NULL, sizeof bins);
    CORPUS_LAUNCH(module, "histogram64", 3, 256, 0, &b, &h, &byte_count);
    corpus_get(h, bins, sizeof bins);
    for (uint32_t i = 0; i < 64; i++) SAME("bin", i, bins[i], expected[i]);
}

static void check_atomics(CUmodule module) {
    check_combine(module);
    check_joined(module);
    check_locked(module);
    check_tables(module);
}

CORPUS_TEST(corpus_data, atomics, { cr_assert_eq(corpus_each("atomics", check_atomics), 4); })

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void check_search(CUmodule module) {
    enum { NODES = 300, EDGES = 2 * NODES };
    static uint32_t begins[NODES + 1], edges[EDGES];
    static int32_t expected[NODES], distance[NODES];
    uint32_t count = NODES, changed = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        begins[i] = 2 * i;
        edges[2 * i] = corpus_mix(i) % NODES;
        edges[2 * i + 1] = corpus_mix(i + NODES) % (i + 1);
        expected[i] = -1;
    }
    begins[NODES] = EDGES;
    expected[NODES - 1] = 0;
    for (int32_t level = 0; level < NODES; level++) {
        for (uint32_t e = 0; e < EDGES; e++) {
            if (expected[e / 2] == level && expected[edges[e]] < 0) expected[edges[e]] = level + 1;
        }
    }
    for (uint32_t i = 0; i < NODES; i++) distance[i] = -1;
    distance[NODES - 1] = 0;
    CUdeviceptr b = corpus_put(begins, sizeof begins), e = corpus_put(edges, sizeof edges);
    CUdeviceptr d = corpus_put(distance, sizeof distance), c = corpus_put(NULL, 4);
    for (int32_t level = 0; changed != 0; level++) {
        cr_assert_eq(cuMemsetD32_v2(c, 0, 1), CUDA_SUCCESS);
        CORPUS_LAUNCH(module, "advance", 3, 128, 0, &b, &e, &d, &level, &c, &count);
        corpus_get(c, &changed, sizeof changed);
    }
    corpus_get(d, distance, sizeof distance);
    for (uint32_t i = 0; i < NODES; i++) SAME("node", i, distance[i], expected[i]);
}

static void check_graph(CUmodule module) {
    enum { COUNT = 200 };
    uint32_t keys[COUNT], out[COUNT], next[COUNT], ranks[COUNT], count = COUNT;
    check_search(module);
    for (uint32_t i = 0; i < COUNT; i++) keys[i] = corpus_mix(i);
    CUdeviceptr k = corpus_put(keys, sizeof keys), nodes = corpus_put(NULL, 24 * COUNT);
    CUdeviceptr root = corpus_put(NULL, 8), o = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "grow", 2, 128, 0, &nodes, &root, &k, &count);
    CORPUS_LAUNCH(module, "walk", 1, 1, 0, &root, &o);
    corpus_get(o, out, sizeof out);
    qsort(keys, COUNT, sizeof keys[0], by_value);
    for (uint32_t i = 0; i < COUNT; i++) SAME("key", i, out[i], keys[i]);

    /* A list through all places, in steps that have no divisor in common with their number. */
    for (uint32_t i = 0; i < COUNT; i++) next[i] = (i + 77) % COUNT;
    next[13] = 13;
    CUdeviceptr n = corpus_put(next, sizeof next), r = corpus_put(NULL, sizeof ranks);
    CORPUS_LAUNCH(module, "rank_list", 1, COUNT, 8 * COUNT, &n, &r, &count);
    corpus_get(r, ranks, sizeof ranks);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t steps = 0;
        for (uint32_t at = i; next[at] != at; at = next[at]) steps++;
        SAME("rank", i, ranks[i], steps);
    }
}

CORPUS_TEST(corpus_data, graphs_and_trees,
            { cr_assert_eq(corpus_each("graph_walk", check_graph), 3); })

static int by_number(const void *one, const void *other) {
    int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
    return (a > b) - (a < b);
}

static void check_lists(CUmodule module) {
    enum { THREADS = 96, EACH = 11, COUNT = THREADS * EACH };
    static int32_t in[COUNT], out[COUNT];
    uint32_t each = EACH;
    for (uint32_t i = 0; i < COUNT; i++) in[i] = (int32_t)(corpus_mix(i) % 2001) - 1000;
    CUdeviceptr from = corpus_put(in, sizeof in), to = corpus_put(NULL, sizeof out);
    CUdeviceptr lists = corpus_put(NULL, 8 * THREADS);
    CORPUS_LAUNCH(module, "make_lists", 3, THREADS / 3, 0, &from, &lists, &each);
    CORPUS_LAUNCH(module, "take_apart", 3, THREADS / 3, 0, &lists, &to);
    corpus_get(to, out, sizeof out);
    for (uint32_t i = 0; i < THREADS; i++) {
        int32_t sum = 0;
        qsort(in + i * EACH, EACH, sizeof in[0], by_number);
        for (int32_t k = 0; k < EACH; k++) sum += (k + 1) * in[i * EACH + (uint32_t)k];
        SAME("take_apart", i, out[i], sum);
    }
    from = corpus_put(in, sizeof in);
    CORPUS_LAUNCH(module, "reversed", EACH, THREADS, 0, &from, &to);
    corpus_get(to, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("reversed", i, out[i], in[i / THREADS * THREADS + THREADS - 1 - i % THREADS]);
    }
}

CORPUS_TEST(corpus_data, lists_on_the_heap, { cr_assert_eq(corpus_each("lists", check_lists), 3); })
