/*
 * Reads a template: the words of tags, texts between tags, and statements.
 */
#include "jinja.h"

#include <ctype.h>
#include <string.h>

/* ---- words ---- */

static char jinja_read_byte(const struct jinja_run *run, size_t at) {
    return at < run->source.count ? run->source.bytes[at] : '\0';
}

static bool jinja_read_is_at(const struct jinja_run *run, size_t at, const char *text) {
    const size_t length = strlen(text);
    return run->source.count - at >= length && memcmp(run->source.bytes + at, text, length) == 0;
}

/* Moves on, and counts lines. */
static void jinja_read_move(struct jinja_run *run, size_t to) {
    for (; run->at < to; run->at++) run->line += run->source.bytes[run->at] == '\n';
}

static bool jinja_read_is_name(char byte) {
    return isalnum((unsigned char)byte) || byte == '_';
}

/* The bytes of a string with its quotes; 0: it has no end. */
static size_t jinja_read_string_bytes(const struct jinja_run *run) {
    const char quote = jinja_read_byte(run, run->at);
    for (size_t at = run->at + 1; at < run->source.count; at++) {
        if (run->source.bytes[at] == quote) return at + 1 - run->at;
        at += run->source.bytes[at] == '\\';
    }
    return 0;
}

static size_t jinja_read_sign_bytes(const struct jinja_run *run) {
    static const char *const signs[] = {"-%}", "-}}", "+%}", "+}}", "%}", "}}",
                                        "==",  "!=",  "<=",  ">=",  "//", "**"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (jinja_read_is_at(run, run->at, signs[i])) return strlen(signs[i]);
    }
    return run->at < run->source.count ? 1 : 0;
}

struct tol_gguf_text jinja_peek(struct jinja_run *run) {
    size_t bytes = 0;
    while (isspace((unsigned char)jinja_read_byte(run, run->at))) jinja_read_move(run, run->at + 1);
    const char first = jinja_read_byte(run, run->at);
    if (first == '"' || first == '\'') {
        bytes = jinja_read_string_bytes(run);
        if (bytes == 0) jinja_fail(run, TOL_INVALID_FILE, "a string has no end");
    } else {
        while (jinja_read_is_name(jinja_read_byte(run, run->at + bytes))) bytes++;
        if (bytes == 0) bytes = jinja_read_sign_bytes(run);
    }
    if (run->status != TOL_OK) bytes = 0;
    return (struct tol_gguf_text){run->source.bytes + run->at, bytes};
}

struct tol_gguf_text jinja_next(struct jinja_run *run) {
    const struct tol_gguf_text word = jinja_peek(run);
    jinja_read_move(run, run->at + word.count);
    return word;
}

bool jinja_accept(struct jinja_run *run, const char *word) {
    if (!jinja_is(jinja_peek(run), word)) return false;
    jinja_next(run);
    return true;
}

void jinja_expect(struct jinja_run *run, const char *word) {
    const struct tol_gguf_text found = jinja_peek(run);
    if (jinja_accept(run, word)) return;
    jinja_fail(run, TOL_INVALID_FILE, "'%.*s' stands where %s was expected",
               (int)(found.count < 40 ? found.count : 40), found.bytes, word);
}

struct tol_gguf_text jinja_name(struct jinja_run *run) {
    const struct tol_gguf_text word = jinja_peek(run);
    if (word.count == 0 || !jinja_read_is_name(word.bytes[0]) ||
        isdigit((unsigned char)word.bytes[0])) {
        jinja_expect(run, "a name");
    }
    return jinja_next(run);
}

struct jinja_node *jinja_new(struct jinja_run *run, enum jinja_kind kind, struct jinja_node *a,
                             struct jinja_node *b) {
    struct jinja_node *node = jinja_take(run, sizeof *node);
    if (node == NULL) node = &run->spare;
    *node = (struct jinja_node){.kind = kind, .line = run->line, .a = a, .b = b};
    return node;
}

/* ---- texts ---- */

/* The next tag's beginning; the end of the source if there is none. */
static size_t jinja_read_find_tag(const struct jinja_run *run) {
    size_t at = run->at;
    while (at + 1 < run->source.count &&
           (run->source.bytes[at] != '{' || strchr("{%#", run->source.bytes[at + 1]) == NULL)) {
        at++;
    }
    return at + 1 < run->source.count ? at : run->source.count;
}

