/*
 * Threads take functions in the order of the text. After an error, only functions before it are
 * still checked, so that the first error of the text is the one reported.
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
    struct {
        struct soft_diagnostic diagnostic;
        size_t wrong; /* the first wrong function it has found; SIZE_MAX: none */
    } threads[SOFT_CREW_MAX];
    atomic_size_t wrong; /* the first that any of them has found */
};

static void check_unit_fail(struct checking *checking, unsigned thread, size_t index) {
    size_t wrong = atomic_load(&checking->wrong);
    checking->threads[thread].wrong = index;
    while (index < wrong && !atomic_compare_exchange_weak(&checking->wrong, &wrong, index))
        continue;
}

static void check_unit_check_one(void *context, unsigned thread, size_t index) {
    struct checking *checking = context;
    if (index > atomic_load(&checking->wrong)) return;
    struct soft_lowering lowering = {.diagnostic = &checking->threads[thread].diagnostic,
                                     .arena = &checking->shares[thread].arena,
                                     .scratch = &checking->scratch[thread].arena,
                                     .module = (struct ptx_module *)&checking->unit->ptx,
                                     .function = checking->functions[index]};
    if (!soft_lower_draft(&lowering)) check_unit_fail(checking, thread, index);
    soft_arena_reuse(&checking->scratch[thread].arena);
}

static bool check_unit_all(struct checking *checking, struct soft_diagnostic *diagnostic) {
    enum { SHORT_BYTES = 128 * 1024 }; /* checked in less time than a thread takes to start */
    const unsigned threads = checking->unit->length < SHORT_BYTES ? 1 : soft_crew_threads();
    for (unsigned i = 0; i < threads; i++) {
        checking->threads[i].diagnostic = *diagnostic;
        checking->threads[i].wrong = SIZE_MAX;
    }
    atomic_init(&checking->wrong, SIZE_MAX);
    soft_crew_run(threads, checking->count, check_unit_check_one, checking);
    const size_t wrong = atomic_load(&checking->wrong);
    for (unsigned i = 0; i < threads && wrong != SIZE_MAX; i++) {
        if (checking->threads[i].wrong == wrong) *diagnostic = checking->threads[i].diagnostic;
    }
    return wrong == SIZE_MAX;
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
    bool ok = check_unit_all(checking, diagnostic);
    for (size_t i = 0; i < checking->count && ok; i++) {
        checking->functions[i]->first_site = *sites;
        *sites += checking->functions[i]->sites;
    }
    for (unsigned i = 0; i < SOFT_CREW_MAX; i++) soft_arena_clear(&checking->scratch[i].arena);
    free((void *)checking->functions);
    free(checking);
    return ok;
}
