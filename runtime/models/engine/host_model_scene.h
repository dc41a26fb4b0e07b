/*
 * Host model: the whole model in double on the host, computed directly from its file: the oracle of
 * the device. It shares no code with the engine but the reader of files and the formats' values.
 *
 * Keys and values are rounded to fp16, as in the cache. Everything else is exact to double.
 */
#ifndef TOLLENS_HOST_MODEL_SCENE_H
#define TOLLENS_HOST_MODEL_SCENE_H

#include <gguf.h>

/* Writes the logits of every position: count rows of the vocabulary. The test fails if the file is
 * not what it needs. rounds: what a step rounds to bytes is rounded here too; long prompts round
 * nothing but the row after the last layer. */
void host_model_run(const char *path, const int *tokens, size_t count, bool rounds, double *logits);

/* The number of tokens of the vocabulary. */
size_t host_model_vocabulary(const char *path);

#endif
