/*
 * Reads expressions. From what binds least: choices, or, and, not, comparisons, sums, ~, products,
 * signs; then what follows a value: fields, indices, calls, filters and tests.
 */
#include "jinja.h"

#include <ctype.h>
#include <string.h>

/* ---- values ---- */

/* A string as written, without its quotes and with its escapes replaced. */
static struct tol_gguf_text expression_string(struct jinja_run *run, struct tol_gguf_text word) {
    static const char letters[] = "ntr\\'\"", bytes[] = "\n\t\r\\'\"";
    char *text = jinja_take(run, word.count);
    size_t length = 0;
    if (text == NULL) return word;
    for (size_t i = 1; i + 1 < word.count; i++) {
        char byte = word.bytes[i];
        if (byte == '\\') {
            const char *letter = memchr(letters, word.bytes[++i], sizeof letters - 1);
            if (letter == NULL) {
                jinja_fail(run, TOL_UNSUPPORTED, "a string has the escape \\%c", word.bytes[i]);
                break;
            }
            byte = bytes[letter - letters];
        }
        text[length++] = byte;
    }
    return (struct tol_gguf_text){text, length};
}

static int64_t expression_number(struct jinja_run *run, struct tol_gguf_text word) {
    int64_t number = 0;
    for (size_t i = 0; i < word.count; i++) {
        if (!isdigit((unsigned char)word.bytes[i]) || number > INT32_MAX) {
            jinja_fail(run, TOL_UNSUPPORTED, "it has the number %.*s", (int)word.count, word.bytes);
            return 0;
        }
        number = 10 * number + (word.bytes[i] - '0');
    }
    return number;
}

/* What is between brackets, separated by commas. has_names: NAME=VALUE is an argument. */
static struct jinja_node *expression_chain(struct jinja_run *run, const char *end, bool has_names) {
    struct jinja_node *first = NULL, **place = &first;
    while (run->status == TOL_OK && !jinja_accept(run, end)) {
        struct jinja_node *one = jinja_new(run, JINJA_PRINT, jinja_expression(run), NULL);
        if (has_names && one->a->kind == JINJA_NAME && jinja_accept(run, "=")) {
            one->text = one->a->text;
            one->a = jinja_expression(run);
        }
        *place = one;
        place = &one->next;
        if (jinja_accept(run, ",")) continue;
        jinja_expect(run, end);
        break;
    }
    return first;
}

static struct jinja_node *expression_name(struct jinja_run *run, struct tol_gguf_text word) {
    static const struct {
        const char *word;
        enum jinja_kind kind;
        int64_t number;
    } words[] = {{"true", JINJA_BOOL, 1},  {"True", JINJA_BOOL, 1}, {"false", JINJA_BOOL, 0},
                 {"False", JINJA_BOOL, 0}, {"none", JINJA_NONE, 0}, {"None", JINJA_NONE, 0}};
    struct jinja_node *node = jinja_new(run, JINJA_NAME, NULL, NULL);
    node->text = word;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!jinja_is(word, words[i].word)) continue;
        node->kind = words[i].kind;
        node->number = words[i].number;
    }
    return node;
}

static struct jinja_node *expression_value(struct jinja_run *run) {
    const struct tol_gguf_text word = jinja_next(run);
    const char first = word.count > 0 ? word.bytes[0] : '\0';
    struct jinja_node *node = NULL;
    if (first == '"' || first == '\'') {
        node = jinja_new(run, JINJA_STRING, NULL, NULL);
        node->text = expression_string(run, word);
    } else if (isdigit((unsigned char)first)) {
        node = jinja_new(run, JINJA_NUMBER, NULL, NULL);
        node->number = expression_number(run, word);
    } else if (first == '(') {
        node = jinja_expression(run);
        if (jinja_is(jinja_peek(run), ",")) jinja_fail(run, TOL_UNSUPPORTED, "it has a tuple");
        jinja_expect(run, ")");
    } else if (first == '[') {
        node = jinja_new(run, JINJA_LIST, expression_chain(run, "]", false), NULL);
    } else if (first == '{') {
        jinja_fail(run, TOL_UNSUPPORTED, "it has a mapping in braces");
    } else if (isalpha((unsigned char)first) || first == '_') {
        node = expression_name(run, word);
    } else {
        jinja_fail(run, TOL_INVALID_FILE, "'%.*s' stands where a value was expected",
                   (int)word.count, word.bytes);
    }
    return node != NULL ? node : jinja_new(run, JINJA_NONE, NULL, NULL);
}

/* ---- what follows a value ---- */

/* A bound of a slice. NULL: there is none. */
static struct jinja_node *expression_bound(struct jinja_run *run) {
    const struct tol_gguf_text word = jinja_peek(run);
    return jinja_is(word, ":") || jinja_is(word, "]") ? NULL : jinja_expression(run);
}

/* [INDEX], [FROM:TO] or [FROM:TO:STEP], after the bracket. */
static struct jinja_node *expression_index(struct jinja_run *run, struct jinja_node *of) {
    struct jinja_node *node = jinja_new(run, JINJA_INDEX, of, expression_bound(run));
    if (jinja_accept(run, ":")) {
        node->kind = JINJA_SLICE;
        node->c = expression_bound(run);
        if (jinja_accept(run, ":")) node->d = expression_bound(run);
    } else if (node->b == NULL) {
        node->b = expression_value(run); /* an error */
    }
    jinja_expect(run, "]");
    return node;
}

