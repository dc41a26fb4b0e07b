/*
 * model tokenize: the tokens of a text in the vocabulary of a model's file, which may have no
 * tensors.
 */
#include "run/command.h"
#include "files/atomic_file.h"
#include "harness/session.h"
#include "model_words.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tokenizer.h>

static const char usage[] =
    "usage: tollens model tokenize FILE [-p TEXT | -f FILE] [options]\n"
    "\n"
    "Prints the tokens of a text, one per line: its number, and its bytes.\n"
    "\n"
    "  -p TEXT     the text; -f FILE: the text is in a file, without its last line end; with\n"
    "              neither, it is read from standard input\n"
    "  --special   <|...|> in the text are the model's special tokens\n"
    "  --no-bos    without the tokens that the model's file adds to a text, such as bos\n"
    "  --ids       print the numbers alone, in one line\n"
    "  --json      print one object: file, count, and tokens, each with its id and piece. A piece\n"
    "              that is not valid UTF-8 is null, and its bytes are in \"hex\"\n"
    "  --prompt, --file and -m, --model FILE are other names, as llama.cpp has them\n"
    "\n"
    "exit codes: 0 done, 2 an error\n";

struct tokenize_wish {
    const char *path;
    struct hyp_model_prompt prompt;
    struct tol_encode_options options;
    bool only_ids;
};

static bool model_tokenize_word(struct tokenize_wish *wish, int count, char **words, int *at) {
    const char *word = words[*at], *value = NULL;
    if (hyp_model_prompt_word(&wish->prompt, count, words, at)) return true;
    if ((value = hyp_model_value_of("-m --model", count, words, at)) != NULL) {
        return hyp_model_take_path("model tokenize", value, &wish->path);
    } else if (strcmp(word, "--special") == 0) {
        wish->options.parse_special = true;
    } else if (strcmp(word, "--no-bos") == 0) {
        wish->options.add_special = false;
    } else if (strcmp(word, "--ids") == 0) {
        wish->only_ids = true;
    } else if (strcmp(word, "--json") == 0) {
        hyp_command_be_json();
    } else {
        return hyp_model_take_path("model tokenize", word, &wish->path);
    }
    return true;
}

static bool model_tokenize_words(struct tokenize_wish *wish, int count, char **words) {
    *wish = (struct tokenize_wish){.options = {.add_special = true}};
    for (int i = 0; i < count; i++) {
        if (!model_tokenize_word(wish, count, words, &i)) return false;
    }
    if (wish->path == NULL) return hyp_fail("model tokenize requires a file");
    return hyp_model_prompt_take(&wish->prompt, "model tokenize");
}

/* Free *tokens. */
static tol_status model_tokenize_encode(const struct tokenize_wish *wish,
                                        const struct tol_tokenizer *tokenizer, int32_t **tokens,
                                        size_t *count) {
    const struct hyp_model_prompt *prompt = &wish->prompt;
    tol_status status = tol_tokenizer_encode(tokenizer, prompt->text, prompt->bytes, &wish->options,
                                             NULL, 0, count);
    if (status != TOL_OUT_OF_RANGE) return status;
    *tokens = calloc(*count, sizeof **tokens);
    if (*tokens == NULL) return TOL_OUT_OF_HOST_MEMORY;
    return tol_tokenizer_encode(tokenizer, prompt->text, prompt->bytes, &wish->options, *tokens,
                                *count, count);
}

/* ---- printing ---- */

static void model_tokenize_print(const struct tol_tokenizer *tokenizer, const int32_t *tokens,
                                 size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct tol_gguf_text piece = tol_tokenizer_piece(tokenizer, tokens[i], true);
        char *shown = hyp_model_shown(piece, piece.count);
        printf("%8d  \"%s\"\n", tokens[i], shown);
        free(shown);
    }
}

static void model_tokenize_print_ids(const int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) printf("%s%d", i > 0 ? " " : "", tokens[i]);
    printf("\n");
}

static json_t *model_tokenize_hex(struct tol_gguf_text piece) {
    char *hex = calloc(piece.count + 1, 2);
    if (hex == NULL) return NULL;
    for (size_t i = 0; i < piece.count; i++) {
        sprintf(hex + 2 * i, "%02x", (unsigned char)piece.bytes[i]);
    }
    json_t *text = json_string(hex);
    free(hex);
    return text;
}

static json_t *model_tokenize_object(const struct tol_tokenizer *tokenizer, int32_t token) {
    const struct tol_gguf_text piece = tol_tokenizer_piece(tokenizer, token, true);
    json_t *text = json_stringn(piece.bytes, piece.count);
    if (text != NULL) return json_pack("{s:i, s:o}", "id", token, "piece", text);
    return json_pack("{s:i, s:n, s:o}", "id", token, "piece", "hex", model_tokenize_hex(piece));
}

static bool model_tokenize_print_json(const char *path, const struct tol_tokenizer *tokenizer,
                                      const int32_t *tokens, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, model_tokenize_object(tokenizer, tokens[i]));
    }
    json_t *all = json_pack("{s:i, s:s, s:I, s:o}", "schema", 1, "file", path, "count",
                            (json_int_t)count, "tokens", list);
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(1)) : NULL;
    json_decref(all);
    if (text == NULL) return hyp_fail("%s cannot be written as JSON", path);
    puts(text);
    free(text);
    return true;
}

static bool model_tokenize_all(const struct tokenize_wish *wish) {
    struct tol_gguf *file = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    int32_t *tokens = NULL;
    size_t count = 0;
    tol_status status = tol_gguf_open(wish->path, &file);
    if (status == TOL_OK) status = tol_tokenizer_create(file, &tokenizer);
    if (status == TOL_OK) status = model_tokenize_encode(wish, tokenizer, &tokens, &count);
    bool ok = status == TOL_OK || hyp_fail("%s", hyp_session_message());
    if (ok && hyp_command_is_json()) {
        ok = model_tokenize_print_json(wish->path, tokenizer, tokens, count);
    } else if (ok && wish->only_ids) {
        model_tokenize_print_ids(tokens, count);
    } else if (ok) {
        model_tokenize_print(tokenizer, tokens, count);
    }
    free(tokens);
    tol_tokenizer_destroy(tokenizer);
    tol_gguf_close(file);
    return ok;
}

int hyp_command_model_tokenize(int count, char **words) {
    struct tokenize_wish wish;
    if (count > 0 && hyp_model_is_flag("--help -h", words[0])) {
        fputs(usage, stdout);
        return HYP_EXIT_OK;
    }
    hyp_command_has_help(usage, strlen(usage));
    const bool ok = model_tokenize_words(&wish, count, words) && model_tokenize_all(&wish);
    hyp_model_prompt_free(&wish.prompt);
    return ok ? HYP_EXIT_OK : hyp_command_complain("%s", hyp_error());
}
