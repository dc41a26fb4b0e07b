/*
 * gemm-table: runs the corpus's product of matrices by tensor maps and wgmma on a driver, alone and
 * in clusters of two, and compares each with the host's product.
 *
 *   gemm-table [--driver PATH] [PTX]
 *     --driver PATH   the driver library: libcuda.so.1 (default), or the soft device
 *     PTX             the kernels: fixtures/ptx/corpus/tma_gemm_90.ptx near the program (default)
 *
 * Every sum of the product is exact, so that all orders of additions give the same bits. Exit code:
 * 0 the same, 1 not, 2 for an error.
 */
#include "table_device.h"

#include "corpus/tma_gemm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Tiles at the edges are partly outside; the ring of stages is used twice. */
enum { M = 200, N = 200, K_TILES = 8, K = K_TILES * TMA_GEMM_TILE_K };

/* CUtensorMapDataType, CUtensorMapSwizzle */
enum { FLOAT32 = 7, BFLOAT16 = 9, SWIZZLE_NONE = 0, SWIZZLE_128B = 3 };

enum { LOG = 512, TEXT_MAX = 1 << 20 };

static int gemm_table_ended(const char *what, CUresult code) {
    fprintf(stderr, "gemm-table: %s: %d\n", what, (int)code);
    return 2;
}

static const char *find_ptx(char *path, size_t bytes) {
    static const char *const roots[] = {"", "../", "../../"};
    char own[3072];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, bytes, "%s%sfixtures/ptx/corpus/tma_gemm_90.ptx", own, roots[i]);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}

static char *gemm_table_read_text(const char *path) {
    static char text[TEXT_MAX];
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    if (file != NULL) fclose(file);
    return length > 0 ? text : NULL;
}

/* The upper half of a single, which is exact for these. */
static uint16_t bf16_of(int x) {
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

struct gemm {
    CUdeviceptr a, b, c;
    CUtensorMap a_map, b_map, c_map;
    int k_tiles;
};

static CUresult gemm_table_map(struct table_device *device, CUtensorMap *made, int type,
                               CUdeviceptr tensor, const unsigned size[2], unsigned box_columns,
                               unsigned box_rows) {
    cuuint64_t sizes[2] = {size[0], size[1]};
    cuuint64_t strides[1] = {(cuuint64_t)size[0] * (type == FLOAT32 ? 4 : 2)};
    cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
    int swizzle = type == FLOAT32 ? SWIZZLE_NONE : SWIZZLE_128B;
    return device->cuTensorMapEncodeTiled(made, type, 2, (void *)(uintptr_t)tensor, sizes, strides,
                                          box, steps, 0, swizzle, 0, 0);
}

static CUresult gemm_table_fill(struct table_device *device, CUdeviceptr *to, unsigned count,
                                unsigned first) {
    static uint16_t numbers[M * K > N * K ? M * K : N * K];
    for (uint32_t i = 0; i < count; i++) numbers[i] = bf16_of(tma_gemm_input(i + first));
    CUresult code = device->cuMemAlloc_v2(to, 2ull * count);
    return code == CUDA_SUCCESS ? device->cuMemcpyHtoD_v2(*to, numbers, 2ull * count) : code;
}

/* blocks: of a cluster. */
static CUresult gemm_table_run(struct table_device *device, CUmodule module, const char *name,
                               unsigned blocks, float *product) {
    const unsigned a[2] = {K, M}, b[2] = {K, N}, c[2] = {N, M};
    struct gemm gemm = {.k_tiles = K_TILES};
    void *arguments[] = {&gemm.a_map, &gemm.b_map, &gemm.c_map, &gemm.k_tiles};
    CUfunction kernel = NULL;
    unsigned rows = (M + TMA_GEMM_TILE_M - 1) / TMA_GEMM_TILE_M;
    unsigned columns = (N + TMA_GEMM_TILE_N - 1) / TMA_GEMM_TILE_N;
    CUresult code = device->cuModuleGetFunction(&kernel, module, name);
    if (code == CUDA_SUCCESS) code = gemm_table_fill(device, &gemm.a, M * K, 0);
    if (code == CUDA_SUCCESS) code = gemm_table_fill(device, &gemm.b, N * K, 7777);
    if (code == CUDA_SUCCESS) code = device->cuMemAlloc_v2(&gemm.c, sizeof(float) * M * N);
    if (code == CUDA_SUCCESS) {
        code = gemm_table_map(device, &gemm.a_map, BFLOAT16, gemm.a, a, TMA_GEMM_TILE_K,
                              TMA_GEMM_TILE_M);
    }
    if (code == CUDA_SUCCESS) {
        code = gemm_table_map(device, &gemm.b_map, BFLOAT16, gemm.b, b, TMA_GEMM_TILE_K,
                              TMA_GEMM_TILE_N / blocks);
    }
    if (code == CUDA_SUCCESS) {
        code =
            gemm_table_map(device, &gemm.c_map, FLOAT32, gemm.c, c, TMA_GEMM_TILE_N, TMA_GEMM_ROWS);
    }
    if (code == CUDA_SUCCESS) {
        code = device->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          TMA_GEMM_SHARED);
    }
    if (code == CUDA_SUCCESS) {
        code = device->cuLaunchKernel(kernel, rows, columns, 1, TMA_GEMM_THREADS, 1, 1,
                                      TMA_GEMM_SHARED, NULL, arguments, NULL);
    }
    if (code == CUDA_SUCCESS) code = device->cuCtxSynchronize();
    if (code == CUDA_SUCCESS) {
        code = device->cuMemcpyDtoH_v2(product, gemm.c, sizeof(float) * M * N);
    }
    if (gemm.a != 0) device->cuMemFree_v2(gemm.a);
    if (gemm.b != 0) device->cuMemFree_v2(gemm.b);
    if (gemm.c != 0) device->cuMemFree_v2(gemm.c);
    return code;
}

