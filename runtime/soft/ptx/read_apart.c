/*
 * Reads function bodies with several threads, after all text outside of them. As usual, a body sees
 * only the outer names declared before it.
 *
 * This is for texts without errors. If anything is wrong, or a body does not end at its closing
 * brace, the text is read again from begin to end, so that the first error is reported.
 */
#include "reader.h"

#include "base/crew.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ROOM_FIRST = 64 };

/* What the module keeps of a body, in the order of the text. */
static bool is_of_module(const struct ptx_reader *reader, const struct soft_token *token) {
    static const char *const words[] = {".global", ".const", ".file", ".extern"};
    const char *text = reader->diagnostic->text + token->offset;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i]);
        if (token->length == length && memcmp(text, words[i], length) == 0) return true;
    }
    return false;
}

/* The token after the brace that closes the body; NULL if the body cannot be read apart. */
static const struct soft_token *find_end(const struct ptx_reader *reader) {
    unsigned depth = 1;
    for (const struct soft_token *token = reader->token;; token++) {
        const char before = token[-1].first;
        if (token->kind == SOFT_TOKEN_DOTTED) {
            bool begins = before == ';' || before == '{' || before == '}' || before == ':';
            if (begins && is_of_module(reader, token)) return NULL;
        } else if (token->kind == SOFT_TOKEN_MARK) {
            depth += token->first == '{';
            depth -= token->first == '}';
            if (depth == 0) return token + 1;
        } else if (token->kind == SOFT_TOKEN_END) {
            return NULL;
        }
    }
}

bool ptx_postpone_body(struct ptx_reader *reader, struct ptx_function *function) {
    struct ptx_bodies *bodies = reader->bodies;
    if (bodies == NULL || reader->outer != NULL || !ptx_is(reader, "{")) return false;
    const struct soft_token *begin = ++reader->token, *end = find_end(reader);
    if (bodies->count == bodies->room) {
        const size_t room = bodies->room * 2 + ROOM_FIRST;
        struct ptx_body *more = realloc(bodies->list, room * sizeof *more);
        if (more == NULL) end = NULL;
        if (more != NULL) bodies->list = more;
        if (more != NULL) bodies->room = room;
    }
    if (end == NULL) {
        reader->token--;
        return false;
    }
    bodies->list[bodies->count++] = (struct ptx_body){begin, end, function};
    function->scope->before = begin->offset;
    reader->token = end;
    return true;
}

struct apart {
    const struct ptx_bodies *bodies;
    struct {
        struct ptx_reader reader;
        char gap[SOFT_CREW_GAP];
    } threads[SOFT_CREW_MAX];
    struct soft_diagnostic diagnostics[SOFT_CREW_MAX];
    atomic_bool failed;
};

static void read_body(void *context, unsigned thread, size_t index) {
    struct apart *apart = context;
    struct ptx_reader *reader = &apart->threads[thread].reader;
    const struct ptx_body *body = &apart->bodies->list[index];
    struct ptx_variable *of_module = NULL;
    if (atomic_load(&apart->failed)) return;
    reader->token = body->begin;
    reader->linkage = body->function->linkage;
    reader->function = body->function;
    reader->scope = body->function->scope;
    reader->variables_end = &of_module;
    reader->registers_room = body->function->register_count;
    bool ok = ptx_read_statements(reader) && reader->token == body->end && of_module == NULL;
    if (!ok) atomic_store(&apart->failed, true);
}

bool ptx_read_bodies(struct ptx_module *module, const struct soft_diagnostic *diagnostic,
                     const struct ptx_bodies *bodies, const struct ptx_shares *shares) {
    struct apart *apart = calloc(1, sizeof *apart);
    if (apart == NULL) return false;
    apart->bodies = bodies;
    for (unsigned i = 0; i < shares->threads; i++) {
        apart->diagnostics[i] = *diagnostic;
        apart->threads[i].reader = (struct ptx_reader){.diagnostic = &apart->diagnostics[i],
                                                       .arena = &shares->shares[i].arena,
                                                       .module = module,
                                                       .instruction = ""};
    }
    soft_crew_run(shares->threads, bodies->count, read_body, apart);
    bool ok = !atomic_load(&apart->failed);
    free(apart);
    return ok;
}
