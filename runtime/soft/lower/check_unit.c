/*
 * Threads check functions in any order. If one of them is wrong, all are checked once more, in the
 * order of the text, so that the first error is the one reported.
 */
#include "check_unit.h"

#include "lower.h"

#include <stdatomic.h>
#include <stdlib.h>

struct checking {
    const struct soft_unit *unit;
    struct soft_share *shares, scratch[SOFT_CREW_MAX]; /* one of each a thread */
    struct ptx_function **functions;
    size_t count;
    struct soft_diagnostic diagnostics[SOFT_CREW_MAX]; /* one per thread */
    atomic_bool failed;
};

static bool check_unit_check(struct checking *checking, struct soft_diagnostic *diagnostic,
                             unsigned thread, struct ptx_function *function) {
    struct soft_lowering lowering = {.diagnostic = diagnostic,
                                     .arena = &checking->shares[thread].arena,
                                     .scratch = &checking->scratch[thread].arena,
                                     .module = (struct ptx_module *)&checking->unit->ptx,
                                     .function = function};
    bool ok = soft_lower_check(&lowering);
    soft_arena_reuse(&checking->scratch[thread].arena);
    return ok;
}

static void check_unit_check_one(void *context, unsigned thread, size_t index) {
    struct checking *checking = context;
    if (atomic_load(&checking->failed)) return;
    if (!check_unit_check(checking, &checking->diagnostics[thread], thread,
                          checking->functions[index])) {
        atomic_store(&checking->failed, true);
    }
}

static bool check_together(struct checking *checking, const struct soft_diagnostic *diagnostic) {
    enum { SHORT_BYTES = 128 * 1024 }; /* checked in less time than a thread takes to start */
    unsigned threads = soft_crew_threads();
    if (threads < 2 || checking->unit->length < SHORT_BYTES) return false;
    for (unsigned i = 0; i < threads; i++) checking->diagnostics[i] = *diagnostic;
    soft_crew_run(threads, checking->count, check_unit_check_one, checking);
    return !atomic_load(&checking->failed);
}

static bool check_in_order(struct checking *checking, struct soft_diagnostic *diagnostic) {
    bool ok = true;
    for (size_t i = 0; i < checking->count && ok; i++) {
        ok = check_unit_check(checking, diagnostic, 0, checking->functions[i]);
    }
    return ok;
}

bool soft_check_unit(struct soft_diagnostic *diagnostic, const struct soft_unit *unit,
                     struct soft_share *shares, uint32_t *sites) {
    struct checking *checking = calloc(1, sizeof *checking);
    size_t room = 1;
    for (const struct ptx_function *f = unit->ptx.functions; f != NULL; f = f->next) room++;
    if (checking != NULL) checking->functions = calloc(room, sizeof(struct ptx_function *));
    if (checking == NULL || checking->functions == NULL) {
        free(checking);
        return soft_error(diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory");
    }
    checking->unit = unit;
    checking->shares = shares;
    for (struct ptx_function *f = unit->ptx.functions; f != NULL; f = f->next) {
        if (f->has_body) checking->functions[checking->count++] = f;
    }
    bool ok = check_together(checking, diagnostic) || check_in_order(checking, diagnostic);
    for (size_t i = 0; i < checking->count && ok; i++) {
        checking->functions[i]->first_site = *sites;
        *sites += checking->functions[i]->sites;
    }
    for (unsigned i = 0; i < SOFT_CREW_MAX; i++) soft_arena_clear(&checking->scratch[i].arena);
    free((void *)checking->functions);
    free(checking);
    return ok;
}
