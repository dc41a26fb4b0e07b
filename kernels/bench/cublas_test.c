/*
 * A cuBLAS handle on a context and a stream of the runtime. Needs a GPU and libcublas.
 */
#include "bench/cublas.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(cublas, .fini = test_end);

enum { M = 70, N = 50, K = 300 };

static struct tol_buffer *drawn(size_t count, unsigned *state) {
    struct tol_buffer *buffer = NULL;
    float *values = malloc(count * sizeof *values);
    cr_assert(values != NULL);
    for (size_t i = 0; i < count; i++) {
        *state = *state * 1103515245u + 12345u;
        values[i] = (float)(int)(*state >> 16 & 7) - 3; /* whole, so that no sum is rounded */
    }
    MUST(tol_buffer_create(test_context(), count, sizeof *values, &buffer));
    MUST(tol_buffer_write(buffer, values, count * sizeof *values));
    free(values);
    return buffer;
}

/* cuBLAS works between kernels of the runtime, on the same stream, and gives the same bits. */
Test(cublas, a_handle_on_our_stream_gives_the_same_whole_numbers, .timeout = 120) {
    struct kn_kernels *kernels = NULL;
    struct tol_stream *stream = NULL;
    static float ours[M * N], theirs[M * N];
    unsigned state = 1;
    if (!test_on_gpu()) cr_skip_test("cuBLAS needs a GPU");
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    struct kn_cublas *cublas = kn_cublas_open(getenv("TOLLENS_CUBLAS"), stream);
    if (cublas == NULL) cr_skip_test("there is no libcublas.so.13 or .12 that works here");
    struct tol_buffer *a = drawn(M * K, &state), *b = drawn(K * N, &state);
    struct tol_buffer *c = drawn(M * N, &state), *d = drawn(M * N, &state);
    struct kn_gemm gemm = {.m = M,
                           .n = N,
                           .k = K,
                           .alpha = 1,
                           .a = {.buffer = a},
                           .b = {.buffer = b},
                           .c = {.buffer = c}};
    for (int turn = 0; turn < 4; turn++) {
        gemm.transpose_a = turn % 2 != 0, gemm.transpose_b = turn / 2 != 0;
        gemm.c.buffer = c;
        MUST(kn_gemm(kernels, stream, &gemm));
        gemm.c.buffer = d;
        MUST(kn_cublas_gemm(cublas, &gemm));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(c, ours, sizeof ours));
        MUST(tol_buffer_read(d, theirs, sizeof theirs));
        cr_assert(memcmp(ours, theirs, sizeof ours) == 0, "transpositions %d differ", turn);
    }
    kn_cublas_close(cublas);
    MUST(kn_gemm(kernels, stream, &gemm)); /* the context is as usable as before */
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(a), tol_buffer_destroy(b), tol_buffer_destroy(c), tol_buffer_destroy(d);
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
}
