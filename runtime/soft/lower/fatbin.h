/*
 * Fatbin: selects the best PTX of a fat binary; if an image has none, says what the program can do.
 *
 * Layout, as written by nvcc 11 to 13 (the wrapper is in CUDA's fatbinary_section.h): a wrapper
 * points to a container, which is a header of 16 bytes followed by entries. An entry has a header
 * with its kind (1 PTX, 2 machine code, 8 LTO-IR), its sizes, the architecture (80 for sm_80) and
 * flags; PTX may be compressed, by LZ4 (flag 0x2000) or Zstandard (0x8000). Their libraries,
 * liblz4.so.1 and libzstd.so.1, are opened at the first compressed entry.
 */
#ifndef SOFT_FATBIN_H
#define SOFT_FATBIN_H

#include <stdbool.h>
#include <stddef.h>

enum { SOFT_FATBIN_SAYS = 600, SOFT_CUBIN_BYTES = 52 };

/* Whether an image begins as a container or as a wrapper around one; at least 4 bytes are read if
 * the first ones agree. */
bool soft_fatbin_is(const void *image);

/* The bytes of a container, including its header. 0: it is none, or has more than most. */
size_t soft_fatbin_bytes(const void *image, size_t most);

/*
 * The PTX for the highest architecture up to the capability (90 for 9.0), terminated by NUL, to be
 * freed; where machine code should be, a container counts as PTX and is returned as it is
 * (container.h). most is the number of readable bytes of the image; SIZE_MAX if unknown. NULL:
 * *result is CUDA_ERROR_NO_BINARY_FOR_GPU (no such PTX, or no library to decompress it),
 * CUDA_ERROR_INVALID_IMAGE (damaged) or CUDA_ERROR_OUT_OF_MEMORY, and says has the reason and the
 * remedy, with a newline.
 *
 * Wheels of today have machine code for all devices, and PTX for the newest alone. If an image has
 * machine code that a GPU of this capability would run and no such PTX, the PTX for the lowest
 * architecture above it is returned in its place; *stands_in is then true, and says tells it.
 */
char *soft_fatbin_ptx(const void *image, size_t most, int capability, size_t *length, int *result,
                      bool *stands_in, char says[SOFT_FATBIN_SAYS]);

/* The same sentence for a cubin, an ELF file of which at least 52 bytes may be read. */
void soft_fatbin_refuse_cubin(const void *image, char says[SOFT_FATBIN_SAYS]);

#endif
