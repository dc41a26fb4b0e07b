// Kernels that print and assert.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

__device__ const char *const names[3] = {"zero", "one", "many"};

extern "C" __global__ void talk(int32_t base) {
    int32_t n = base + (int32_t)threadIdx.x;
    const char *name = names[n < 2 ? n : 2];
    int printed = printf("thread %u of block %u: %d is %s, %5.2f, %c, %llx, %e, %s\n", threadIdx.x,
                         blockIdx.x, n, name, n / 3.0, 'a' + n, (unsigned long long)n << 33,
                         n * 1e-5f, n % 2 ? "odd" : "even");
    if (printed != 9) printf("not nine but %d\n", printed);
    if (n == 2) printf("100%% of %-4d|%04x|%+d|%g\n", n, n, n, 0.1 * n);
}

extern "C" __global__ void insist(const int32_t *values) {
    assert(values[threadIdx.x] >= 0);
    if (values[threadIdx.x] == 7) printf("seven\n");
}
