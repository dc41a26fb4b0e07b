/*
 * The kernels of corpus/speed.cu, on inputs large enough to take milliseconds. A result that is
 * wrong has no speed, so each is looked at before it is measured.
 */
#include "bench.h"

#include "api/export.h"
#include "grid/grid.h"
#include "ops/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches of a kernel are repeated for so long, and at least so often. */
#define REPEAT_SECONDS 0.15
enum { REPEAT_LEAST = 3 };

enum {
    N = 512, /* rows and columns of the matrices */
    COUNT = 1 << 22,
    WIDTH = 1024, /* of softmax's rows */
    FLOAT = sizeof(float)
};

/* The inputs and the output of a kernel, as the host has them. */
struct data {
    void *a, *b, *c;
};

static bool bench_kernels_is_product(const struct data *data) {
    const float *a = data->a, *b = data->b, *c = data->c;
    bool ok = true;
    for (uint32_t i = 0; i < N * N; i += 1021) {
        double sum = 0;
        for (uint32_t k = 0; k < N; k++) sum += (double)a[i / N * N + k] * (double)b[k * N + i % N];
        ok &= fabs((double)c[i] - sum) < 1e-3 * N;
    }
    return ok;
}

static bool bench_kernels_is_sum(const struct data *data) {
    const float *a = data->a, *b = data->b, *c = data->c;
    bool ok = true;
    for (uint32_t i = 0; i < COUNT; i += 1021) ok &= fabsf(a[i] + b[i] - c[i]) <= 0;
    return ok;
}

static bool is_softmax(const struct data *data) {
    const float *c = data->c;
    bool ok = true;
    for (uint32_t row = 0; row < COUNT / WIDTH; row += 101) {
        double sum = 0;
        for (uint32_t i = 0; i < WIDTH; i++) sum += (double)c[row * WIDTH + i];
        ok &= fabs(sum - 1) < 1e-4;
    }
    return ok;
}

static bool are_scaled_bytes(const struct data *data) {
    const uint8_t *a = data->a, *c = data->c;
    const int8_t *b = data->b;
    bool ok = true;
    for (uint32_t i = 0; i < COUNT; i += 1021) ok &= c[i] == (uint8_t)(a[i] * b[i] >> 3);
    return ok;
}

static bool are_scaled_halves(const struct data *data) {
    const uint16_t *a = data->a, *c = data->c;
    const int16_t *b = data->b;
    bool ok = true;
    for (uint32_t i = 0; i < COUNT; i += 1021) {
        ok &= c[i] == bf16_of_float(float_of_f16(a[i]) * (float)b[i]);
    }
    return ok;
}

static const struct kernel {
    const char *name;
    unsigned grid[2], block[2];
    size_t a_bytes, b_bytes, c_bytes; /* b: 0 where there is none */
    bool floats;                      /* the inputs are; else any bits below 2^14 */
    uint32_t number;                  /* the last argument */
    bool (*is_right)(const struct data *data);
} kernels[] = {
    {"gemm_naive",
     {16, 16},
     {32, 32},
     N *N *FLOAT,
     N *N *FLOAT,
     N *N *FLOAT,
     true,
     N,
     bench_kernels_is_product},
    {"gemm_tiled",
     {16, 16},
     {32, 32},
     N *N *FLOAT,
     N *N *FLOAT,
     N *N *FLOAT,
     true,
     N,
     bench_kernels_is_product},
    {"gemm_blocked",
     {8, 8},
     {16, 16},
     N *N *FLOAT,
     N *N *FLOAT,
     N *N *FLOAT,
     true,
     N,
     bench_kernels_is_product},
    {"add_vectors",
     {COUNT / 256, 1},
     {256, 1},
     COUNT *FLOAT,
     COUNT *FLOAT,
     COUNT *FLOAT,
     true,
     COUNT,
     bench_kernels_is_sum},
    {"softmax_rows",
     {COUNT / WIDTH, 1},
     {256, 1},
     COUNT *FLOAT,
     0,
     COUNT *FLOAT,
     true,
     WIDTH,
     is_softmax},
    {"scale_bytes",
     {COUNT / 256, 1},
     {256, 1},
     COUNT,
     COUNT,
     COUNT,
     false,
     COUNT,
     are_scaled_bytes},
    {"scale_halves",
     {COUNT / 256, 1},
     {256, 1},
     COUNT * 2,
     COUNT * 2,
     COUNT * 2,
     false,
     COUNT,
     are_scaled_halves},
};

/* Those of speed.cu, then the product by wgmma, then look-ups. */
enum { OWN = sizeof kernels / sizeof kernels[0] };

unsigned bench_kernel_count(void) {
    return OWN + 1 + bench_lookup_count();
}

const char *bench_kernel_name(unsigned kernel) {
    return kernel < OWN    ? kernels[kernel].name
           : kernel == OWN ? "tma_gemm"
                           : bench_lookup_name(kernel - OWN - 1);
}

static bool bench_kernels_others(const char *only, struct bench_figures *figures) {
    bool ok = true;
    for (unsigned k = OWN; ok && k < bench_kernel_count(); k++) {
        if (only != NULL && strcmp(only, bench_kernel_name(k)) != 0) continue;
        ok = k == OWN ? bench_gemm(&figures->kernels[k])
                      : bench_lookup(k - OWN - 1, &figures->kernels[k]);
    }
    return ok;
}

