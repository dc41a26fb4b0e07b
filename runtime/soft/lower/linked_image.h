/*
 * Linked: the image that cuLinkComplete returns in place of a cubin, and cuModuleLoadData loads.
 *
 * It contains the inputs one after the other. Its first byte differs from that of PTX and of
 * machine code. It contains no pointers, so a program may write it to a file.
 */
#ifndef SOFT_LINKED_IMAGE_H
#define SOFT_LINKED_IMAGE_H

#include "loaded_module.h"

#include <stdbool.h>

/* Whether bytes are such an image. Reads no further than the first differing byte. */
bool soft_linked_image_is(const void *image);

/* How many bytes one has. */
size_t soft_linked_image_bytes(const void *image);

/* Makes one of texts; free it. NULL without memory. */
void *soft_linked_image_make(const struct soft_source *sources, unsigned count, size_t *bytes);

/* The texts of one, in an array to be freed, pointing into the image. NULL: it is damaged, or out
 * of memory. */
struct soft_source *soft_linked_image_sources(const void *image, unsigned *count);

#endif
