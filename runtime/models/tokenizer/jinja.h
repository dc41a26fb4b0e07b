/*
 * Jinja: what the files that read and run a template share. chat_template.h has the subset.
 *
 * An error is kept in the run: the first one stays, and functions then return an empty node or
 * undefined, so that callers need not check each. One thread.
 */
#ifndef TOLLENS_JINJA_H
#define TOLLENS_JINJA_H

#include <gguf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JINJA_LEVELS = 100, JINJA_STEPS = 1000000, JINJA_BYTES = 64 << 20 };

/* ---- nodes ---- */

enum jinja_kind {
    JINJA_TEXT,   /* text */
    JINJA_PRINT,  /* a */
    JINJA_FOR,    /* name text in a, if b: c; number: over pairs */
    JINJA_IF,     /* if a: b, else c */
    JINJA_SET,    /* name text, or its field b (a name), = a */
    JINJA_NAME,   /* text */
    JINJA_STRING, /* text */
    JINJA_NUMBER, /* number */
    JINJA_BOOL,   /* number */
    JINJA_NONE,
    JINJA_LIST,   /* a, in a chain */
    JINJA_BINARY, /* a text b */
    JINJA_NOT,    /* a */
    JINJA_MINUS,  /* a */
    JINJA_CHOICE, /* b if a else c */
    JINJA_FIELD,  /* a.text */
    JINJA_INDEX,  /* a[b] */
    JINJA_SLICE,  /* a[b:c:d] */
    JINJA_CALL,   /* a(b, ...); arguments in a chain, text: their names */
    JINJA_FILTER, /* a | text(b, ...) */
    JINJA_TEST    /* a is text; number: is not */
};

struct jinja_node {
    enum jinja_kind kind;
    unsigned line;
    struct tol_gguf_text text;
    int64_t number;
    struct jinja_node *a, *b, *c, *d, *next; /* next: of a chain */
};

/* ---- values ---- */

enum jinja_type {
    JINJA_IS_UNDEFINED,
    JINJA_IS_NONE,
    JINJA_IS_BOOL,
    JINJA_IS_NUMBER,
    JINJA_IS_STRING,
    JINJA_IS_LIST,
    JINJA_IS_MAP
};

struct jinja_item;

struct jinja_value {
    enum jinja_type type;
    int64_t number;            /* also of a bool */
    struct tol_gguf_text text; /* of a string; of undefined what it was called */
    struct jinja_items *items; /* of a list or a map, which values share */
};

struct jinja_item {
    struct tol_gguf_text key; /* of a map */
    struct jinja_value value;
    struct jinja_item *next;
};

struct jinja_items {
    struct jinja_item *first, *last;
    size_t count;
};

/* ---- a run ---- */

struct jinja_chunk;

struct jinja_run {
    tol_status status; /* of the first error, whose message is the thread's */
    struct jinja_chunk *chunks;
    size_t bytes, steps; /* allocated; done so far */
    unsigned level, line;
    bool in_head;            /* the expression that is read is that of a statement: no choice */
    struct jinja_node spare; /* for what has no memory */
    struct tol_gguf_text source;
    size_t at; /* in the source, of the reader */
    bool trims,
        drops_line; /* the white space, or the line end, at `at` belongs to the tag before */
    char *out;
    size_t out_bytes, out_room;
};

/* Keeps an error of the line that is read or run. */
void jinja_fail(struct jinja_run *run, tol_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory that lives as long as the run. NULL: an error, which is kept. */
void *jinja_take(struct jinja_run *run, size_t bytes);
void jinja_end(struct jinja_run *run);

/* One level deeper: false, and an error, if it is too deep. Each true needs a leave. */
bool jinja_enter(struct jinja_run *run);
void jinja_leave(struct jinja_run *run);

bool jinja_is(struct tol_gguf_text text, const char *word);

/* ---- reading ---- */

/* The nodes of a whole template. */
struct jinja_node *jinja_read(struct jinja_run *run);

/* For jinja_read: an expression at run->at, up to what cannot be one. */
struct jinja_node *jinja_expression(struct jinja_run *run);
struct jinja_node *jinja_new(struct jinja_run *run, enum jinja_kind kind, struct jinja_node *a,
                             struct jinja_node *b);

/* Words in a tag. jinja_peek: the next name or sign, "" at the end of the source; strings and
 * numbers are theirs as written. jinja_accept: takes it if it is this one. */
struct tol_gguf_text jinja_peek(struct jinja_run *run);
struct tol_gguf_text jinja_next(struct jinja_run *run);
bool jinja_accept(struct jinja_run *run, const char *word);
void jinja_expect(struct jinja_run *run, const char *word);

/* A name, which is no sign. */
struct tol_gguf_text jinja_name(struct jinja_run *run);

/* ---- values ---- */

struct jinja_value jinja_text_value(struct tol_gguf_text text);
struct jinja_value jinja_number_value(enum jinja_type type, int64_t number);
struct jinja_value jinja_new_items(struct jinja_run *run, enum jinja_type type);

/* Adds an item, or replaces that of the same key in a map. */
void jinja_put(struct jinja_run *run, struct jinja_value *items, struct tol_gguf_text key,
               struct jinja_value value);

/* Undefined: there is none of this key. */
struct jinja_value jinja_get(const struct jinja_value *map, struct tol_gguf_text key);

bool jinja_truth(const struct jinja_value *value);
bool jinja_equal(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b);

/* As {{ }} prints it; and the value as JSON. */
struct tol_gguf_text jinja_printed(struct jinja_run *run, const struct jinja_value *value);
struct tol_gguf_text jinja_json(struct jinja_run *run, const struct jinja_value *value);

struct tol_gguf_text jinja_join(struct jinja_run *run, struct tol_gguf_text a,
                                struct tol_gguf_text b);
const char *jinja_type_name(enum jinja_type type);

/* ---- expressions ---- */

/* Names in scope; an inner scope hides the outer one. */
struct jinja_scope {
    struct jinja_value names; /* a map */
    struct jinja_scope *outer;
};

struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node,
                                  struct jinja_scope *scope);

/* What calls, filters and tests give: jinja_calls.c. */
struct jinja_value jinja_call(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_scope *scope);
struct jinja_value jinja_filter(struct jinja_run *run, const struct jinja_node *node,
                                struct jinja_scope *scope);
struct jinja_value jinja_test(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_scope *scope);

#endif