static void *make_input(const struct kernel *kernel, size_t bytes, uint32_t seed) {
    uint8_t *data = malloc(bytes > 0 ? bytes : 1);
    if (data == NULL) return NULL;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        seed = seed * 1664525 + 1013904223;
        float number = (float)(seed >> 8) * 0x1p-24f - 0.5f;
        uint32_t bits = seed >> 2 & 0x3fff3fff;
        memcpy(data + i, kernel->floats ? (const void *)&number : (const void *)&bits, 4);
    }
    return data;
}

/* One launch and the wait for it. */
static bool bench_kernels_run_once(const struct kernel *kernel, CUfunction function,
                                   void **arguments, double *seconds, double *cpu_seconds) {
    double begin = bench_now(), cpu_begin = bench_cpu();
    CUresult result =
        cuLaunchKernel(function, kernel->grid[0], kernel->grid[1], 1, kernel->block[0],
                       kernel->block[1], 1, 0, NULL, arguments, NULL);
    if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
    *seconds = bench_now() - begin;
    *cpu_seconds = bench_cpu() - cpu_begin;
    return result == CUDA_SUCCESS || bench_failed(kernel->name, (int)result);
}

static bool bench_kernels_repeat(const struct kernel *kernel, CUfunction function, void **arguments,
                                 struct bench_figure *figure) {
    double all = 0;
    for (int i = 0; i < REPEAT_LEAST || all < REPEAT_SECONDS; i++) {
        uint64_t before = soft_launch_executed();
        double seconds = 0, cpu_seconds = 0;
        if (!bench_kernels_run_once(kernel, function, arguments, &seconds, &cpu_seconds))
            return false;
        all += seconds;
        figure->instructions = soft_launch_executed() - before;
        if (i == 0 || seconds * 1e3 < figure->ms) figure->ms = seconds * 1e3;
        if (i == 0 || cpu_seconds * 1e3 < figure->cpu_ms) figure->cpu_ms = cpu_seconds * 1e3;
    }
    return true;
}

static bool bench_kernels_measure(const struct kernel *kernel, CUfunction function,
                                  struct data *data, struct bench_figure *figure) {
    CUdeviceptr a = 0, b = 0, c = 0;
    uint32_t number = kernel->number;
    void *three[] = {&a, &b, &c, &number}, *two[] = {&a, &c, &number};
    void **arguments = kernel->b_bytes > 0 ? three : two;
    double seconds = 0, cpu_seconds = 0;
    bool ok = cuMemAlloc_v2(&a, kernel->a_bytes) == CUDA_SUCCESS &&
              cuMemAlloc_v2(&c, kernel->c_bytes) == CUDA_SUCCESS &&
              cuMemcpyHtoD_v2(a, data->a, kernel->a_bytes) == CUDA_SUCCESS;
    if (ok && kernel->b_bytes > 0) {
        ok = cuMemAlloc_v2(&b, kernel->b_bytes) == CUDA_SUCCESS &&
             cuMemcpyHtoD_v2(b, data->b, kernel->b_bytes) == CUDA_SUCCESS;
    }
    ok = ok && bench_kernels_run_once(kernel, function, arguments, &seconds, &cpu_seconds) &&
         cuMemcpyDtoH_v2(data->c, c, kernel->c_bytes) == CUDA_SUCCESS;
    if (ok && !kernel->is_right(data)) {
        fprintf(stderr, "bench-soft: %s gives wrong results\n", kernel->name);
        ok = false;
    }
    ok = ok && bench_kernels_repeat(kernel, function, arguments, figure);
    if (a != 0) cuMemFree_v2(a);
    if (b != 0) cuMemFree_v2(b);
    if (c != 0) cuMemFree_v2(c);
    return ok;
}

bool bench_kernels(const char *only, struct bench_figures *figures) {
    char *text = bench_read("fixtures/ptx/corpus/speed_80.ptx");
    CUmodule module = NULL;
    if (text == NULL) return false;
    CUresult result = cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    free(text);
    if (result != CUDA_SUCCESS) return bench_failed("cuModuleLoadDataEx", (int)result);
    bool ok = true;
    for (unsigned k = 0; ok && k < OWN; k++) {
        const struct kernel *kernel = &kernels[k];
        if (only != NULL && strcmp(only, kernel->name) != 0) continue;
        CUfunction function = NULL;
        result = cuModuleGetFunction(&function, module, kernel->name);
        struct data data = {.a = make_input(kernel, kernel->a_bytes, 1),
                            .b = make_input(kernel, kernel->b_bytes, 2),
                            .c = malloc(kernel->c_bytes)};
        ok = result == CUDA_SUCCESS && data.a != NULL && data.b != NULL && data.c != NULL &&
             bench_kernels_measure(kernel, function, &data, &figures->kernels[k]);
        free(data.a);
        free(data.b);
        free(data.c);
    }
    cuModuleUnload(module);
    return ok && bench_kernels_others(only, figures);
}
