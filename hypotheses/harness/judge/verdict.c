/*
 * Verdicts by name, and how one is set.
 */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hyp_verdict_name(enum hyp_verdict_kind kind) {
    static const char *const names[] = {"survived", "falsified", "inconclusive", "not_tested"};
    return names[kind];
}

const char *hyp_verdict_words(enum hyp_verdict_kind kind) {
    return kind == HYP_NOT_TESTED ? "not tested" : hyp_verdict_name(kind);
}

void hyp_verdict_set(struct hyp_verdict *verdict, enum hyp_verdict_kind kind, const char *code,
                     const char *format, ...) {
    va_list arguments;
    verdict->kind = kind;
    snprintf(verdict->code, sizeof verdict->code, "%s", code);
    va_start(arguments, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, arguments);
    va_end(arguments);
}

void hyp_verdict_not_tested(struct hyp_verdict *verdict, const char *code, const char *format,
                            ...) {
    va_list arguments;
    hyp_verdict_set(verdict, HYP_NOT_TESTED, code, "%s", "");
    va_start(arguments, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, arguments);
    va_end(arguments);
}

bool hyp_verdict_could_not_tell(const struct hyp_verdict *verdict) {
    return verdict->kind == HYP_INCONCLUSIVE && !verdict->broken &&
           (strncmp(verdict->code, "unfit_", 6) == 0 || strcmp(verdict->code, "undecided") == 0 ||
            strcmp(verdict->code, "processes_differ") == 0);
}

void hyp_verdict_end(struct hyp_verdict *verdict) {
    free(verdict->outcomes);
    memset(verdict, 0, sizeof *verdict);
}
