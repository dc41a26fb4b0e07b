/*
 * What expressions are worth.
 */
#include "jinja.h"

#include <string.h>

static const struct jinja_value undefined = {.type = JINJA_IS_UNDEFINED, .text = {"", 0}};

/* ---- names, fields and indices ---- */

static struct jinja_value evaluate_name(struct tol_gguf_text name,
                                        const struct jinja_scope *scope) {
    struct jinja_value value = undefined;
    for (; scope != NULL && value.type == JINJA_IS_UNDEFINED; scope = scope->outer) {
        value = jinja_get(&scope->names, name);
    }
    return value;
}

/* An error if a field or an element is wanted of what has none. */
static bool evaluate_has_items(struct jinja_run *run, const struct jinja_value *of) {
    if (of->type == JINJA_IS_LIST || of->type == JINJA_IS_MAP) return true;
    if (of->type == JINJA_IS_UNDEFINED) {
        jinja_fail(run, TOL_INVALID_FILE, "'%.*s' is undefined", (int)of->text.count,
                   of->text.bytes);
    }
    return false;
}

static struct jinja_value evaluate_field(struct jinja_run *run, const struct jinja_node *node,
                                         struct jinja_scope *scope) {
    const struct jinja_value of = jinja_evaluate(run, node->a, scope);
    const struct jinja_value value =
        evaluate_has_items(run, &of) ? jinja_get(&of, node->text) : undefined;
    const bool is_loop = node->a->kind == JINJA_NAME && jinja_is(node->a->text, "loop");
    if (is_loop && value.type == JINJA_IS_UNDEFINED) {
        jinja_fail(run, TOL_UNSUPPORTED, "it has loop.%.*s", (int)node->text.count,
                   node->text.bytes);
    }
    return value;
}

/* A place in a list or a string of `count`, from the end if it is negative. */
static size_t evaluate_place(int64_t number, size_t count) {
    if (number < 0) number += (int64_t)count;
    if (number < 0) return 0;
    return (uint64_t)number < count ? (size_t)number : count;
}

static struct jinja_value evaluate_element(const struct jinja_value *list, int64_t number) {
    const struct jinja_item *item = list->items->first;
    if (number < 0) number += (int64_t)list->items->count;
    if (number < 0) return undefined;
    for (; item != NULL && number > 0; number--) item = item->next;
    return item != NULL ? item->value : undefined;
}

static struct jinja_value evaluate_index(struct jinja_run *run, const struct jinja_value *of,
                                         const struct jinja_value *at) {
    if (of->type == JINJA_IS_STRING) {
        jinja_fail(run, TOL_UNSUPPORTED, "it takes one character of a text");
    }
    if (!evaluate_has_items(run, of)) return undefined;
    if (of->type == JINJA_IS_MAP && at->type == JINJA_IS_STRING) return jinja_get(of, at->text);
    if (of->type == JINJA_IS_LIST && at->type == JINJA_IS_NUMBER) {
        return evaluate_element(of, at->number);
    }
    jinja_fail(run, TOL_INVALID_FILE, "%s is no index of %s", jinja_type_name(at->type),
               jinja_type_name(of->type));
    return undefined;
}

static int64_t evaluate_bound(struct jinja_run *run, const struct jinja_node *node,
                              struct jinja_scope *scope, int64_t otherwise) {
    if (node == NULL) return otherwise;
    const struct jinja_value value = jinja_evaluate(run, node, scope);
    if (value.type == JINJA_IS_NUMBER) return value.number;
    jinja_fail(run, TOL_INVALID_FILE, "%s is no bound of a slice", jinja_type_name(value.type));
    return 0;
}

/* A list from its end. */
static struct jinja_value evaluate_reversed(struct jinja_run *run, const struct jinja_value *list) {
    struct jinja_value all = jinja_new_items(run, JINJA_IS_LIST);
    for (size_t i = list->items->count; i-- > 0 && run->status == TOL_OK;) {
        jinja_put(run, &all, undefined.text, evaluate_element(list, (int64_t)i));
    }
    return all;
}

static struct jinja_value evaluate_text_part(struct jinja_run *run, struct tol_gguf_text text,
                                             size_t from, size_t to) {
    /* Jinja counts characters, which are bytes in ASCII. */
    for (size_t i = 0; i < text.count; i++) {
        if (((unsigned char)text.bytes[i] & 0x80) == 0) continue;
        jinja_fail(run, TOL_UNSUPPORTED, "it slices a text that is not ASCII");
        return undefined;
    }
    return jinja_text_value((struct tol_gguf_text){text.bytes + from, to > from ? to - from : 0});
}

