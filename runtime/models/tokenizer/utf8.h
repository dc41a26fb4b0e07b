/*
 * UTF-8: code points from bytes and back.
 */
#ifndef TOLLENS_UTF8_H
#define TOLLENS_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { TOL_UTF8_REPLACEMENT = 0xfffd };

/* The code point at the beginning of bytes, of which there is one at least; *used is how many it
 * takes. Tolerant as llama.cpp is, because the tokens depend on it: forms that are longer than
 * necessary and surrogates are code points. What is none is U+FFFD and takes one byte. */
uint32_t tol_utf8_read(const char *bytes, size_t count, size_t *used);

/* Writes a code point up to U+10FFFF; returns how many bytes, 1 to 4. */
size_t tol_utf8_write(uint32_t code, char to[4]);

/* Whether bytes are a valid sequence (Unicode, table 3-7), or its beginning. */
enum tol_utf8_state { TOL_UTF8_WHOLE, TOL_UTF8_BEGUN, TOL_UTF8_BROKEN };
enum tol_utf8_state tol_utf8_check(const unsigned char *bytes, size_t count);

#endif
