/*
 * The answers of a guard, as a file that a later guard continues.
 *
 * Answers are appended as frames ("done 7 3\nabc\n", "fail 8 5\n...") or, with lines, as a line a
 * job. The answers in an existing file are counted; an incomplete one at its end is cut off.
 */
#ifndef HYP_GUARD_RESULTS_H
#define HYP_GUARD_RESULTS_H

#include "tollens.h"

#include <stdio.h>

struct hyp_guard_results {
    FILE *file;
    bool is_lines;
    char error[300]; /* why the latest answer could not be written; "" */
};

/* path NULL: stdout. *answers: the number in the file. false: hyp_error(). */
bool hyp_guard_results_open(struct hyp_guard_results *results, const char *path, bool is_lines,
                            uint64_t *answers);

/* Writes an answer and flushes it. false: error says why. */
bool hyp_guard_results_add(struct hyp_guard_results *results,
                           const struct tol_guard_answer *answer);

/* false: hyp_error(). A file that is not open is a no-op. */
bool hyp_guard_results_close(struct hyp_guard_results *results);

#endif
