/*
 * Runs the statements of a template, and describes the conversation to it.
 */
#include "chat_template.h"

#include "core/check.h"
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

static struct tol_gguf_text chat_text_of(const char *text) {
    return (struct tol_gguf_text){text, strlen(text)};
}

static void chat_run(struct jinja_run *run, const struct jinja_node *nodes,
                     struct jinja_scope *scope);

/* ---- output ---- */

static void chat_write(struct jinja_run *run, struct tol_gguf_text text) {
    if (run->status != TOL_OK || text.count == 0) return;
    if (text.count > JINJA_BYTES - run->out_bytes) {
        jinja_fail(run, TOL_OVER_LIMIT, "its text has more than %d MiB", JINJA_BYTES >> 20);
        return;
    }
    if (run->out_bytes + text.count + 1 > run->out_room) {
        const size_t room = 2 * (run->out_bytes + text.count) + 256;
        char *grown = realloc(run->out, room);
        if (grown == NULL) {
            jinja_fail(run, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", room);
            return;
        }
        run->out = grown;
        run->out_room = room;
    }
    memcpy(run->out + run->out_bytes, text.bytes, text.count);
    run->out_bytes += text.count;
    run->out[run->out_bytes] = '\0';
}

/* ---- statements ---- */

static void chat_set(struct jinja_run *run, const struct jinja_node *node,
                     struct jinja_scope *scope) {
    const struct jinja_value value = jinja_evaluate(run, node->a, scope);
    if (node->b == NULL) {
        jinja_put(run, &scope->names, node->text, value);
        return;
    }
    const struct jinja_node name = {.kind = JINJA_NAME, .line = node->line, .text = node->text};
    struct jinja_value fields = jinja_evaluate(run, &name, scope);
    if (fields.type == JINJA_IS_MAP) {
        jinja_put(run, &fields, node->b->text, value);
    } else {
        jinja_fail(run, TOL_INVALID_FILE, "it sets a field of %s", jinja_type_name(fields.type));
    }
}

/* A scope within another one. */
static struct jinja_scope chat_inner(struct jinja_run *run, struct jinja_scope *outer) {
    return (struct jinja_scope){jinja_new_items(run, JINJA_IS_MAP), outer};
}

/* The elements that a loop runs over. */
static struct jinja_value chat_elements(struct jinja_run *run, const struct jinja_node *node,
                                        struct jinja_scope *scope) {
    const struct jinja_value all = jinja_evaluate(run, node->a, scope);
    struct jinja_value kept = jinja_new_items(run, JINJA_IS_LIST);
    if (all.type == JINJA_IS_UNDEFINED) return kept; /* Jinja runs over nothing */
    if (all.type != JINJA_IS_LIST) {
        jinja_fail(run, TOL_INVALID_FILE, "it has a loop over %s", jinja_type_name(all.type));
        return kept;
    }
    if (node->b == NULL) return all;
    for (const struct jinja_item *i = all.items->first; i != NULL && run->status == TOL_OK;
         i = i->next) {
        struct jinja_scope inner = chat_inner(run, scope);
        jinja_put(run, &inner.names, node->text, i->value);
        const struct jinja_value condition = jinja_evaluate(run, node->b, &inner);
        if (jinja_truth(&condition)) jinja_put(run, &kept, chat_text_of(""), i->value);
    }
    return kept;
}

/* The variable `loop`. */
static struct jinja_value chat_loop(struct jinja_run *run, size_t index, size_t count) {
    struct jinja_value loop = jinja_new_items(run, JINJA_IS_MAP);
    const struct {
        const char *name;
        enum jinja_type type;
        size_t number;
    } fields[] = {{"index", JINJA_IS_NUMBER, index + 1},
                  {"index0", JINJA_IS_NUMBER, index},
                  {"length", JINJA_IS_NUMBER, count},
                  {"first", JINJA_IS_BOOL, index == 0},
                  {"last", JINJA_IS_BOOL, index + 1 == count}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        jinja_put(run, &loop, chat_text_of(fields[i].name),
                  jinja_number_value(fields[i].type, (int64_t)fields[i].number));
    }
    return loop;
}

static void chat_for(struct jinja_run *run, const struct jinja_node *node,
                     struct jinja_scope *scope) {
    const struct jinja_value all = chat_elements(run, node, scope);
    size_t index = 0;
    if (node->number != 0) jinja_fail(run, TOL_UNSUPPORTED, "it has a loop over pairs");
    for (const struct jinja_item *i = run->status == TOL_OK ? all.items->first : NULL;
         i != NULL && run->status == TOL_OK; i = i->next, index++) {
        struct jinja_scope inner = chat_inner(run, scope);
        jinja_put(run, &inner.names, node->text, i->value);
        jinja_put(run, &inner.names, chat_text_of("loop"), chat_loop(run, index, all.items->count));
        chat_run(run, node->c, &inner);
    }
}

static void chat_run_one(struct jinja_run *run, const struct jinja_node *node,
                         struct jinja_scope *scope) {
    struct jinja_value value;
    run->line = node->line;
    switch (node->kind) {
    case JINJA_TEXT:
        chat_write(run, node->text);
        break;
    case JINJA_PRINT:
        value = jinja_evaluate(run, node->a, scope);
        if (run->status == TOL_OK) chat_write(run, jinja_printed(run, &value));
        break;
    case JINJA_IF:
        value = jinja_evaluate(run, node->a, scope);
        chat_run(run, jinja_truth(&value) ? node->b : node->c, scope);
        break;
    case JINJA_FOR:
        chat_for(run, node, scope);
        break;
    default:
        chat_set(run, node, scope);
    }
}

static void chat_run(struct jinja_run *run, const struct jinja_node *nodes,
                     struct jinja_scope *scope) {
    if (!jinja_enter(run)) return;
    for (; nodes != NULL && run->status == TOL_OK; nodes = nodes->next) {
        chat_run_one(run, nodes, scope);
    }
    jinja_leave(run);
}

/* ---- a conversation ---- */

static void chat_describe(struct jinja_run *run, const struct tol_chat *chat,
                          struct jinja_scope *scope) {
    struct jinja_value messages = jinja_new_items(run, JINJA_IS_LIST);
    for (size_t i = 0; i < chat->count; i++) {
        struct jinja_value one = jinja_new_items(run, JINJA_IS_MAP);
        jinja_put(run, &one, chat_text_of("role"),
                  jinja_text_value(chat_text_of(chat->messages[i].role)));
        jinja_put(run, &one, chat_text_of("content"), jinja_text_value(chat->messages[i].content));
        jinja_put(run, &messages, chat_text_of(""), one);
    }
    jinja_put(run, &scope->names, chat_text_of("messages"), messages);
    /* So that it is defined, as where llama.cpp and Transformers render: a template asks for it. */
    jinja_put(run, &scope->names, chat_text_of("strftime_now"), jinja_new_items(run, JINJA_IS_MAP));
    jinja_put(run, &scope->names, chat_text_of("add_generation_prompt"),
              jinja_number_value(JINJA_IS_BOOL, chat->adds_prompt));
    jinja_put(run, &scope->names, chat_text_of("bos_token"), jinja_text_value(chat->bos));
    jinja_put(run, &scope->names, chat_text_of("eos_token"), jinja_text_value(chat->eos));
}

tol_status tol_chat_render(struct tol_gguf_text source, const struct tol_chat *chat, char **text,
                           size_t *bytes) {
    tol_status status = TOL_OK;
    struct jinja_run run = {.source = source};
    TOL_CHECK(chat != NULL && text != NULL && bytes != NULL && source.bytes != NULL &&
                  (chat->messages != NULL || chat->count == 0),
              TOL_INVALID_ARGUMENT, "a chat template needs a source and messages");
    struct jinja_scope scope = chat_inner(&run, NULL);
    chat_describe(&run, chat, &scope);
    const struct jinja_node *nodes = jinja_read(&run);
    chat_run(&run, nodes, &scope);
    if (run.status == TOL_OK && run.out == NULL) run.out = calloc(1, 1);
    if (run.status == TOL_OK && run.out == NULL) {
        jinja_fail(&run, TOL_OUT_OF_HOST_MEMORY, "1 byte");
    }
    status = run.status;
    if (status == TOL_OK) {
        *text = run.out;
        *bytes = run.out_bytes;
        run.out = NULL;
    }
out:
    free(run.out);
    jinja_end(&run);
    return status;
}
