/*
 * Diagnostic: an error in PTX, with line, column and caret.
 *
 *     ptx:12:5: error: unknown instruction 'shflbfly'
 *         shflbfly.sync.b32 %r1, %r2, 1, 31, -1;
 *         ^
 *
 * cuModuleLoadDataEx writes this to the JIT's error log. Reading stops at the first error.
 */
#ifndef SOFT_DIAGNOSTIC_H
#define SOFT_DIAGNOSTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_diagnostic {
    const char *name; /* of the text, before the line number; NULL: "ptx" */
    const char *text; /* the PTX */
    size_t length;
    bool takes_newer; /* the text may be of a newer version of PTX than the driver's */
    bool failed;
    int result; /* the CUresult the failure maps to */
    char message[2048];
};

/* Notes an error at an offset of the text; all but the first are ignored. Always returns false, so
 * that a reader can `return soft_error(...)`. result is a CUresult. */
bool soft_error(struct soft_diagnostic *diagnostic, size_t offset, int result, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* The line, counted from 1, of an offset of the text. */
unsigned soft_line_of(const char *text, size_t length, size_t offset);

#endif
