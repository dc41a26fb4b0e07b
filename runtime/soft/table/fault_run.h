/*
 * Faults: kernels that must fail, each a file of fixtures/ptx/faults, and their codes.
 */
#ifndef SOFT_FAULT_RUN_H
#define SOFT_FAULT_RUN_H

#include "tollens/cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* Threads in the one block that is launched, and bytes at its parameter "data". */
enum { FAULT_THREADS = 64, FAULT_BYTES = 1 << 20 };

/* The result of a file: the first failing call and its code. */
struct fault_outcome {
    CUresult code;
    char call[32]; /* "load", "launch", "synchronize"; "none" where nothing failed */
    char log[512]; /* of the JIT */
};

/* Runs the kernel "fault" of a PTX file on a driver, in a separate process, because a fault ends a
 * context. false: it could not run, or had not ended after 60 seconds; message has the reason. Do
 * not open a driver in the calling process before. */
bool fault_run(const char *driver, const char *path, struct fault_outcome *outcome, char *message,
               size_t message_bytes);

/* The names of all faults of a folder, without ".ptx", sorted; NULL if it cannot be read. The
 * caller frees the array and each name. */
char **fault_names(const char *folder, size_t *count);

#endif
