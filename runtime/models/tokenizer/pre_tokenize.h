/*
 * Pre-tokenizers: the rules by which byte-level BPE divides a text into words, inside which alone
 * it joins.
 *
 * A file has the name of its pre-tokenizer; several names have one rule. Each rule takes time
 * proportional to the text, whatever it repeats.
 */
#ifndef TOLLENS_PRE_TOKENIZE_H
#define TOLLENS_PRE_TOKENIZE_H

#include "pre_view.h"

/* A pre-tokenizer, by the key tokenizer.ggml.pre. */
struct tol_pre_kind {
    const char *name; /* static */
    enum tol_pre rule;
    bool ignores_merges; /* a word that is a token is one, whatever the merges say */
    bool adds_bos;       /* unless the file says otherwise */
};

/* NULL: no pre-tokenizer of this name is known. Static. */
const struct tol_pre_kind *tol_pre_find(const char *name, size_t bytes);

/* Divides code points into words: ends[i] is set to 1 where a word ends after code point i, and to
 * 0 elsewhere. */
void tol_pre_divide(enum tol_pre pre, const uint32_t *codes, size_t count, unsigned char *ends);

#endif
