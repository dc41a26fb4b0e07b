/*
 * Memory, errors and values of a template.
 */
#include "jinja.h"

#include "core/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jinja_chunk {
    struct jinja_chunk *next;
    max_align_t bytes[];
};

/* ---- the run ---- */

void jinja_fail(struct jinja_run *run, tol_status status, const char *format, ...) {
    char text[300];
    va_list list;
    if (run->status != TOL_OK) return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    run->status =
        tol_fail(__FILE__, __LINE__, status, "line %u of the chat template: %s", run->line, text);
}

void *jinja_take(struct jinja_run *run, size_t bytes) {
    struct jinja_chunk *chunk = NULL;
    if (bytes > JINJA_BYTES - run->bytes) {
        jinja_fail(run, TOL_OVER_LIMIT, "it takes more than %d MiB", JINJA_BYTES >> 20);
        return NULL;
    }
    chunk = calloc(1, sizeof *chunk + bytes + 1);
    if (chunk == NULL) {
        jinja_fail(run, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
        return NULL;
    }
    run->bytes += bytes;
    chunk->next = run->chunks;
    run->chunks = chunk;
    return chunk->bytes;
}

void jinja_end(struct jinja_run *run) {
    while (run->chunks != NULL) {
        struct jinja_chunk *chunk = run->chunks;
        run->chunks = chunk->next;
        free(chunk);
    }
}

bool jinja_enter(struct jinja_run *run) {
    if (run->level >= JINJA_LEVELS || run->steps >= JINJA_STEPS) {
        jinja_fail(run, TOL_OVER_LIMIT, "it takes more than %d levels or %d steps", JINJA_LEVELS,
                   JINJA_STEPS);
    }
    if (run->status != TOL_OK) return false;
    run->level++;
    run->steps++;
    return true;
}

void jinja_leave(struct jinja_run *run) {
    run->level--;
}

bool jinja_is(struct tol_gguf_text text, const char *word) {
    return text.count == strlen(word) && memcmp(text.bytes, word, text.count) == 0;
}

/* ---- making ---- */

struct jinja_value jinja_text_value(struct tol_gguf_text text) {
    return (struct jinja_value){.type = JINJA_IS_STRING, .text = text};
}

struct jinja_value jinja_number_value(enum jinja_type type, int64_t number) {
    return (struct jinja_value){.type = type, .number = number};
}

struct jinja_value jinja_new_items(struct jinja_run *run, enum jinja_type type) {
    struct jinja_items *items = jinja_take(run, sizeof *items);
    return (struct jinja_value){.type = items != NULL ? type : JINJA_IS_UNDEFINED, .items = items};
}

static bool value_is_same(struct tol_gguf_text a, struct tol_gguf_text b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

static struct jinja_item *value_find(const struct jinja_value *map, struct tol_gguf_text key) {
    if (map->type != JINJA_IS_MAP) return NULL;
    for (struct jinja_item *item = map->items->first; item != NULL; item = item->next) {
        if (value_is_same(item->key, key)) return item;
    }
    return NULL;
}

void jinja_put(struct jinja_run *run, struct jinja_value *to, struct tol_gguf_text key,
               struct jinja_value value) {
    struct jinja_item *item = value_find(to, key);
    if (to->items == NULL) return;
    if (item == NULL) {
        item = jinja_take(run, sizeof *item);
        if (item == NULL) return;
        item->key = key;
        *(to->items->last != NULL ? &to->items->last->next : &to->items->first) = item;
        to->items->last = item;
        to->items->count++;
    }
    item->value = value;
}

struct jinja_value jinja_get(const struct jinja_value *map, struct tol_gguf_text key) {
    const struct jinja_item *item = value_find(map, key);
    return item != NULL ? item->value
                        : (struct jinja_value){.type = JINJA_IS_UNDEFINED, .text = key};
}

/* ---- comparing ---- */

bool jinja_truth(const struct jinja_value *value) {
    switch (value->type) {
    case JINJA_IS_BOOL:
    case JINJA_IS_NUMBER:
        return value->number != 0;
    case JINJA_IS_STRING:
        return value->text.count > 0;
    case JINJA_IS_LIST:
    case JINJA_IS_MAP:
        return value->items->count > 0;
    default:
        return false;
    }
}

static bool value_is_number(const struct jinja_value *value) {
    return value->type == JINJA_IS_NUMBER || value->type == JINJA_IS_BOOL;
}

bool jinja_equal(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b) {
    if (value_is_number(a) && value_is_number(b)) return a->number == b->number;
    if (a->type != b->type) return false;
    if (a->type == JINJA_IS_STRING) return value_is_same(a->text, b->text);
    if (a->items == b->items) return true; /* undefined and none have none */
    if (a->items->count != b->items->count) return false;
    const struct jinja_item *other = b->items->first;
    if (!jinja_enter(run)) return false; /* a namespace may contain itself */
    bool is_equal = true;
    for (const struct jinja_item *i = a->items->first; i != NULL && is_equal; i = i->next) {
        const struct jinja_item *same = a->type == JINJA_IS_MAP ? value_find(b, i->key) : other;
        is_equal = same != NULL && jinja_equal(run, &i->value, &same->value);
        other = other->next;
    }
    jinja_leave(run);
    return is_equal;
}

/* ---- texts ---- */

const char *jinja_type_name(enum jinja_type type) {
    static const char *const names[] = {"undefined", "none",   "a bool",   "a number",
                                        "a string",  "a list", "a mapping"};
    return names[type];
}

struct tol_gguf_text jinja_join(struct jinja_run *run, struct tol_gguf_text a,
                                struct tol_gguf_text b) {
    char *bytes = jinja_take(run, a.count + b.count);
    if (bytes == NULL) return (struct tol_gguf_text){"", 0};
    if (a.count > 0) memcpy(bytes, a.bytes, a.count);
    if (b.count > 0) memcpy(bytes + a.count, b.bytes, b.count);
    return (struct tol_gguf_text){bytes, a.count + b.count};
}

static struct tol_gguf_text value_text_of(const char *text) {
    return (struct tol_gguf_text){text, strlen(text)};
}

static struct tol_gguf_text value_number_text(struct jinja_run *run, int64_t number) {
    char *text = jinja_take(run, 24);
    if (text == NULL) return value_text_of("");
    snprintf(text, 24, "%lld", (long long)number);
    return value_text_of(text);
}

struct tol_gguf_text jinja_printed(struct jinja_run *run, const struct jinja_value *value) {
    switch (value->type) {
    case JINJA_IS_UNDEFINED:
        return value_text_of("");
    case JINJA_IS_NONE:
        return value_text_of("None");
    case JINJA_IS_BOOL:
        return value_text_of(value->number != 0 ? "True" : "False");
    case JINJA_IS_NUMBER:
        return value_number_text(run, value->number);
    case JINJA_IS_STRING:
        return value->text;
    default:
        jinja_fail(run, TOL_UNSUPPORTED, "it prints %s; only tojson does that here",
                   jinja_type_name(value->type));
        return value_text_of("");
    }
}

static const char named_bytes[] = "\"\\\n\r\t\b\f";

static struct tol_gguf_text value_json_string(struct jinja_run *run, struct tol_gguf_text text) {
    char *out = jinja_take(run, 6 * text.count + 3);
    size_t length = 0;
    if (out == NULL) return value_text_of("");
    out[length++] = '"';
    for (size_t i = 0; i < text.count; i++) {
        const unsigned char byte = (unsigned char)text.bytes[i];
        const char *named = memchr(named_bytes, byte, sizeof named_bytes - 1);
        if (named != NULL) {
            out[length++] = '\\';
            out[length++] = "\"\\nrtbf"[named - named_bytes];
        } else if (byte < ' ') {
            length += (size_t)sprintf(out + length, "\\u%04x", byte);
        } else {
            out[length++] = (char)byte;
        }
    }
    out[length++] = '"';
    return (struct tol_gguf_text){out, length};
}

static struct tol_gguf_text value_json_items(struct jinja_run *run,
                                             const struct jinja_value *value) {
    const bool is_map = value->type == JINJA_IS_MAP;
    struct tol_gguf_text all = value_text_of(is_map ? "{" : "[");
    for (const struct jinja_item *i = value->items->first; i != NULL; i = i->next) {
        if (is_map) {
            all = jinja_join(run, all, value_json_string(run, i->key));
            all = jinja_join(run, all, value_text_of(": "));
        }
        all = jinja_join(run, all, jinja_json(run, &i->value));
        if (i->next != NULL) all = jinja_join(run, all, value_text_of(", "));
    }
    return jinja_join(run, all, value_text_of(is_map ? "}" : "]"));
}

struct tol_gguf_text jinja_json(struct jinja_run *run, const struct jinja_value *value) {
    struct tol_gguf_text text = value_text_of("null");
    if (!jinja_enter(run)) return text;
    if (value->type == JINJA_IS_STRING) {
        text = value_json_string(run, value->text);
    } else if (value->type == JINJA_IS_NUMBER) {
        text = value_number_text(run, value->number);
    } else if (value->type == JINJA_IS_BOOL) {
        text = value_text_of(value->number != 0 ? "true" : "false");
    } else if (value->type == JINJA_IS_LIST || value->type == JINJA_IS_MAP) {
        text = value_json_items(run, value);
    } else if (value->type == JINJA_IS_UNDEFINED) {
        jinja_fail(run, TOL_INVALID_FILE, "tojson of %.*s, which is undefined",
                   (int)value->text.count, value->text.bytes);
    }
    jinja_leave(run);
    return text;
}
