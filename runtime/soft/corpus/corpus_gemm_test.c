/*
 * The corpus's matrix product by tensor maps and wgmma, and its variants with one mistake each,
 * which the device must report with their place. Inputs are chosen so that every order of additions
 * gives the same result.
 */
#include "corpus_scene.h"

#include "tma_gemm.h"

#include <stdlib.h>
#include <string.h>

TestSuite(corpus_gemm, .fini = test_soft_close);

/* Tiles at the right and lower edge lie partly outside; the ring of stages is gone round twice. */
enum { M = 200, N = 200, K_TILES = 8, K = K_TILES * TMA_GEMM_TILE_K };

/* CUtensorMapDataType, CUtensorMapSwizzle */
enum { FLOAT32 = 7, BFLOAT16 = 9, SWIZZLE_NONE = 0, SWIZZLE_128B = 3 };

struct gemm {
    CUdeviceptr a, b, c;
    CUtensorMap a_map, b_map, c_map;
    int k_tiles;
};

static uint16_t bf16_of(int x) {
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static CUtensorMap map_of(int type, CUdeviceptr tensor, unsigned columns, unsigned rows,
                          unsigned box_columns, unsigned box_rows, int swizzle) {
    CUtensorMap map;
    unsigned each = type == FLOAT32 ? 4 : 2;
    cuuint64_t sizes[2] = {columns, rows}, strides[1] = {(cuuint64_t)columns * each};
    cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
    cr_assert_eq(cuTensorMapEncodeTiled(&map, type, 2, (void *)(uintptr_t)tensor, sizes, strides,
                                        box, steps, 0, swizzle, 0, 0),
                 CUDA_SUCCESS);
    return map;
}

/* blocks: of a cluster. */
static struct gemm gemm_of(unsigned blocks, int swizzle) {
    static uint16_t a[M * K], b[N * K];
    for (uint32_t i = 0; i < M * K; i++) a[i] = bf16_of(tma_gemm_input(i));
    for (uint32_t i = 0; i < N * K; i++) b[i] = bf16_of(tma_gemm_input(i + 7777));
    struct gemm gemm = {.a = corpus_put(a, sizeof a),
                        .b = corpus_put(b, sizeof b),
                        .c = corpus_put(NULL, sizeof(float) * M * N),
                        .k_tiles = K_TILES};
    gemm.a_map = map_of(BFLOAT16, gemm.a, K, M, TMA_GEMM_TILE_K, TMA_GEMM_TILE_M, swizzle);
    gemm.b_map = map_of(BFLOAT16, gemm.b, K, N, TMA_GEMM_TILE_K, TMA_GEMM_TILE_N / blocks, swizzle);
    gemm.c_map = map_of(FLOAT32, gemm.c, N, M, TMA_GEMM_TILE_N, TMA_GEMM_ROWS, SWIZZLE_NONE);
    return gemm;
}

/* Launches a kernel of a module and waits for it. */
static CUresult run(CUmodule module, const char *name, struct gemm *gemm) {
    CUfunction kernel = test_function(module, name);
    void *arguments[] = {&gemm->a_map, &gemm->b_map, &gemm->c_map, &gemm->k_tiles};
    unsigned rows = (M + TMA_GEMM_TILE_M - 1) / TMA_GEMM_TILE_M;
    unsigned columns = (N + TMA_GEMM_TILE_N - 1) / TMA_GEMM_TILE_N;
    cr_assert_eq(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    TMA_GEMM_SHARED),
                 CUDA_SUCCESS);
    CUresult launched = cuLaunchKernel(kernel, rows, columns, 1, TMA_GEMM_THREADS, 1, 1,
                                       TMA_GEMM_SHARED, NULL, arguments, NULL);
    return launched != CUDA_SUCCESS ? launched : cuCtxSynchronize();
}

/* The product of the host, computed once: it is the same for every module, kernel and order. */
static const int32_t *host_product(void) {
    static int32_t product[M * N], a[M * K], b[N * K];
    static bool is_computed;
    if (is_computed) return product;
    for (uint32_t i = 0; i < M * K; i++) a[i] = tma_gemm_input(i);
    for (uint32_t i = 0; i < N * K; i++) b[i] = tma_gemm_input(i + 7777);
    for (unsigned i = 0; i < M * N; i++) {
        const int32_t *row = a + i / N * K, *column = b + i % N * K;
        int32_t sum = 0; /* of 512 products of at most 64 */
        for (unsigned k = 0; k < K; k++) sum += row[k] * column[k];
        product[i] = sum;
    }
    is_computed = true;
    return product;
}

static void check_product(const char *name, const float *c) {
    const int32_t *product = host_product();
    for (unsigned i = 0; i < M * N; i++) {
        cr_assert(c[i] == (float)product[i], "%s: C[%u][%u] is %g, not %d", name, i / N, i % N,
                  (double)c[i], (int)product[i]);
    }
}

static void check_right(CUmodule module, const char *name, unsigned blocks) {
    static float c[M * N];
    struct gemm gemm = gemm_of(blocks, SWIZZLE_128B);
    CUresult result = run(module, name, &gemm);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d: %s", name, (int)result, test_log());
    corpus_get(gemm.c, c, sizeof c);
    check_product(name, c);
}

static void check_alone(CUmodule module) {
    check_right(module, "tma_gemm", 1);
}

CORPUS_TEST(corpus_gemm, product_is_that_of_the_host,
            { cr_assert_eq(corpus_each("tma_gemm", check_alone), 2); })

static void check_pairs(CUmodule module) {
    check_right(module, "tma_gemm_pairs", TMA_GEMM_PAIR);
}

