/*
 * Packed files: a file that is kept as an .xz stream, read as if it were not.
 */
#ifndef HYP_PACKED_FILE_H
#define HYP_PACKED_FILE_H

#include <stddef.h>

/* Reads PATH or, where that does not exist, unpacks PATH.xz: at most bytes_max bytes and a NUL,
 * which the caller frees. NULL: an error, which hyp_error() describes. */
char *hyp_packed_read(const char *path, size_t bytes_max, size_t *bytes);

/* Unpacks count bytes of an .xz stream that were read from PATH; the rest as above. */
char *hyp_packed_unpack(const char *path, const char *packed, size_t count, size_t bytes_max,
                        size_t *bytes);

/* The bytes of PATH, or those that PATH.xz has when unpacked; 0 if neither can be read. */
size_t hyp_packed_bytes(const char *path);

#endif
