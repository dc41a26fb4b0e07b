/*
 * Console: what `tollens run` prints on stdout for people.
 */
#ifndef HYP_CONSOLE_H
#define HYP_CONSOLE_H

#include "run_options.h"

/* Prints what will run. */
void hyp_console_begin(const struct hyp_run *run);

/* Prints one claim's verdict. */
void hyp_console_verdict(const struct hyp_claim *claim, const struct hyp_verdict *verdict);

/* Prints the reasons, the counts and the path of the evidence. */
void hyp_console_end(const struct hyp_run *run, const struct hyp_run_options *options);

#endif
