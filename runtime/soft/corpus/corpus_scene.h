/*
 * Runs the corpus: programs in CUDA C, compiled by nvcc, in fixtures/ptx/corpus.
 *
 * The expected results are computed in plain C; if the nvcc source and the test share a header, by
 * the same functions. A check runs once per PTX version of a program. Nothing may appear on stderr
 * meanwhile, because every finding would be false.
 */
#ifndef SOFT_CORPUS_SCENE_H
#define SOFT_CORPUS_SCENE_H

#include "test/test_soft.h"

/* A test, and the same test with all checks on, with one worker and with several; the checks must
 * find nothing. The body is in braces. */
#define CORPUS_TEST(suite, name, ...)                                                              \
    static void suite##_##name(void) __VA_ARGS__ Test(suite, name) {                               \
        suite##_##name();                                                                          \
    }                                                                                              \
    Test(suite, name##_all_checks_on) {                                                            \
        corpus_check_all("1");                                                                     \
        suite##_##name();                                                                          \
    }                                                                                              \
    Test(suite, name##_all_checks_on_in_turns) {                                                   \
        corpus_check_all("3");                                                                     \
        suite##_##name();                                                                          \
    }
void corpus_check_all(const char *workers);

/* Calls check with each version of a program, loaded; returns how many there were. */
size_t corpus_each(const char *program, void (*check)(CUmodule module));

/* Device memory that ends with the check: with a copy of bytes, or (data NULL) with zeros. */
CUdeviceptr corpus_put(const void *data, size_t bytes);
void corpus_get(CUdeviceptr from, void *to, size_t bytes);

/* Frees the latest count blocks of that memory. */
void corpus_forget(size_t count);

/* Launches a kernel with the addresses of its arguments, and waits for it. */
#define CORPUS_LAUNCH(module, kernel, blocks, threads, shared, ...)                                \
    CORPUS_LAUNCH_2D(module, kernel, blocks, 1, threads, 1, shared, __VA_ARGS__)
#define CORPUS_LAUNCH_2D(module, kernel, bx, by, tx, ty, shared, ...)                              \
    do {                                                                                           \
        void *corpus_arguments[] = {__VA_ARGS__};                                                  \
        corpus_launch(module, kernel, (unsigned[]){bx, by, tx, ty, shared}, corpus_arguments);     \
    } while (0)
void corpus_launch(CUmodule module, const char *kernel, const unsigned shape[5], void **arguments);

/* The same as a cooperative launch, of one dimension. */
#define CORPUS_LAUNCH_COOPERATIVE(module, kernel, blocks, threads, ...)                            \
    do {                                                                                           \
        void *corpus_arguments[] = {__VA_ARGS__};                                                  \
        corpus_launch_cooperative(module, kernel, blocks, threads, corpus_arguments);              \
    } while (0)
void corpus_launch_cooperative(CUmodule module, const char *kernel, unsigned blocks,
                               unsigned threads, void **arguments);

/* The version that is being checked, for messages. */
const char *corpus_version(void);

#endif