static struct jinja_value evaluate_slice(struct jinja_run *run, const struct jinja_node *node,
                                         struct jinja_scope *scope) {
    const struct jinja_value of = jinja_evaluate(run, node->a, scope);
    const bool is_text = of.type == JINJA_IS_STRING;
    const int64_t step = evaluate_bound(run, node->d, scope, 1);
    if (!is_text && (of.type != JINJA_IS_LIST || run->status != TOL_OK)) {
        jinja_fail(run, TOL_INVALID_FILE, "%s has no slices", jinja_type_name(of.type));
        return undefined;
    }
    if (!is_text && step == -1 && node->b == NULL && node->c == NULL) {
        return evaluate_reversed(run, &of);
    }
    if (step != 1) {
        jinja_fail(run, TOL_UNSUPPORTED, "it has a slice with a step other than [::-1] of a list");
        return undefined;
    }
    const size_t count = is_text ? of.text.count : of.items->count;
    const size_t from = evaluate_place(evaluate_bound(run, node->b, scope, 0), count);
    const size_t to = evaluate_place(evaluate_bound(run, node->c, scope, (int64_t)count), count);
    if (is_text) return evaluate_text_part(run, of.text, from, to);
    struct jinja_value part = jinja_new_items(run, JINJA_IS_LIST);
    size_t at = 0;
    for (const struct jinja_item *i = of.items->first; i != NULL; i = i->next, at++) {
        if (at >= from && at < to) jinja_put(run, &part, undefined.text, i->value);
    }
    return part;
}

static struct jinja_value evaluate_list(struct jinja_run *run, const struct jinja_node *node,
                                        struct jinja_scope *scope) {
    struct jinja_value list = jinja_new_items(run, JINJA_IS_LIST);
    for (const struct jinja_node *i = node->a; i != NULL && run->status == TOL_OK; i = i->next) {
        jinja_put(run, &list, undefined.text, jinja_evaluate(run, i->a, scope));
    }
    return list;
}

/* ---- operators ---- */

static struct jinja_value evaluate_bool(bool is_true) {
    return jinja_number_value(JINJA_IS_BOOL, is_true);
}

static struct jinja_value evaluate_misuse(struct jinja_run *run, const struct jinja_value *a,
                                          struct tol_gguf_text sign, const struct jinja_value *b) {
    jinja_fail(run, TOL_INVALID_FILE, "%s %.*s %s", jinja_type_name(a->type), (int)sign.count,
               sign.bytes, jinja_type_name(b->type));
    return undefined;
}

/* As Python has it: the rest has the divisor's sign. */
static struct jinja_value evaluate_division(struct jinja_run *run, int64_t a, int64_t b,
                                            bool wants_rest) {
    if (b == 0) {
        jinja_fail(run, TOL_INVALID_FILE, "a division by 0");
        return undefined;
    }
    const int64_t rest = a % b;
    const bool moves = rest != 0 && (rest < 0) != (b < 0);
    return jinja_number_value(JINJA_IS_NUMBER, wants_rest ? rest + (moves ? b : 0) : a / b - moves);
}

static struct jinja_value evaluate_sum(struct jinja_run *run, const struct jinja_value *a,
                                       struct tol_gguf_text sign, const struct jinja_value *b) {
    enum { SAFE = 1 << 30 };
    const int64_t x = a->number, y = b->number;
    if (a->type == JINJA_IS_STRING && b->type == JINJA_IS_STRING && jinja_is(sign, "+")) {
        return jinja_text_value(jinja_join(run, a->text, b->text));
    }
    if (a->type != JINJA_IS_NUMBER || b->type != JINJA_IS_NUMBER) {
        return evaluate_misuse(run, a, sign, b);
    }
    if (x > SAFE || x < -SAFE || y > SAFE || y < -SAFE) {
        jinja_fail(run, TOL_OVER_LIMIT, "a number of more than %d", SAFE);
        return undefined;
    }
    if (jinja_is(sign, "+")) return jinja_number_value(JINJA_IS_NUMBER, x + y);
    if (jinja_is(sign, "-")) return jinja_number_value(JINJA_IS_NUMBER, x - y);
    if (jinja_is(sign, "*")) return jinja_number_value(JINJA_IS_NUMBER, x * y);
    return evaluate_division(run, x, y, jinja_is(sign, "%"));
}

static bool evaluate_contains(struct jinja_run *run, const struct jinja_value *in,
                              const struct jinja_value *what) {
    if (in->type == JINJA_IS_STRING && what->type == JINJA_IS_STRING) {
        return what->text.count == 0 ||
               memmem(in->text.bytes, in->text.count, what->text.bytes, what->text.count) != NULL;
    }
    if (!evaluate_has_items(run, in)) {
        jinja_fail(run, TOL_INVALID_FILE, "%s in %s", jinja_type_name(what->type),
                   jinja_type_name(in->type));
        return false;
    }
    for (const struct jinja_item *i = in->items->first; i != NULL; i = i->next) {
        const struct jinja_value key = jinja_text_value(i->key);
        if (jinja_equal(run, in->type == JINJA_IS_MAP ? &key : &i->value, what)) return true;
    }
    return false;
}

