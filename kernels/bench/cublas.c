/*
 * Loads cuBLAS and calls four of its functions.
 */
#include "cublas.h"

#include "core/check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* cudaDataType_t, cublasComputeType_t, cublasOperation_t, cublasGemmAlgo_t. */
enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_GEMM_DEFAULT = -1 };

struct kn_cublas {
    void *handle;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                CUdeviceptr a, int type_a, int lda, CUdeviceptr b, int type_b, int ldb,
                const void *beta, CUdeviceptr c, int type_c, int ldc, int compute, int algorithm);
};

static bool cublas_find(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

struct kn_cublas *kn_cublas_open(const char *path, struct tol_stream *stream) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    for (int i = 0; path == NULL && library == NULL && i < 2; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    }
    struct kn_cublas *cublas = calloc(1, sizeof *cublas);
    if (library == NULL || cublas == NULL) goto none;
    if (!cublas_find(library, "cublasCreate_v2", &cublas->create) ||
        !cublas_find(library, "cublasDestroy_v2", &cublas->destroy) ||
        !cublas_find(library, "cublasSetStream_v2", &cublas->set_stream) ||
        !cublas_find(library, "cublasGemmEx", &cublas->gemm)) {
        goto none;
    }
    /* It works in the context that is current, which is the device's primary one, as is ours. */
    if (tol_context_bind(tol_stream_context(stream)) != TOL_OK) goto none;
    if (cublas->create(&cublas->handle) != 0) goto none;
    if (cublas->set_stream(cublas->handle, tol_stream_handle(stream)) == 0) return cublas;
    cublas->destroy(cublas->handle);
none:
    free(cublas);
    return NULL;
}

void kn_cublas_close(struct kn_cublas *cublas) {
    if (cublas == NULL) return;
    cublas->destroy(cublas->handle);
    free(cublas);
}

static int cublas_type_of(enum kn_type type) {
    return type == KN_F16 ? CUDA_R_16F : type == KN_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* cuBLAS has columns where we have rows, so it is given the product of the transposes. */
tol_status kn_cublas_gemm(struct kn_cublas *cublas, const struct kn_gemm *g) {
    const int type = cublas_type_of(kn_gemm_input_type(g->precision));
    const int compute =
        g->precision == KN_GEMM_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int code =
        cublas->gemm(cublas->handle, g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                     g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)g->n, (int)g->m, (int)g->k,
                     &g->alpha, tol_buffer_address(g->b.buffer), type,
                     (int)(g->transpose_b ? g->k : g->n), tol_buffer_address(g->a.buffer), type,
                     (int)(g->transpose_a ? g->m : g->k), &g->beta, tol_buffer_address(g->c.buffer),
                     cublas_type_of(g->c_type), (int)g->n, compute, CUBLAS_GEMM_DEFAULT);
    return code == 0
               ? TOL_OK
               : tol_fail(__FILE__, __LINE__, TOL_UNSUPPORTED, "cublasGemmEx returned %d", code);
}
