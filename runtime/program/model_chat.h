/*
 * Model chat: a prompt as a message of a conversation, and special tokens in plain text. Any
 * thread; errors are tol_message()'s.
 */
#ifndef HYP_MODEL_CHAT_H
#define HYP_MODEL_CHAT_H

#include "model_words.h"

#include <tokenizer.h>

/* Replaces a prompt by the text that the file's own template makes of it, as the user's message
 * after a system message (NULL: none), up to where the answer begins. Encoding it with
 * parse_special gives what llama.cpp's does. TOL_NOT_FOUND: the file has no template. Fails as
 * tol_chat_render. */
tol_status hyp_model_chat(const struct tol_gguf *file, const struct tol_tokenizer *tokenizer,
                          const char *system, struct hyp_model_prompt *prompt);

/* Renders the file's template for one message of the user. TOL_NOT_FOUND: it has none. Fails as
 * tol_chat_render. */
tol_status hyp_model_chat_try(const struct tol_gguf *file);

/* Prints a line on stderr if a text has special tokens of the model as plain text. are_read: the
 * model will read them as what they are. */
void hyp_model_tell_special(const struct tol_tokenizer *tokenizer, struct tol_gguf_text text,
                            const char *what, bool are_read);

#endif
