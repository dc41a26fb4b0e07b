/*
 * Shared by tensors.cu and its test: sizes, and inputs whose products and sums are exact in every
 * used precision, so that the order of additions does not matter.
 */
#ifndef CORPUS_TENSORS_H
#define CORPUS_TENSORS_H

#include "corpus.h"

enum { TENSORS_M = 64, TENSORS_N = 48, TENSORS_K = 80 };

/* Whole numbers from -8 to 8: exact as halves, and so is what 80 products of them add up to in a
 * single. */
CORPUS_FN int tensors_input(uint32_t i) {
    return (int)(corpus_mix(i) % 17) - 8;
}

/* Quarters from -2 to 2, whose sums of products are exact in a single. */
CORPUS_FN float tensors_quarter(uint32_t i) {
    return 0.25f * (float)tensors_input(i);
}

#endif