static struct jinja_value evaluate_order(struct jinja_run *run, const struct jinja_value *a,
                                         struct tol_gguf_text sign, const struct jinja_value *b) {
    int64_t order = a->number - b->number;
    if (a->type != b->type || (a->type != JINJA_IS_NUMBER && a->type != JINJA_IS_STRING)) {
        return evaluate_misuse(run, a, sign, b);
    }
    if (a->type == JINJA_IS_STRING) {
        const size_t least = a->text.count < b->text.count ? a->text.count : b->text.count;
        order = least > 0 ? memcmp(a->text.bytes, b->text.bytes, least) : 0;
        if (order == 0) order = (int64_t)a->text.count - (int64_t)b->text.count;
    }
    const bool is_same = sign.count == 2 && order == 0;
    return evaluate_bool(is_same || (sign.bytes[0] == '<' ? order < 0 : order > 0));
}

static struct jinja_value evaluate_binary(struct jinja_run *run, const struct jinja_node *node,
                                          struct jinja_scope *scope) {
    const struct tol_gguf_text sign = node->text;
    const struct jinja_value a = jinja_evaluate(run, node->a, scope);
    if (jinja_is(sign, "and")) return jinja_truth(&a) ? jinja_evaluate(run, node->b, scope) : a;
    if (jinja_is(sign, "or")) return jinja_truth(&a) ? a : jinja_evaluate(run, node->b, scope);
    const struct jinja_value b = jinja_evaluate(run, node->b, scope);
    if (run->status != TOL_OK) return undefined;
    if (jinja_is(sign, "==")) return evaluate_bool(jinja_equal(run, &a, &b));
    if (jinja_is(sign, "!=")) return evaluate_bool(!jinja_equal(run, &a, &b));
    if (jinja_is(sign, "in")) return evaluate_bool(evaluate_contains(run, &b, &a));
    if (jinja_is(sign, "not in")) return evaluate_bool(!evaluate_contains(run, &b, &a));
    if (jinja_is(sign, "~")) {
        return jinja_text_value(jinja_join(run, jinja_printed(run, &a), jinja_printed(run, &b)));
    }
    if (sign.bytes[0] == '<' || sign.bytes[0] == '>') return evaluate_order(run, &a, sign, &b);
    return evaluate_sum(run, &a, sign, &b);
}

/* ---- all ---- */

static struct jinja_value evaluate_minus(struct jinja_run *run, const struct jinja_node *node,
                                         struct jinja_scope *scope) {
    struct jinja_value value = jinja_evaluate(run, node->a, scope);
    if (value.type != JINJA_IS_NUMBER) {
        jinja_fail(run, TOL_INVALID_FILE, "minus %s", jinja_type_name(value.type));
    }
    value.number = -value.number;
    return value;
}

static struct jinja_value evaluate_choice(struct jinja_run *run, const struct jinja_node *node,
                                          struct jinja_scope *scope) {
    const struct jinja_value condition = jinja_evaluate(run, node->a, scope);
    if (jinja_truth(&condition)) return jinja_evaluate(run, node->b, scope);
    return node->c != NULL ? jinja_evaluate(run, node->c, scope) : undefined;
}

static struct jinja_value evaluate_kind(struct jinja_run *run, const struct jinja_node *node,
                                        struct jinja_scope *scope) {
    struct jinja_value of = undefined, at = undefined;
    switch (node->kind) {
    case JINJA_NAME:
        return evaluate_name(node->text, scope);
    case JINJA_STRING:
        return jinja_text_value(node->text);
    case JINJA_NUMBER:
        return jinja_number_value(JINJA_IS_NUMBER, node->number);
    case JINJA_BOOL:
        return evaluate_bool(node->number != 0);
    case JINJA_NONE:
        return jinja_number_value(JINJA_IS_NONE, 0);
    case JINJA_LIST:
        return evaluate_list(run, node, scope);
    case JINJA_BINARY:
        return evaluate_binary(run, node, scope);
    case JINJA_NOT:
        of = jinja_evaluate(run, node->a, scope);
        return evaluate_bool(!jinja_truth(&of));
    case JINJA_MINUS:
        return evaluate_minus(run, node, scope);
    case JINJA_CHOICE:
        return evaluate_choice(run, node, scope);
    case JINJA_FIELD:
        return evaluate_field(run, node, scope);
    case JINJA_INDEX:
        of = jinja_evaluate(run, node->a, scope);
        at = jinja_evaluate(run, node->b, scope);
        return evaluate_index(run, &of, &at);
    case JINJA_SLICE:
        return evaluate_slice(run, node, scope);
    case JINJA_CALL:
        return jinja_call(run, node, scope);
    case JINJA_FILTER:
        return jinja_filter(run, node, scope);
    default:
        return jinja_test(run, node, scope);
    }
}

struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node,
                                  struct jinja_scope *scope) {
    struct jinja_value value = undefined;
    if (!jinja_enter(run)) return undefined;
    run->line = node->line;
    value = evaluate_kind(run, node, scope);
    jinja_leave(run);
    return run->status == TOL_OK ? value : undefined;
}
