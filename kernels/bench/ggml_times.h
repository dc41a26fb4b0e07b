/*
 * ggml's times of products with quantised weights, from the output of llama.cpp's
 * `test-backend-ops perf -o MUL_MAT` on the same device: lines such as
 *
 *     MUL_MAT(type_a=q4_K,type_b=f32,m=4096,n=512,k=14336,bs=[1,1],nr=[1,1],per=[0,1,2,3]):
 *         1491 runs - 671.02 us/run - 60.13 GFLOP/run - 89.61 TFLOPS
 *
 * each on one line. It multiplies one matrix over and over, as our hot rows do. It is another run,
 * so what is beside it has no interval. Internal: not installed.
 */
#ifndef KN_GGML_TIMES_H
#define KN_GGML_TIMES_H

#include "tollens.h"

#include <stddef.h>

enum { KN_GGML_TIMES_MAX = 256 };

/* m rows of weights, n columns, k elements of each. */
struct kn_ggml_times {
    struct {
        char type[16];
        size_t m, n, k;
        double us;
    } rows[KN_GGML_TIMES_MAX];
    size_t count;
};

/* Reads the products of one batch by fp32, on backends whose names begin with CUDA, or without a
 * name. TOL_UNREADABLE: the file cannot be read. TOL_INVALID_FILE: it has no such line. */
tol_status kn_ggml_times_read(const char *path, struct kn_ggml_times *times);

/* The microseconds of a product, the first one in the file; 0: it is not there. The type's letters
 * may be of either case. */
double kn_ggml_times_us(const struct kn_ggml_times *times, const char *type, size_t m, size_t n,
                        size_t k);

#endif