/* Where the text before a tag ends: before white space that belongs to the tag. */
static size_t jinja_read_text_end(const struct jinja_run *run, size_t from, size_t tag) {
    const char mark = jinja_read_byte(run, tag + 2);
    const bool is_block = jinja_read_byte(run, tag + 1) != '{';
    size_t end = tag;
    if (tag == run->source.count) return tag;
    if (mark == '-') {
        while (end > from && isspace((unsigned char)run->source.bytes[end - 1])) end--;
        return end;
    }
    while (end > from && strchr(" \t", run->source.bytes[end - 1]) != NULL) end--;
    const bool begins_line = end == 0 || run->source.bytes[end - 1] == '\n';
    return is_block && begins_line && mark != '+' ? end : tag;
}

/* The text up to the next tag. */
static struct jinja_node *jinja_read_text(struct jinja_run *run) {
    size_t from = run->at;
    while (run->trims && from < run->source.count &&
           isspace((unsigned char)run->source.bytes[from])) {
        from++;
    }
    if (!run->trims && run->drops_line && jinja_read_byte(run, from) == '\n') from++;
    run->trims = run->drops_line = false;
    jinja_read_move(run, from);
    const size_t tag = jinja_read_find_tag(run), end = jinja_read_text_end(run, from, tag);
    struct jinja_node *node = jinja_new(run, JINJA_TEXT, NULL, NULL);
    if (end > from) node->text = (struct tol_gguf_text){run->source.bytes + from, end - from};
    jinja_read_move(run, tag);
    return node;
}

static void jinja_read_comment(struct jinja_run *run) {
    size_t at = run->at + 2;
    while (at < run->source.count && !jinja_read_is_at(run, at, "#}")) at++;
    if (at >= run->source.count) {
        jinja_fail(run, TOL_INVALID_FILE, "a comment has no end");
        return;
    }
    run->trims = run->source.bytes[at - 1] == '-';
    run->drops_line = true;
    jinja_read_move(run, at + 2);
}

static void jinja_read_tag_end(struct jinja_run *run, bool is_block) {
    char signs[3][4] = {"-}}", "+}}", "}}"};
    for (int i = 0; is_block && i < 3; i++) signs[i][strlen(signs[i]) - 2] = '%';
    run->trims = jinja_accept(run, signs[0]);
    run->drops_line = false;
    if (run->trims || jinja_accept(run, signs[1])) return;
    run->drops_line = is_block;
    jinja_expect(run, signs[2]);
}

/* Past the beginning of a tag and its mark. */
static void jinja_read_tag_begin(struct jinja_run *run) {
    const char mark = jinja_read_byte(run, run->at + 2);
    jinja_read_move(run, run->at + (mark == '-' || mark == '+' ? 3 : 2));
}

/* ---- statements ---- */

static struct jinja_node *jinja_read_nodes(struct jinja_run *run, struct tol_gguf_text *stop);

static void jinja_read_end(struct jinja_run *run, struct tol_gguf_text stop, const char *word) {
    if (!jinja_is(stop, word)) {
        jinja_fail(run, TOL_INVALID_FILE, "'%.*s' stands where %s was expected", (int)stop.count,
                   stop.bytes, word);
    }
    jinja_read_tag_end(run, true);
}

/* The expression of if, and the list of for. */
static struct jinja_node *jinja_read_head(struct jinja_run *run) {
    run->in_head = true;
    struct jinja_node *node = jinja_expression(run);
    run->in_head = false;
    return node;
}

static struct jinja_node *jinja_read_if(struct jinja_run *run) {
    struct tol_gguf_text stop;
    struct jinja_node *node = jinja_new(run, JINJA_IF, jinja_read_head(run), NULL);
    jinja_read_tag_end(run, true);
    node->b = jinja_read_nodes(run, &stop);
    if (jinja_is(stop, "elif") && jinja_enter(run)) {
        node->c = jinja_read_if(run);
        jinja_leave(run);
        return node;
    }
    if (jinja_is(stop, "else")) {
        jinja_read_tag_end(run, true);
        node->c = jinja_read_nodes(run, &stop);
    }
    jinja_read_end(run, stop, "endif");
    return node;
}

