/*
 * Model words: what the commands `tollens model ...` have in common: options, prompts, and texts
 * that are printed. Any thread; errors are hyp_error()'s.
 */
#ifndef HYP_MODEL_WORDS_H
#define HYP_MODEL_WORDS_H

#include "decode/paged.h"

#include <gguf.h>
#include <stdbool.h>
#include <stddef.h>

/* The value of an option that has these names ("-n --n-predict"), at words[*at]: the rest of the
 * word after '=', or the next word, to which *at is moved; "" if there is none. NULL: it is another
 * word. */
const char *hyp_model_value_of(const char *names, int count, char **words, int *at);

/* Whether a word is one of these names. */
bool hyp_model_is_flag(const char *names, const char *word);

/* Takes a word that is not an option as the file. false: it looks like an option, or is a second
 * file. */
bool hyp_model_take_path(const char *command, const char *word, const char **path);

/* "f16" or "q8_0". false: it is neither. */
bool hyp_model_cache(const char *name, enum kn_cache *cache);

/* A text that a command is given: a word, a file, or standard input. All zero: none was named. */
struct hyp_model_prompt {
    const char *text, *path; /* text: of `bytes` bytes, once it is taken */
    size_t bytes;
    char *read; /* the text, if it came from a file */
};

/* Whether words[*at] named a prompt, which it takes. */
bool hyp_model_prompt_word(struct hyp_model_prompt *prompt, int count, char **words, int *at);

/* Reads the prompt that was named, or standard input, without its last line end. false: there is
 * none, or it cannot be read. */
bool hyp_model_prompt_take(struct hyp_model_prompt *prompt, const char *command);
void hyp_model_prompt_free(struct hyp_model_prompt *prompt);

/* The first `most` bytes as printable text: quotes, backslashes and what is neither printable ASCII
 * nor valid UTF-8 are \xNN. Free it. */
char *hyp_model_shown(struct tol_gguf_text text, size_t most);

#endif
