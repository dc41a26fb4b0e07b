/*
 * Pre-tokenizers: the rules by which byte-level BPE divides a text into words, inside which alone
 * it joins.
 */
#ifndef TOLLENS_PRE_TOKENIZE_H
#define TOLLENS_PRE_TOKENIZE_H

#include "tollens/status.h"

#include <stddef.h>
#include <stdint.h>

enum tol_pre { TOL_PRE_DEFAULT, TOL_PRE_GPT2, TOL_PRE_LLAMA3, TOL_PRE_QWEN2, TOL_PRES };

/* The rule of a file's key tokenizer.ggml.pre; TOL_PRES: it is unknown. And its name. Static. */
enum tol_pre tol_pre_find(const char *name, size_t bytes);
const char *tol_pre_name(enum tol_pre pre);

/* Divides code points into words: ends[i] is set to 1 where a word ends after code point i, and to
 * 0 elsewhere. */
void tol_pre_divide(enum tol_pre pre, const uint32_t *codes, size_t count, unsigned char *ends);

#endif
