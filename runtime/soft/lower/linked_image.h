/*
 * Linked: the image that linking makes, which is the texts one behind the other.
 *
 * It is what cuLinkComplete gives for a cubin, and cuModuleLoadData takes back. It begins with a
 * byte that no text and no machine code begins with, and holds no pointers, so that a program may
 * write it to a file.
 */
#ifndef SOFT_LINKED_IMAGE_H
#define SOFT_LINKED_IMAGE_H

#include "loaded_module.h"

#include <stdbool.h>

/* Whether bytes are such an image. Reads no further than the first that tells. */
bool soft_linked_image_is(const void *image);

/* How many bytes one has. */
size_t soft_linked_image_bytes(const void *image);

/* Makes one of texts; free it. NULL without memory. */
void *soft_linked_image_make(const struct soft_source *sources, unsigned count, size_t *bytes);

/* The texts of one, in an array to be freed, pointing into the image. NULL: it is damaged, or there
 * is no memory. */
struct soft_source *soft_linked_image_sources(const void *image, unsigned *count);

#endif
