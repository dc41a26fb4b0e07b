/*
 * Chat templates of files, and the search for special tokens.
 */
#include "model_chat.h"

#include "chat_template.h"
#include "run/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- special tokens ---- */

/* The first token of a text that has no text of its own, such as "<|im_end|>". */
static struct tol_gguf_text model_chat_special(const struct tol_tokenizer *tokenizer,
                                               const int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct tol_gguf_text whole = tol_tokenizer_piece(tokenizer, tokens[i], true);
        const bool is_plain = tol_tokenizer_piece(tokenizer, tokens[i], false).count > 0;
        if (!is_plain && whole.count > 0) return whole;
    }
    return (struct tol_gguf_text){"", 0};
}

void hyp_model_tell_special(const struct tol_tokenizer *tokenizer, struct tol_gguf_text text,
                            const char *what, bool are_read) {
    const struct tol_encode_options options = {.parse_special = true};
    size_t count = 0;
    int32_t *tokens = calloc(text.count + 2, sizeof *tokens); /* no token has less than a byte */
    if (tokens == NULL) return;
    (void)tol_tokenizer_encode(tokenizer, text.bytes, text.count, &options, tokens, text.count + 2,
                               &count);
    struct tol_gguf_text found = {"", 0};
    if (count <= text.count + 2) found = model_chat_special(tokenizer, tokens, count);
    if (found.count > 0 && memmem(text.bytes, text.count, found.bytes, found.count) != NULL) {
        char *shown = hyp_model_shown(found, found.count);
        fprintf(stderr, "tollens: %s has %s, a special token of the model, %s\n", what, shown,
                are_read ? "which it reads as such"
                         : "as plain text; with --special it is that token");
        free(shown);
    }
    free(tokens);
}

/* ---- templates ---- */

/* Encoding adds bos itself, if the file says so: not a second one. */
static size_t model_chat_added(const struct tol_tokenizer_description *about,
                               struct tol_gguf_text bos, const char *text, size_t bytes) {
    const bool has_bos =
        bos.count > 0 && bytes >= bos.count && memcmp(text, bos.bytes, bos.count) == 0;
    return about->adds_bos && has_bos ? bos.count : 0;
}

tol_status hyp_model_chat(const struct tol_gguf *file, const struct tol_tokenizer *tokenizer,
                          const char *system, struct hyp_model_prompt *prompt) {
    struct tol_tokenizer_description about;
    struct tol_gguf_text source = {"", 0};
    char *text = NULL;
    size_t bytes = 0;
    tol_tokenizer_describe(tokenizer, &about);
    const struct tol_gguf_text user = {prompt->text, prompt->bytes};
    const struct tol_gguf_text before = {system, system != NULL ? strlen(system) : 0};
    const struct tol_chat_message messages[] = {{"system", before}, {"user", user}};
    const size_t first = system != NULL ? 0 : 1;
    const struct tol_chat chat = {.messages = messages + first,
                                  .count = 2 - first,
                                  .adds_prompt = true,
                                  .bos = tol_tokenizer_piece(tokenizer, about.bos, true),
                                  .eos = tol_tokenizer_piece(tokenizer, about.eos, true)};
    tol_status status = tol_gguf_get_text(file, "tokenizer.chat_template", &source);
    if (status == TOL_NOT_FOUND) {
        hyp_command_next("without --chat, the prompt is the whole text that the model reads");
    }
    if (status == TOL_OK) status = tol_chat_render(source, &chat, &text, &bytes);
    if (status != TOL_OK) return status;
    if (system != NULL) hyp_model_tell_special(tokenizer, before, "--system", true);
    hyp_model_tell_special(tokenizer, user, "the message", true);
    const size_t added = model_chat_added(&about, chat.bos, text, bytes);
    hyp_model_prompt_free(prompt);
    *prompt = (struct hyp_model_prompt){.text = text + added, .bytes = bytes - added, .read = text};
    return TOL_OK;
}

tol_status hyp_model_chat_try(const struct tol_gguf *file) {
    const struct tol_chat_message message = {"user", {"x", 1}};
    const struct tol_chat chat = {.messages = &message, .count = 1, .adds_prompt = true};
    struct tol_gguf_text source = {"", 0};
    char *text = NULL;
    size_t bytes = 0;
    tol_status status = tol_gguf_get_text(file, "tokenizer.chat_template", &source);
    if (status == TOL_OK) status = tol_chat_render(source, &chat, &text, &bytes);
    free(text);
    return status;
}
