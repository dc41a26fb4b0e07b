/*
 * Fuzz: what a fuzz target is. each fuzz_*.c beside it is one; libFuzzer, AFL++ and replay.c
 * drive them.
 */
#ifndef SOFT_FUZZ_H
#define SOFT_FUZZ_H

#include "tollens/cuda_abi.h"
#include "api/export.h"

#include <stddef.h>
#include <stdint.h>

/* The entry point, as libFuzzer names it. Any bytes may come; always returns 0. What must not be
 * ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The one context that a target has: the soft device with a little memory, one worker and a small
 * budget of instructions, so that nothing takes long. */
void fuzz_open(void);

/* The same after an error that stays with the context. */
void fuzz_reopen(void);

/* Ends the process, and says why. */
_Noreturn void fuzz_fail(const char *what, int result, const char *log);

/* Loads a text. NULL: it was refused, with a code of the loader's and a log that says why. */
CUmodule fuzz_load(const uint8_t *data, size_t size);

/* The input as one text that ends with a NUL; free it. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
