/*
 * Functions, methods of texts, filters and tests, each by its name.
 */
#include "jinja.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

static const struct jinja_value undefined = {.type = JINJA_IS_UNDEFINED, .text = {"", 0}};

enum sides { LEFT = 1, RIGHT = 2 };

static struct jinja_value calls_strip(struct tol_gguf_text text, unsigned sides) {
    while ((sides & LEFT) != 0 && text.count > 0 && isspace((unsigned char)text.bytes[0])) {
        text.bytes++, text.count--;
    }
    while ((sides & RIGHT) != 0 && text.count > 0 &&
           isspace((unsigned char)text.bytes[text.count - 1])) {
        text.count--;
    }
    return jinja_text_value(text);
}

/* The only argument, which must be a string. */
static struct tol_gguf_text calls_string(struct jinja_run *run, const struct jinja_node *node,
                                         struct jinja_scope *scope, struct tol_gguf_text name) {
    struct jinja_value value = undefined;
    if (node->b != NULL && node->b->next == NULL) value = jinja_evaluate(run, node->b->a, scope);
    if (value.type != JINJA_IS_STRING) {
        jinja_fail(run, TOL_UNSUPPORTED, "'%.*s' takes one string here", (int)name.count,
                   name.bytes);
        return undefined.text;
    }
    return value.text;
}

/* ---- methods of texts ---- */

static struct jinja_value calls_method(struct jinja_run *run, const struct jinja_node *node,
                                       struct jinja_scope *scope) {
    static const struct {
        const char *name;
        unsigned sides;
        bool tests;
    } methods[] = {{"strip", LEFT | RIGHT, false},
                   {"lstrip", LEFT, false},
                   {"rstrip", RIGHT, false},
                   {"startswith", LEFT, true},
                   {"endswith", RIGHT, true}};
    const struct tol_gguf_text name = node->a->text;
    const struct jinja_value of = jinja_evaluate(run, node->a->a, scope);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (of.type != JINJA_IS_STRING || !jinja_is(name, methods[i].name)) continue;
        if (!methods[i].tests && node->b == NULL) return calls_strip(of.text, methods[i].sides);
        const struct tol_gguf_text part = calls_string(run, node, scope, name);
        if (!methods[i].tests) break;
        const char *at =
            methods[i].sides == LEFT ? of.text.bytes : of.text.bytes + of.text.count - part.count;
        return jinja_number_value(JINJA_IS_BOOL, part.count <= of.text.count &&
                                                     memcmp(at, part.bytes, part.count) == 0);
    }
    jinja_fail(run, TOL_UNSUPPORTED, "it calls '%.*s' of %s", (int)name.count, name.bytes,
               jinja_type_name(of.type));
    return undefined;
}

/* ---- functions ---- */

static struct jinja_value calls_namespace(struct jinja_run *run, const struct jinja_node *node,
                                          struct jinja_scope *scope) {
    struct jinja_value fields = jinja_new_items(run, JINJA_IS_MAP);
    for (const struct jinja_node *i = node->b; i != NULL; i = i->next) {
        if (i->text.count == 0) jinja_fail(run, TOL_UNSUPPORTED, "a namespace without names");
        jinja_put(run, &fields, i->text, jinja_evaluate(run, i->a, scope));
    }
    return fields;
}

/* The local time. */
static struct jinja_value calls_time(struct jinja_run *run, struct tol_gguf_text format) {
    enum { BYTES = 200 };
    char *text = jinja_take(run, BYTES), *wanted = jinja_take(run, format.count);
    const time_t now = time(NULL);
    struct tm parts;
    if (text == NULL || wanted == NULL || localtime_r(&now, &parts) == NULL) return undefined;
    if (format.count > 0) memcpy(wanted, format.bytes, format.count);
    const size_t count = strftime(text, BYTES, wanted, &parts);
    return jinja_text_value((struct tol_gguf_text){text, count});
}

