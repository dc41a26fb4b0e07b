/*
 * HDR encoding: a histogram of the runtime's as text that any HdrHistogram tool reads, and back.
 *
 * It stands here and not beside hdr.h since it needs zlib, which the runtime does without. Source:
 * HdrHistogram by Gil Tene, encoding V2 as described in HdrHistogram_py's ENCODING.rst and
 * implemented by the Java library.
 */
#ifndef HYP_HDR_ENCODE_H
#define HYP_HDR_ENCODE_H

#include "tollens.h"

/* The compressed V2 encoding in Base64, NUL-terminated; free it. NULL: no memory. */
char *hyp_hdr_encode(const struct tol_hdr *hdr);

/* Reads what hyp_hdr_encode or another implementation wrote: V2, compressed. */
tol_hdr_error hyp_hdr_decode(const char *base64, size_t length, struct tol_hdr **hdr);

#endif
