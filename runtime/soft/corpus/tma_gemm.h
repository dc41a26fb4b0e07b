/*
 * Shared by tma_gemm.cu and its test: tiles, the shape of a launch, and inputs whose products and
 * sums are exact in single precision, so that the order of additions does not matter.
 *
 * C[m][n] = sum over k of A[m][k] * B[n][k]. A and B are bf16, C is single precision, and all three
 * are row-major. A block computes a tile of C from boxes of 64 elements of k.
 */
#ifndef CORPUS_TMA_GEMM_H
#define CORPUS_TMA_GEMM_H

#include "corpus.h"

enum {
    TMA_GEMM_TILE_M = 128,
    TMA_GEMM_TILE_N = 128,
    TMA_GEMM_TILE_K = 64,
    TMA_GEMM_STAGES = 3,
    TMA_GEMM_THREADS = 384, /* a warpgroup that copies and two that multiply */
    TMA_GEMM_ROWS = 64,     /* of C in a stored box: a warpgroup's */
    TMA_GEMM_PAIR = 2,      /* blocks of a cluster, one above the other */
    /* Two factors per stage, C, the barriers, and alignment. */
    TMA_GEMM_SHARED = TMA_GEMM_STAGES * 2 * 128 * 128 + 128 * 128 * 4 + 1024 + 1024
};

/* Whole numbers from -8 to 8, exact in bf16; so are sums of 65536 products of them in a single. */
CORPUS_FN int tma_gemm_input(uint32_t i) {
    return (int)(corpus_mix(i) % 17) - 8;
}

#endif