CORPUS_TEST(corpus_gemm, product_in_clusters_is_that_of_the_host,
            { cr_assert_eq(corpus_each("tma_gemm", check_pairs), 2); })

/* Skips all but one in TOLLENS_TEST_ONE_IN of the similar tests; TOLLENS_TEST_SEED (0) selects
 * which. */
static void take_turn(unsigned long turn, unsigned long of) {
    const char *seed = getenv("TOLLENS_TEST_SEED");
    const unsigned long run = seed != NULL ? strtoul(seed, NULL, 10) : 0;
    if (getenv("TOLLENS_TEST_ONE_IN") == NULL || turn % of == run % of) return;
    cr_skip_test("another TOLLENS_TEST_SEED takes this order");
}

/* Both, in an order that a seed decides. */
static void run_seed(const char *seed) {
    take_turn(strtoul(seed, NULL, 10), 3);
    corpus_check_all("1");
    setenv("TOLLENS_SOFT_SEED", seed, 1);
    cr_assert_eq(corpus_each("tma_gemm", check_alone), 2);
    cr_assert_eq(corpus_each("tma_gemm", check_pairs), 2);
}

#define SEED(seed)                                                                                 \
    Test(corpus_gemm, finds_nothing_with_seed_##seed) {                                            \
        run_seed(#seed);                                                                           \
    }
SEED(1)
SEED(2)
SEED(3)
SEED(4)
SEED(5)
SEED(6)

/* ---- mistakes ---- */

/* The number of the line of tma_gemm.cu that nvcc says a statement with a text is on: its last one,
 * not counting a line of what it clobbers. */
static unsigned line_with(const char *text) {
    FILE *file = fopen("runtime/soft/corpus/tma_gemm.cu", "r");
    char line[256];
    unsigned number = 0;
    bool seen = false, ended = false;
    cr_assert(file != NULL);
    while (!ended && fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(line);
        number += strncmp(line + strspn(line, " "), ": \"memory\"", 10) != 0 || !seen;
        seen |= strstr(line, text) != NULL;
        ended = seen && length > 1 && line[length - 2] == ';';
    }
    fclose(file);
    cr_assert(ended, "%s is nowhere", text);
    return number;
}

/* A kernel with a mistake must be reported: the kind, and a source line that has a text, which of
 * a race may be that of the other access. */
static void check_mistake(const char *name, unsigned blocks, int swizzle, const char *seed,
                          const char *kind, const char *at) {
    char place[64], report[128];
    corpus_check_all("1");
    setenv("TOLLENS_SOFT_SEED", seed, 1);
    test_capture(stderr);
    test_soft_open();
    char *text = test_fixture("corpus", "tma_gemm_90_lines.ptx");
    struct gemm gemm = gemm_of(blocks, swizzle);
    (void)run(test_load(text), name, &gemm);
    free(text);
    const char *said = test_captured(stderr);
    snprintf(report, sizeof report, "%s in kernel %s,", kind, name);
    snprintf(place, sizeof place, "tma_gemm.cu:%u", line_with(at));
    const char *line = strstr(said, report), *found = NULL;
    for (; line != NULL && found == NULL; line = strstr(line + 1, report)) {
        const char *end = strchr(line, '\n');
        found = strstr(line, place);
        if (found != NULL && end != NULL && found > end) found = NULL;
    }
    cr_assert(found != NULL, "%s, seed %s: no %s at %s:\n%s", name, seed, kind, place, said);
}

#define MISTAKE(name, blocks, swizzle, kind, at)                                                   \
    Test(corpus_gemm, name##_is_reported) {                                                        \
        take_turn(__LINE__, 2);                                                                    \
        check_mistake(#name, blocks, swizzle, "0", kind, at);                                      \
    }                                                                                              \
    Test(corpus_gemm, name##_is_reported_in_another_order) {                                       \
        take_turn(__LINE__ + 1, 2);                                                                \
        check_mistake(#name, blocks, swizzle, "7", kind, at);                                      \
    }

MISTAKE(no_wgmma_fence, 1, SWIZZLE_128B, "missing wgmma.fence", "wgmma.mma_async")
MISTAKE(no_proxy_fence, 1, SWIZZLE_128B, "missing proxy fence", "tensor.2d.global.shared::cta")
MISTAKE(no_product_wait, 1, SWIZZLE_128B, "product not waited for", "float2 *>(&tile")
MISTAKE(no_full_wait, 1, SWIZZLE_128B, "data race", "wgmma.mma_async")
MISTAKE(wrong_phase, 1, SWIZZLE_128B, "data race", "wgmma.mma_async")
MISTAKE(wrong_swizzle, 1, SWIZZLE_128B, "other swizzle", "wgmma.mma_async")
MISTAKE(early_release, 1, SWIZZLE_128B, "data race", "bytes\"")
MISTAKE(no_cluster_barrier, TMA_GEMM_PAIR, SWIZZLE_128B, "block may not have begun",
        ".multicast::cluster")
MISTAKE(box_outside, 1, SWIZZLE_128B, "box outside tensor", "bytes\"")
MISTAKE(small_count, 1, SWIZZLE_128B, "data race", "wgmma.mma_async")
MISTAKE(large_count, 1, SWIZZLE_128B, "no end", "mbarrier.try_wait")

/* A map of another swizzle than the kernel's descriptors. */
Test(corpus_gemm, map_without_swizzle_is_reported) {
    check_mistake("tma_gemm", 1, SWIZZLE_NONE, "0", "other swizzle", "wgmma.mma_async");
}
