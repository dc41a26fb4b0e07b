/*
 * Container: PTX in an ELF file that programs take for a cubin.
 *
 * cuLinkComplete and the compilers of runtime/soft/toolchain return it in place of machine code,
 * and cuModuleLoadData loads it. It contains no pointers, so a program may write it to a file. Its
 * format is in runtime/soft/toolchain/README.md. Every size is compared with the bytes of the file
 * before those bytes are read. Thread-safe.
 *
 * Source: ELF-64 Object File Format 1.5, with machine 190 (EM_CUDA).
 */
#ifndef SOFT_CONTAINER_H
#define SOFT_CONTAINER_H

#include "ptx/unit.h"

#include <stdbool.h>

/* More sections than this would need ELF's extended numbering. */
enum { SOFT_CONTAINER_TEXTS_MAX = 60000 };

/* Whether bytes begin as a container. Reads no further than the first differing byte, and at most
 * 16. */
bool soft_container_is(const void *image);

/* The bytes of a container by its header. 0: the header is damaged, or counts more than most, the
 * number of readable bytes; if that is unknown, SIZE_MAX, the header is believed. */
size_t soft_container_bytes(const void *image, size_t most);

/* Makes a container of 1 to SOFT_CONTAINER_TEXTS_MAX texts, for an architecture such as 90; free
 * it. NULL: there are fewer or more texts, or the memory is exhausted. */
void *soft_container_make(const struct soft_source *sources, unsigned count, unsigned architecture,
                          size_t *bytes);

/* The texts of a container, which may be of any version of PTX, in an array to be freed, which
 * points into the image; each is followed by a NUL. NULL: the container is damaged, or the memory
 * is exhausted. */
struct soft_source *soft_container_sources(const void *image, size_t most, unsigned *count);

#endif
