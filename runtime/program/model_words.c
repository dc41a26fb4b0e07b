/*
 * Options under several names, and prompts.
 */
#include "model_words.h"

#include "files/atomic_file.h"
#include "run/command.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

/* The bytes of a word that are one of the names; 0: none is. */
static size_t model_words_name(const char *names, const char *word) {
    const size_t bytes = strcspn(word, "=");
    while (*names != '\0') {
        const size_t length = strcspn(names, " ");
        if (length == bytes && strncmp(names, word, length) == 0) return bytes;
        names += length + strspn(names + length, " ");
    }
    return 0;
}

const char *hyp_model_value_of(const char *names, int count, char **words, int *at) {
    const char *word = words[*at];
    const size_t bytes = model_words_name(names, word);
    if (bytes == 0) return NULL;
    if (word[bytes] == '=') return word + bytes + 1;
    return *at + 1 < count ? words[++*at] : "";
}

bool hyp_model_is_flag(const char *names, const char *word) {
    return strchr(word, '=') == NULL && model_words_name(names, word) > 0;
}

bool hyp_model_take_path(const char *command, const char *word, const char **path) {
    if (word[0] == '-') return hyp_command_no_option(command, word);
    if (*path != NULL) return hyp_fail("%s takes one file; %s is a second one", command, word);
    *path = word;
    return true;
}

bool hyp_model_cache(const char *name, enum kn_cache *cache) {
    static const char *const names[KN_CACHES] = {"f16", "q8_0"};
    for (int i = 0; i < KN_CACHES; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *cache = (enum kn_cache)i;
        return true;
    }
    return hyp_fail("--cache must be f16 or q8_0, not '%s'", name);
}

/* ---- prompts ---- */

bool hyp_model_prompt_word(struct hyp_model_prompt *prompt, int count, char **words, int *at) {
    const char *value = hyp_model_value_of("-p --prompt", count, words, at);
    if (value != NULL) prompt->text = value;
    if (value != NULL) return true;
    value = hyp_model_value_of("-f --file", count, words, at);
    if (value != NULL) prompt->path = value;
    return value != NULL;
}

/* Reads a stream to its end. NULL: hyp_error(). */
static char *model_words_read_all(FILE *stream, const char *name, size_t *bytes) {
    enum { PART = 1 << 16, MOST = 1 << 30 };
    char *all = NULL;
    for (size_t got = 1; got > 0; *bytes += got) {
        char *grown = *bytes < MOST ? realloc(all, *bytes + PART + 1) : NULL;
        if (grown == NULL) {
            free(all);
            (void)hyp_fail("%s has more than %zu bytes", name, *bytes);
            return NULL;
        }
        all = grown;
        got = fread(all + *bytes, 1, PART, stream);
    }
    if (ferror(stream) != 0) {
        free(all);
        (void)hyp_fail("%s cannot be read", name);
        return NULL;
    }
    all[*bytes] = '\0';
    return all;
}

static bool model_words_miss_prompt(const char *command) {
    return hyp_fail("%s requires a prompt: -p \"text\", -f FILE or standard input", command);
}

static bool model_words_read_prompt(struct hyp_model_prompt *prompt) {
    const char *path = prompt->path;
    FILE *stream = path != NULL ? fopen(path, "rb") : stdin;
    if (stream == NULL) return hyp_fail("%s cannot be opened", path);
    prompt->read =
        model_words_read_all(stream, path != NULL ? path : "standard input", &prompt->bytes);
    if (path != NULL) fclose(stream);
    if (prompt->read == NULL) return false;
    prompt->text = prompt->read;
    if (prompt->bytes > 0 && prompt->read[prompt->bytes - 1] == '\n') prompt->bytes--;
    return true;
}

bool hyp_model_prompt_take(struct hyp_model_prompt *prompt, const char *command) {
    if (prompt->text != NULL && prompt->path != NULL) return hyp_fail("-p and -f are two prompts");
    if (prompt->text != NULL) {
        prompt->bytes = strlen(prompt->text);
        return true;
    }
    if (prompt->path == NULL && isatty(STDIN_FILENO)) return model_words_miss_prompt(command);
    if (!model_words_read_prompt(prompt)) return false;
    return prompt->bytes > 0 || prompt->path != NULL || model_words_miss_prompt(command);
}

void hyp_model_prompt_free(struct hyp_model_prompt *prompt) {
    free(prompt->read);
    *prompt = (struct hyp_model_prompt){.text = NULL};
}

/* ---- printed texts ---- */

char *hyp_model_shown(struct tol_gguf_text text, size_t most) {
    size_t count = text.count < most ? text.count : most, length = 0;
    char *shown = malloc(4 * count + 4);
    json_t *valid = json_stringn(text.bytes, count);
    if (shown == NULL) abort();
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        if (byte >= ' ' && byte != 0x7f && byte != '"' && byte != '\\' &&
            (byte < 0x80 || valid != NULL)) {
            shown[length++] = (char)byte;
        } else {
            length += (size_t)sprintf(shown + length, "\\x%02x", byte);
        }
    }
    strcpy(shown + length, count < text.count ? "..." : "");
    json_decref(valid);
    return shown;
}
