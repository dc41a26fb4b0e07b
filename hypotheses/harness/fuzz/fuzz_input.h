/*
 * Fuzz input: what the harness's fuzz targets share. Each fuzz_*.c beside it is one target;
 * libFuzzer or runtime/soft/tools/fuzz/replay.c drives it.
 */
#ifndef HYP_FUZZ_INPUT_H
#define HYP_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The entry point, as libFuzzer names it. Any bytes may come; always returns 0. A target ends the
 * process if a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says where which property does not hold, and removes the folder. */
void fuzz_complain(const char *file, int line, const char *property);

/* Ends the process if a property does not hold. */
#define FUZZ_HOLDS(property)                                                                       \
    do {                                                                                           \
        if (!(property)) {                                                                         \
            fuzz_complain(__FILE__, __LINE__, #property);                                          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* An empty folder of this process, in memory where the system has such a place. It is removed when
 * the process exits. */
const char *fuzz_folder(void);

/* Writes a file of the folder, NAME or BELOW/NAME, and returns its path in a static buffer. */
const char *fuzz_file(const char *name, const void *data, size_t size);

/* The input as one text that ends with a NUL; free it. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
