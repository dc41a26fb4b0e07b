/*
 * HDR encoding: converts the runtime's histograms to text that HdrHistogram tools read, and back.
 *
 * It is separate from hdr.h because it needs zlib, which the runtime does not use.
 * Source: HdrHistogram by Gil Tene, encoding V2 as described in HdrHistogram_py's ENCODING.rst and
 * implemented by the Java library.
 */
#ifndef HYP_HDR_ENCODE_H
#define HYP_HDR_ENCODE_H

#include "tollens.h"

/* The compressed V2 encoding in Base64, NUL-terminated; the caller frees it. NULL: out of
 * memory. */
char *hyp_hdr_encode(const struct tol_hdr *hdr);

/* Decodes the compressed V2 encoding of hyp_hdr_encode or another implementation. */
tol_hdr_error hyp_hdr_decode(const char *base64, size_t length, struct tol_hdr **hdr);

#endif
