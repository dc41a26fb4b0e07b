/*
 * Line table: from an address of a program's code to its source line, by the debugging information
 * that a compiler leaves in the file (-g1 suffices).
 *
 * Source: DWARF Debugging Information Format, versions 2 to 5, "Line Number Information"; System V
 * ABI, "Sections". Compressed sections are not read.
 */
#ifndef SOFT_LINE_TABLE_H
#define SOFT_LINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_line {
    char file[256]; /* with its folder, if the table has it */
    unsigned line;
    bool is_wrapper; /* it is of a function of CUDA's own headers, which calls the runtime */
};

/* Finds the line of an address, given relative to the file at path; lowest is where its function
 * begins. If the line is in CUDA's own headers, whose wrappers are inlined, the result is the first
 * line after it outside of them: there the caller uses the result, usually in the line of the call.
 * false: the file has no line for the address. Reads the file each time. */
bool soft_line_find(const char *path, uint64_t lowest, uint64_t address, struct soft_line *line);

#endif