struct jinja_value jinja_call(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_scope *scope) {
    const struct jinja_node *callee = node->a;
    if (callee->kind == JINJA_FIELD) return calls_method(run, node, scope);
    if (callee->kind == JINJA_NAME && jinja_is(callee->text, "namespace")) {
        return calls_namespace(run, node, scope);
    }
    if (callee->kind == JINJA_NAME && jinja_is(callee->text, "raise_exception")) {
        const struct tol_gguf_text text = calls_string(run, node, scope, callee->text);
        jinja_fail(run, TOL_INVALID_ARGUMENT, "it refuses this conversation: %.*s",
                   (int)(text.count < 200 ? text.count : 200), text.bytes);
        return undefined;
    }
    if (callee->kind == JINJA_NAME && jinja_is(callee->text, "strftime_now")) {
        return calls_time(run, calls_string(run, node, scope, callee->text));
    }
    jinja_fail(run, TOL_UNSUPPORTED,
               "it calls the function '%.*s'; this worker knows raise_exception, namespace and "
               "strftime_now",
               (int)callee->text.count, callee->text.count > 0 ? callee->text.bytes : "");
    return undefined;
}

/* ---- filters ---- */

static struct jinja_value calls_length(struct jinja_run *run, const struct jinja_value *of) {
    size_t count = 0;
    if (of->type == JINJA_IS_LIST || of->type == JINJA_IS_MAP) {
        count = of->items->count;
    } else if (of->type == JINJA_IS_STRING) { /* of characters: bytes that begin one */
        for (size_t i = 0; i < of->text.count; i++) {
            count += ((unsigned char)of->text.bytes[i] & 0xc0) != 0x80;
        }
    } else if (of->type != JINJA_IS_UNDEFINED) {
        jinja_fail(run, TOL_INVALID_FILE, "the length of %s", jinja_type_name(of->type));
    }
    return jinja_number_value(JINJA_IS_NUMBER, (int64_t)count);
}

struct jinja_value jinja_filter(struct jinja_run *run, const struct jinja_node *node,
                                struct jinja_scope *scope) {
    const struct jinja_value of = jinja_evaluate(run, node->a, scope);
    const bool is_plain = node->b == NULL;
    if (run->status != TOL_OK) return undefined;
    if (is_plain && jinja_is(node->text, "trim")) {
        return calls_strip(jinja_printed(run, &of), LEFT | RIGHT);
    }
    if (is_plain && jinja_is(node->text, "tojson")) return jinja_text_value(jinja_json(run, &of));
    if (is_plain && jinja_is(node->text, "length")) return calls_length(run, &of);
    jinja_fail(run, TOL_UNSUPPORTED,
               "it has the filter '%.*s'%s; this worker knows trim, tojson and length",
               (int)node->text.count, node->text.bytes, is_plain ? "" : " with arguments");
    return undefined;
}

/* ---- tests ---- */

struct jinja_value jinja_test(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_scope *scope) {
    enum { BIT = 1 };
    static const struct {
        const char *name;
        unsigned types; /* a bit each */
    } tests[] = {{"none", BIT << JINJA_IS_NONE},
                 {"string", BIT << JINJA_IS_STRING},
                 {"mapping", BIT << JINJA_IS_MAP},
                 {"undefined", BIT << JINJA_IS_UNDEFINED},
                 {"iterable", BIT << JINJA_IS_UNDEFINED | BIT << JINJA_IS_STRING |
                                  BIT << JINJA_IS_LIST | BIT << JINJA_IS_MAP},
                 {"defined", ~(unsigned)(BIT << JINJA_IS_UNDEFINED)}};
    const struct jinja_value of = jinja_evaluate(run, node->a, scope);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (!jinja_is(node->text, tests[i].name)) continue;
        const bool is_it = (tests[i].types >> of.type & BIT) != 0;
        return jinja_number_value(JINJA_IS_BOOL, is_it != (node->number != 0));
    }
    for (int i = 0; i < 2; i++) {
        if (!jinja_is(node->text, i == 0 ? "false" : "true")) continue;
        const bool is_it = of.type == JINJA_IS_BOOL && of.number == i;
        return jinja_number_value(JINJA_IS_BOOL, is_it != (node->number != 0));
    }
    jinja_fail(run, TOL_UNSUPPORTED, "it has the test '%.*s'", (int)node->text.count,
               node->text.bytes);
    return undefined;
}
