/*
 * Suppressions: a file that names findings which a user knows and does not want to see. They are
 * in the report's file alone, as suppressed. A finding that ends its launch cannot be suppressed.
 *
 * A line is KIND; KERNEL; PLACE, each a pattern of fnmatch(3): a place is the end of a source path
 * with the line, or "PTX line" and its number. Empty lines, and lines that begin with #, are
 * comments.
 *
 *     data race; _Z4peak*; *peak.cu:9
 */
#ifndef SOFT_SUPPRESS_H
#define SOFT_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the file, in place of what was read before. false: why says what is wrong, with the line;
 * nothing is suppressed then. Not thread-safe: before the first report. */
bool soft_suppress_read(const char *path, char *why, size_t bytes);

/* Whether a line of the file fits a finding. source: file:line, or "" for
 * the line of the PTX. Thread-safe. */
bool soft_suppress(const char *kind, const char *kernel, const char *source, uint32_t ptx_line);

#endif
