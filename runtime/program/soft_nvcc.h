/*
 * The nvcc that programs call under `tollens soft` (runtime/soft/toolchain/README.md). Not
 * thread-safe.
 */
#ifndef HYP_SOFT_NVCC_H
#define HYP_SOFT_NVCC_H

#include <stdbool.h>
#include <stddef.h>

/* The nvcc of a CUDA toolkit: that of $TOLLENS_SOFT_REAL_NVCC, of PATH, of CUDA_HOME or CUDA_PATH,
 * or of /usr/local/cuda, other than this program. false: there is none. */
bool hyp_soft_nvcc_find(char *path, size_t bytes);

/* Runs the real nvcc so that its result has PTX. words are those after the program's name. assemble
 * takes ptxas's words and returns its exit code. Returns nvcc's exit code, or 255 after a sentence.
 */
int hyp_soft_nvcc(int count, char **words, int (*assemble)(int count, char **words));

#endif
