/*
 * Stream copy: copies to memory that this processor will not read soon, with non-temporal stores.
 * So no line of the destination is fetched first, and none stays modified in a cache, where a
 * device would read it at half the speed. The widest registers of the processor are used: AVX-512,
 * AVX2 or SSE2; elsewhere it is memcpy.
 */
#ifndef TOLLENS_STREAMED_H
#define TOLLENS_STREAMED_H

#include <stddef.h>

enum tol_stream_copy_width {
    TOL_STREAM_COPY_PLAIN, /* memcpy */
    TOL_STREAM_COPY_16,
    TOL_STREAM_COPY_32,
    TOL_STREAM_COPY_64
};

/* The widest that this processor has. */
enum tol_stream_copy_width tol_stream_copy_widest(void);

/* Copies bytes that do not overlap. What it has written is visible to a thread that sees a later
 * store of this thread. tol_stream_copy_as needs a width that the processor has. */
void tol_stream_copy(void *to, const void *from, size_t bytes);
void tol_stream_copy_as(enum tol_stream_copy_width width, void *to, const void *from, size_t bytes);

#endif