/* The number of elements that differ from the host's product. */
static unsigned gemm_table_wrong(const float *product) {
    static int a[M * K], b[N * K];
    unsigned count = 0;
    for (uint32_t i = 0; i < M * K; i++) a[i] = tma_gemm_input(i);
    for (uint32_t i = 0; i < N * K; i++) b[i] = tma_gemm_input(i + 7777);
    for (unsigned i = 0; i < M * N; i++) {
        int sum = 0;
        for (unsigned k = 0; k < K; k++) sum += a[i / N * K + k] * b[i % N * K + k];
        count += product[i] != (float)sum;
    }
    return count;
}

static int gemm_table_compare(struct table_device *device, const char *text) {
    static const struct {
        const char *name;
        unsigned blocks;
    } kernels[] = {{"tma_gemm", 1}, {"tma_gemm_pairs", TMA_GEMM_PAIR}};
    static float product[M * N];
    char log[LOG] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUmodule module = NULL;
    int verdict = 0;
    if (device->cuTensorMapEncodeTiled == NULL) return gemm_table_ended("no tensor maps", 0);
    CUresult code = device->cuModuleLoadDataEx(&module, text, 2, options, values);
    if (code != CUDA_SUCCESS) return gemm_table_ended(log, code);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        code = gemm_table_run(device, module, kernels[i].name, kernels[i].blocks, product);
        if (code != CUDA_SUCCESS) return gemm_table_ended(kernels[i].name, code);
        unsigned count = gemm_table_wrong(product);
        printf("%s %dx%dx%d on %s: %u of %d elements differ from the host's\n", kernels[i].name, M,
               N, K, device->name, count, M * N);
        if (count > 0) verdict = 1;
    }
    device->cuModuleUnload(module);
    return verdict;
}

int main(int count, char **arguments) {
    const char *driver = "libcuda.so.1", *path = NULL;
    char near[4096];
    struct table_device device;
    int at = 1;
    if (count > 2 && strcmp(arguments[1], "--driver") == 0) {
        driver = arguments[2];
        at = 3;
    }
    if (count > at + 1 || (count > at && arguments[at][0] == '-')) {
        fprintf(stderr, "usage: gemm-table [--driver PATH] [PTX]\n");
        return 2;
    }
    path = count > at ? arguments[at] : find_ptx(near, sizeof near);
    const char *text = path != NULL ? gemm_table_read_text(path) : NULL;
    if (text == NULL) {
        fprintf(stderr, "gemm-table: %s cannot be read\n",
                path != NULL ? path : "fixtures/ptx/corpus/tma_gemm_90.ptx");
        return 2;
    }
    int verdict = 2;
    if (table_device_open(&device, driver)) {
        verdict = gemm_table_compare(&device, text);
    } else {
        fprintf(stderr, "gemm-table: %s\n", device.message);
    }
    table_device_close(&device);
    return verdict;
}
