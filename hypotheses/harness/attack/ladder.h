/*
 * Ladder: one fault in several sizes, from gross to fine, to find the smallest that is noticed.
 *
 *     launch_drop_one_in=100,1000,10000      or, of a fault without an amount, its name
 *
 * Of a rare fault, whose name has "_one_in", a larger amount is finer; of any other a smaller one.
 */
#ifndef HYP_LADDER_H
#define HYP_LADDER_H

#include <stdbool.h>
#include <stddef.h>

enum { HYP_LADDER_STEPS_MAX = 8, HYP_LADDER_NAME_BYTES = 64 };

struct hyp_ladder {
    char fault[HYP_LADDER_NAME_BYTES];
    size_t count;
    char steps[HYP_LADDER_STEPS_MAX][HYP_LADDER_NAME_BYTES]; /* saboteurs, from gross to fine */
};

/* Reads the text of a ladder. false: it is not one, or the fault is unknown; hyp_error(). */
bool hyp_ladder_read(const char *text, struct hyp_ladder *ladder);

#endif
