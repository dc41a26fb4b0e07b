/*
 * Faults: kernels that must fail, the texts of fixtures/ptx/faults, and their codes.
 */
#ifndef SOFT_FAULT_RUN_H
#define SOFT_FAULT_RUN_H

#include "tollens/cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* Threads in the one block that is launched, and bytes at its parameter "data". */
enum { FAULT_THREADS = 64, FAULT_BYTES = 1 << 20 };

struct fault {
    char name[64];
    char *text; /* PTX, NUL-terminated */
};

/* The result of a fault: the first failing call and its code. */
struct fault_outcome {
    CUresult code;
    char call[32]; /* "load", "launch", "synchronize"; "none" where nothing failed */
    char log[512]; /* of the JIT */
};

/* Runs the kernel "fault" of a text on a driver, in a separate process, because a fault ends a
 * context. false: it could not run, or had not ended after 60 seconds; message has the reason. Do
 * not open a driver in the calling process before. */
bool fault_run(const char *driver, const struct fault *fault, struct fault_outcome *outcome,
               char *message, size_t message_bytes);

/* All faults of a folder's .ptx files, sorted by name; NULL: it has none, or one is not readable.
 * The caller frees them with fault_free. */
struct fault *fault_read(const char *folder, size_t *count);
void fault_free(struct fault *faults, size_t count);

#endif
