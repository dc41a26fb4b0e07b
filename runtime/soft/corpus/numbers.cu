// Whole numbers and bits, by the compiler's own operations and by intrinsics; see numbers.h.
#include "numbers.h"

extern "C" __global__ void wide_numbers(uint64_t *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint64_t a = numbers_input(i), b = numbers_input(i + 77);
    out[i] = numbers_gcd(a, b);
    out[count + i] = numbers_power(a, b, (b >> 33) + 2);
    out[2 * count + i] = numbers_root(a);
    out[3 * count + i] = (uint64_t)numbers_signed((int64_t)a, (int64_t)b);
    out[4 * count + i] = __umul64hi(a, b) ^ (uint64_t)__mul64hi((int64_t)a, (int64_t)b);
}

extern "C" __global__ void narrow_numbers(uint32_t *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = numbers_narrow(corpus_mix(i));
}

extern "C" __global__ void bits(uint32_t *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint64_t wide = numbers_input(i);
    uint32_t x = (uint32_t)wide, y = corpus_mix(i + 5);
    out[i] = __brev(x) + 3 * (uint32_t)(__brevll(wide) >> 32);
    out[count + i] = __popc(x) + 100 * __popcll(wide);
    out[2 * count + i] = __clz(x) + 100 * __clzll(wide);
    out[3 * count + i] = __ffs(x) + 100 * __ffsll(wide);
    out[4 * count + i] = __funnelshift_l(x, y, i) ^ __funnelshift_rc(x, y, i % 40);
    out[5 * count + i] = __byte_perm(x, y, i * 0x1357);
    out[6 * count + i] = numbers_interleave(x, y);
    out[7 * count + i] = __sad((int)x, (int)y, 5u) + __mulhi((int)x, (int)y) + __umulhi(x, y);
    out[8 * count + i] = __hadd((int)x, (int)y) ^ __rhadd((int)x, (int)y) ^ __mul24((int)x, (int)y);
}
