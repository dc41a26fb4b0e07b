// crc32c_chunks: out[b] = the remainder of chunk b of a range of device memory, for CRC-32C.
//
// The idea: a remainder is linear over GF(2), so each thread takes every 256th word, shifts what it
// has by 256 words with four look-ups, and adds the next: the reads of a warp are one line. At the
// end each shifts once more by its distance to the chunk's end, and the block adds up. Chunks are
// counted from the range's end, so that only the first may be short: zeros in front change nothing.
// Owner: block b owns chunk b; thread t its words t, t + 256, ...
// Bound by: look-ups in shared memory, one a byte. Requires: blockDim.x = 256.
#include "checksum_arguments.h"

// The product of two polynomials over GF(2), modulo that of CRC-32C; x^0 is the highest bit.
__device__ inline unsigned multiply(unsigned a, unsigned b) {
    unsigned product = 0;
#pragma unroll 8
    for (int bit = 31; bit >= 0; bit--) {
        product ^= a >> bit & 1 ? b : 0;
        b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

__device__ inline unsigned over_warp(unsigned value) {
    for (int lanes = 16; lanes > 0; lanes /= 2) value ^= __shfl_xor_sync(~0u, value, lanes);
    return value;
}

// Bytes as they are in a word, beginning at byte from.
__device__ inline unsigned gather(const unsigned char *bytes, unsigned from, unsigned end) {
    unsigned word = 0;
    for (unsigned i = from; i < end; i++) word |= (unsigned)bytes[i] << 8 * i;
    return word;
}

// first is a multiple of 4, and the range begins skip bytes after it: words words and tail bytes.
// shift has CHECKSUM_SHIFT_WORDS words: the four tables, then each thread's distance to the end.
// After the remainders out gets a word of the tail's bytes.
extern "C" __global__ void crc32c_chunks(const unsigned char *first, unsigned skip,
                                         unsigned long long words, unsigned tail,
                                         const unsigned *shift, unsigned *out) {
    __shared__ unsigned table[4][256], parts[CHECKSUM_THREADS / 32];
    const unsigned t = threadIdx.x;
    for (int j = 0; j < 4; j++) table[j][t] = shift[256 * j + t];
    const unsigned distance = shift[1024 + t];
    __syncthreads();
    const long long chunk = CHECKSUM_CHUNK_WORDS;
    const long long end = (long long)words - (long long)(gridDim.x - 1 - blockIdx.x) * chunk;
    const long long begin = end > chunk ? end - chunk : 0;
    const long long rows = (end - begin + CHECKSUM_THREADS - 1) / CHECKSUM_THREADS;
    const unsigned *in = (const unsigned *)first;
    long long k = end - rows * CHECKSUM_THREADS + t;
    unsigned sum = 0;
    if (k >= begin && k < end) sum = k == 0 && skip != 0 ? gather(first, skip, 4) : in[k];
#pragma unroll 4
    for (k += CHECKSUM_THREADS; k < end; k += CHECKSUM_THREADS) {
        sum = table[0][sum & 255] ^ table[1][sum >> 8 & 255] ^ table[2][sum >> 16 & 255] ^
              table[3][sum >> 24] ^ in[k];
    }
    sum = over_warp(multiply(sum, distance));
    if (t % 32 == 0) parts[t / 32] = sum;
    __syncthreads();
    if (t >= 32) return;
    sum = over_warp(t < CHECKSUM_THREADS / 32 ? parts[t] : 0);
    if (t != 0) return;
    out[blockIdx.x] = sum;
    if (blockIdx.x == 0) {
        const unsigned char *behind = first + 4 * words;
        out[gridDim.x] = words == 0 ? gather(behind + skip, 0, tail) : gather(behind, 0, tail);
    }
}
