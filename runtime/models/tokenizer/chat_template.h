/*
 * Chat template: the text that a model's own template makes of a conversation.
 *
 * Templates are Jinja, as the Transformers library renders them: a line end after a block tag is
 * dropped, and so is white space before one on its line. Of Jinja there is
 *
 *     {{ }}, {% %}, {# #}, with - and +; if, elif, else; for NAME in LIST, also with if; set NAME
 *     and set NAME.FIELD
 *     strings, whole numbers, true, false, none, lists, names, .FIELD, [INDEX], [FROM:TO]
 *     [::-1] of a list
 *     A if B else C, or, and, not, == != < > <= >=, in, not in, + - ~ * // %
 *     is defined, none, string, mapping, iterable, true, false, each also with not
 *     the filters trim, tojson, length
 *     strip(), lstrip(), rstrip(), startswith(TEXT), endswith(TEXT) of strings
 *     loop.index, index0, first, last, length; namespace(NAME=VALUE); raise_exception(TEXT)
 *     strftime_now(FORMAT), the local time
 *     messages (role, content), add_generation_prompt, bos_token, eos_token
 *
 * Everything else is refused by its name: statements and other syntax when the template is read,
 * and functions, filters, tests, loops over pairs and other steps when they are reached. So a
 * template with a branch for tools works without tools.
 *
 * Any thread. Source: the manual of Jinja 3.1, Template Designer Documentation; Transformers, Chat
 * templates.
 */
#ifndef TOLLENS_CHAT_TEMPLATE_H
#define TOLLENS_CHAT_TEMPLATE_H

#include <gguf.h>
#include <stdbool.h>
#include <stddef.h>

struct tol_chat_message {
    const char *role; /* "system", "user" or "assistant" */
    struct tol_gguf_text content;
};

struct tol_chat {
    const struct tol_chat_message *messages;
    size_t count;
    bool adds_prompt;              /* the text ends where the assistant's next message begins */
    struct tol_gguf_text bos, eos; /* the texts of these tokens */
};

/*
 * Renders a template. The caller frees *text, which has *bytes bytes and a NUL.
 * TOL_UNSUPPORTED: the template has something that is not in the list above; the message has its
 * name and line. TOL_INVALID_FILE: it is no template, or it uses a value as what it is not.
 * TOL_INVALID_ARGUMENT: the template raises an exception, which the message has, or an argument is
 * NULL. TOL_OVER_LIMIT: it takes more than a million steps, 64 MiB or 100 levels.
 * TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_chat_render(struct tol_gguf_text source, const struct tol_chat *chat,
                                   char **text, size_t *bytes);

#endif
