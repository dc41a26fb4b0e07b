/*
 * Model keys: whether every key that a file has under its architecture's prefix is one whose effect
 * on the computation this worker knows.
 *
 * A key is read (model.c), has no effect in llama.cpp either, or must have the one value that asks
 * for what is computed. Any other key is refused by its name, for it may change the numbers.
 * Source: the GGUF specification's list of keys, and which of them llama.cpp reads for llama,
 * mistral3, qwen2 and qwen3. Any thread.
 */
#ifndef TOLLENS_MODEL_KEYS_H
#define TOLLENS_MODEL_KEYS_H

#include <gguf.h>

/* TOL_UNSUPPORTED: a key of this architecture has a value that the engine does not compute; the
 * message names the key. TOL_INVALID_FILE: a key has a value of the wrong kind. */
tol_status model_keys_check(const struct tol_gguf *file, const char *architecture);

#endif