static struct jinja_node *expression_named(struct jinja_run *run, enum jinja_kind kind,
                                           struct jinja_node *of) {
    struct jinja_node *node = jinja_new(run, kind, of, NULL);
    if (kind == JINJA_TEST) node->number = jinja_accept(run, "not");
    node->text = jinja_name(run);
    if (kind == JINJA_FILTER && jinja_accept(run, "(")) node->b = expression_chain(run, ")", true);
    return node;
}

/* Fields, indices and calls. */
static struct jinja_node *expression_postfix(struct jinja_run *run, struct jinja_node *node) {
    while (run->status == TOL_OK) {
        if (jinja_accept(run, ".")) {
            node = expression_named(run, JINJA_FIELD, node);
        } else if (jinja_accept(run, "[")) {
            node = expression_index(run, node);
        } else if (jinja_accept(run, "(")) {
            node = jinja_new(run, JINJA_CALL, node, expression_chain(run, ")", true));
        } else {
            break;
        }
    }
    return node;
}

static struct jinja_node *expression_filters(struct jinja_run *run, struct jinja_node *node) {
    while (run->status == TOL_OK) {
        if (jinja_accept(run, "|")) {
            node = expression_named(run, JINJA_FILTER, node);
        } else if (jinja_accept(run, "is")) {
            node = expression_named(run, JINJA_TEST, node);
        } else {
            break;
        }
    }
    return node;
}

/* Filters and tests are of the value with its sign. */
static struct jinja_node *expression_signed(struct jinja_run *run) {
    struct jinja_node *node = NULL;
    if (!jinja_enter(run)) return jinja_new(run, JINJA_NONE, NULL, NULL);
    if (jinja_accept(run, "-")) {
        node = jinja_new(run, JINJA_MINUS, expression_signed(run), NULL);
    } else {
        node = expression_postfix(run, expression_value(run));
    }
    jinja_leave(run);
    return node;
}

/* ---- operators ---- */

/* Levels of operators of two values, from what binds most. */
static const char *const operators[][9] = {
    {"*", "//", "%"}, {"~"}, {"+", "-"}, {"==", "!=", "<", ">", "<=", ">=", "in", "not"}};
enum { OPERATOR_LEVELS = sizeof operators / sizeof operators[0] };

static const char *expression_operator(struct jinja_run *run, int level) {
    for (size_t i = 0; operators[level][i] != NULL; i++) {
        if (jinja_accept(run, operators[level][i])) return operators[level][i];
    }
    return NULL;
}

static struct jinja_node *expression_binary(struct jinja_run *run, int level) {
    const char *sign = NULL;
    unsigned signs = 0;
    if (level < 0) return expression_filters(run, expression_signed(run));
    struct jinja_node *node = expression_binary(run, level - 1);
    while ((sign = expression_operator(run, level)) != NULL) {
        if (strcmp(sign, "not") == 0) {
            jinja_expect(run, "in");
            sign = "not in";
        }
        if (level == OPERATOR_LEVELS - 1 && ++signs > 1) {
            jinja_fail(run, TOL_UNSUPPORTED, "it has a chain of comparisons");
        }
        node = jinja_new(run, JINJA_BINARY, node, expression_binary(run, level - 1));
        node->text = (struct tol_gguf_text){sign, strlen(sign)};
    }
    return node;
}

static struct jinja_node *expression_not(struct jinja_run *run) {
    struct jinja_node *node = NULL;
    if (!jinja_accept(run, "not")) return expression_binary(run, OPERATOR_LEVELS - 1);
    if (!jinja_enter(run)) return jinja_new(run, JINJA_NONE, NULL, NULL);
    node = jinja_new(run, JINJA_NOT, expression_not(run), NULL);
    jinja_leave(run);
    return node;
}

/* and, or: of values that are tests or of those that `and` joins. */
static struct jinja_node *expression_joined(struct jinja_run *run, const char *word) {
    const bool is_or = strcmp(word, "or") == 0;
    struct jinja_node *node = is_or ? expression_joined(run, "and") : expression_not(run);
    while (jinja_accept(run, word)) {
        struct jinja_node *other = is_or ? expression_joined(run, "and") : expression_not(run);
        node = jinja_new(run, JINJA_BINARY, node, other);
        node->text = (struct tol_gguf_text){word, strlen(word)};
    }
    return node;
}

struct jinja_node *jinja_expression(struct jinja_run *run) {
    const bool is_head = run->in_head;
    if (!jinja_enter(run)) return jinja_new(run, JINJA_NONE, NULL, NULL);
    run->in_head = false;
    struct jinja_node *node = expression_joined(run, "or");
    /* In the head of a loop, `if` begins a filter of the list; in that of `if` it is an error. */
    if (!is_head && jinja_accept(run, "if")) {
        node = jinja_new(run, JINJA_CHOICE, expression_joined(run, "or"), node);
        if (jinja_accept(run, "else")) node->c = jinja_expression(run);
    }
    jinja_leave(run);
    return node;
}
