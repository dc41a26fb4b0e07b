/*
 * The speed of corpus/tma_gemm.cu: boxes by tensor maps, and products by wgmma. Its factors are
 * numbers as a network has them, not whole ones, so that sums are cut off as they usually are.
 */
#include "bench.h"

#include "api/export.h"
#include "corpus/tma_gemm.h"
#include "grid/grid.h"
#include "ops/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REPEAT_SECONDS 0.3
enum { N = 512, REPEAT_LEAST = 3, FLOAT32 = 7, BFLOAT16 = 9, SWIZZLE_128B = 3 };

struct matrices {
    uint16_t a[N * N], b[N * N];
    float c[N * N];
};

static void bench_gemm_fill(uint16_t *to, uint32_t seed) {
    for (uint32_t i = 0; i < N * N; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = (uint16_t)bf16_of_float((float)(seed >> 8) * 0x1p-24f - 0.5f);
    }
}

static bool is_right(const struct matrices *m) {
    bool ok = true;
    for (uint32_t i = 0; i < N * N; i += 1021) {
        double sum = 0;
        for (uint32_t k = 0; k < N; k++) {
            sum += (double)float_of_bf16(m->a[i / N * N + k]) *
                   (double)float_of_bf16(m->b[i % N * N + k]);
        }
        ok &= fabs((double)m->c[i] - sum) < 1e-3;
    }
    return ok;
}

static CUresult put_map(CUtensorMap *map, int type, CUdeviceptr tensor, unsigned box_columns,
                        unsigned box_rows, int swizzle) {
    cuuint64_t sizes[2] = {N, N}, strides[1] = {type == FLOAT32 ? N * 4 : N * 2};
    cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
    return cuTensorMapEncodeTiled(map, type, 2, (void *)(uintptr_t)tensor, sizes, strides, box,
                                  steps, 0, swizzle, 0, 0);
}

static CUresult bench_gemm_repeat(CUfunction kernel, void **arguments,
                                  struct bench_figure *figure) {
    CUresult result = CUDA_SUCCESS;
    double all = 0;
    for (int i = 0; (i < REPEAT_LEAST || all < REPEAT_SECONDS) && result == CUDA_SUCCESS; i++) {
        uint64_t before = soft_launch_executed();
        double begin = bench_now(), cpu_begin = bench_cpu();
        result = cuLaunchKernel(kernel, N / TMA_GEMM_TILE_M, N / TMA_GEMM_TILE_N, 1,
                                TMA_GEMM_THREADS, 1, 1, TMA_GEMM_SHARED, NULL, arguments, NULL);
        if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
        double ms = (bench_now() - begin) * 1e3, cpu_ms = (bench_cpu() - cpu_begin) * 1e3;
        all += ms / 1e3;
        figure->instructions = soft_launch_executed() - before;
        figure->products = (double)N * N * N;
        if (i == 0 || ms < figure->ms) figure->ms = ms;
        if (i == 0 || cpu_ms < figure->cpu_ms) figure->cpu_ms = cpu_ms;
    }
    return result;
}

/* a: space for all three matrices. */
static CUresult bench_gemm_measure(CUmodule module, CUdeviceptr a, struct matrices *m,
                                   struct bench_figure *figure) {
    CUdeviceptr b = a + sizeof m->a, c = b + sizeof m->b;
    CUtensorMap maps[3];
    CUfunction kernel = NULL;
    int k_tiles = N / TMA_GEMM_TILE_K;
    void *arguments[] = {&maps[0], &maps[1], &maps[2], &k_tiles};
    CUresult result = cuModuleGetFunction(&kernel, module, "tma_gemm");
    if (result == CUDA_SUCCESS) {
        result = cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    TMA_GEMM_SHARED);
    }
    if (result == CUDA_SUCCESS) result = cuMemcpyHtoD_v2(a, m, sizeof *m);
    if (result == CUDA_SUCCESS) {
        result = put_map(&maps[0], BFLOAT16, a, TMA_GEMM_TILE_K, TMA_GEMM_TILE_M, SWIZZLE_128B);
    }
    if (result == CUDA_SUCCESS) {
        result = put_map(&maps[1], BFLOAT16, b, TMA_GEMM_TILE_K, TMA_GEMM_TILE_N, SWIZZLE_128B);
    }
    if (result == CUDA_SUCCESS) {
        result = put_map(&maps[2], FLOAT32, c, TMA_GEMM_TILE_N, TMA_GEMM_ROWS, 0);
    }
    if (result == CUDA_SUCCESS) result = bench_gemm_repeat(kernel, arguments, figure);
    if (result == CUDA_SUCCESS) result = cuMemcpyDtoH_v2(m->c, c, sizeof m->c);
    return result;
}

bool bench_gemm(struct bench_figure *figure) {
    char *text = bench_read("fixtures/ptx/corpus/tma_gemm_90.ptx");
    struct matrices *m = calloc(1, sizeof *m);
    CUmodule module = NULL;
    CUdeviceptr room = 0;
    if (text == NULL || m == NULL) {
        free(text);
        free(m);
        return false;
    }
    bench_gemm_fill(m->a, 1);
    bench_gemm_fill(m->b, 2);
    CUresult result = cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    free(text);
    if (result == CUDA_SUCCESS) result = cuMemAlloc_v2(&room, sizeof *m);
    if (result == CUDA_SUCCESS) result = bench_gemm_measure(module, room, m, figure);
    bool ok = result == CUDA_SUCCESS ? is_right(m) : bench_failed("tma_gemm", (int)result);
    if (result == CUDA_SUCCESS && !ok)
        fprintf(stderr, "bench-soft: tma_gemm gives wrong results\n");
    if (room != 0) cuMemFree_v2(room);
    if (module != NULL) cuModuleUnload(module);
    free(m);
    return ok;
}
