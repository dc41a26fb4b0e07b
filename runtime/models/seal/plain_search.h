/*
 * Plain search: whether device memory contains plaintext, or received it. For tests and claims.
 *
 * Its two hooks note what the driver allocates and frees, and search what is copied to the device,
 * for pieces of 16 bytes of the plain data, at any multiple of 4. One search at a time; hooks may
 * run on several threads.
 */
#ifndef TOLLENS_PLAIN_SEARCH_H
#define TOLLENS_PLAIN_SEARCH_H

#include "tollens.h"

/* The hooks of an interposer. */
void plain_search_before(struct tol_interpose_call *call, void *user);
void plain_search_after(struct tol_interpose_call *call, void *user);

/* Searches for these bytes from now on; they must exist until the end. No piece of them may consist
 * of equal bytes. */
void plain_search_begin(const void *plain, size_t bytes);
void plain_search_end(void);

/* The pieces found in copies to the device since the beginning. */
size_t plain_search_copied(void);

/* Reads all allocated device memory, and searches it. bytes: how much that was. The calling
 * thread's latest call was made in the context whose calls pass through the hooks. false: a part
 * cannot be read. */
bool plain_search_device(size_t *pieces, size_t *bytes);

#endif