static struct jinja_node *jinja_read_for(struct jinja_run *run) {
    struct tol_gguf_text stop;
    struct jinja_node *node = jinja_new(run, JINJA_FOR, NULL, NULL);
    node->text = jinja_name(run);
    node->number = jinja_accept(run, ",");
    if (node->number != 0) (void)jinja_name(run);
    jinja_expect(run, "in");
    node->a = jinja_read_head(run);
    if (jinja_accept(run, "if")) node->b = jinja_read_head(run);
    if (jinja_is(jinja_peek(run), "recursive")) {
        jinja_fail(run, TOL_UNSUPPORTED, "it has a recursive loop");
    }
    jinja_read_tag_end(run, true);
    node->c = jinja_read_nodes(run, &stop);
    if (jinja_is(stop, "else")) jinja_fail(run, TOL_UNSUPPORTED, "it has a loop with else");
    jinja_read_end(run, stop, "endfor");
    return node;
}

static struct jinja_node *jinja_read_set(struct jinja_run *run) {
    struct jinja_node *node = jinja_new(run, JINJA_SET, NULL, NULL);
    node->text = jinja_name(run);
    if (jinja_accept(run, ".")) {
        node->b = jinja_new(run, JINJA_NAME, NULL, NULL);
        node->b->text = jinja_name(run);
    }
    if (jinja_is(jinja_peek(run), "%}") || jinja_is(jinja_peek(run), "-%}")) {
        jinja_fail(run, TOL_UNSUPPORTED, "it has a block of set");
    }
    jinja_expect(run, "=");
    node->a = jinja_expression(run);
    jinja_read_tag_end(run, true);
    return node;
}

/* A statement. NULL: the word ends one, and is *stop. */
static struct jinja_node *jinja_read_statement(struct jinja_run *run, struct tol_gguf_text *stop) {
    static const char *const stops[] = {"elif", "else", "endif", "endfor"};
    const struct tol_gguf_text word = jinja_name(run);
    if (jinja_is(word, "if")) return jinja_read_if(run);
    if (jinja_is(word, "for")) return jinja_read_for(run);
    if (jinja_is(word, "set")) return jinja_read_set(run);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (!jinja_is(word, stops[i])) continue;
        *stop = word;
        return NULL;
    }
    jinja_fail(run, TOL_UNSUPPORTED,
               "it has the statement '%.*s'; this worker knows if, for and set",
               (int)(word.count < 40 ? word.count : 40), word.bytes);
    return NULL;
}

/* A tag, which begins here. NULL: a comment, or *stop. */
static struct jinja_node *jinja_read_tag(struct jinja_run *run, struct tol_gguf_text *stop) {
    const char kind = jinja_read_byte(run, run->at + 1);
    if (kind == '#') {
        jinja_read_comment(run);
        return NULL;
    }
    jinja_read_tag_begin(run);
    if (kind == '%') return jinja_read_statement(run, stop);
    struct jinja_node *node = jinja_new(run, JINJA_PRINT, jinja_expression(run), NULL);
    jinja_read_tag_end(run, false);
    return node;
}

/* Up to the end, or to a word that ends a statement, which is *stop. */
static struct jinja_node *jinja_read_nodes(struct jinja_run *run, struct tol_gguf_text *stop) {
    struct jinja_node *first = NULL, **place = &first;
    *stop = (struct tol_gguf_text){"", 0};
    if (!jinja_enter(run)) return NULL;
    while (run->status == TOL_OK && stop->count == 0) {
        *place = jinja_read_text(run);
        place = &(*place)->next;
        if (run->at >= run->source.count) break;
        *place = jinja_read_tag(run, stop);
        if (*place != NULL) place = &(*place)->next;
    }
    jinja_leave(run);
    return first;
}

struct jinja_node *jinja_read(struct jinja_run *run) {
    struct tol_gguf_text stop;
    run->at = 0;
    run->line = 1;
    /* Jinja drops one line end at the end of a template. */
    if (run->source.count > 0 && run->source.bytes[run->source.count - 1] == '\n') {
        run->source.count--;
    }
    struct jinja_node *nodes = jinja_read_nodes(run, &stop);
    if (stop.count > 0) {
        jinja_fail(run, TOL_INVALID_FILE, "'%.*s' ends nothing", (int)stop.count, stop.bytes);
    }
    return nodes;
}
