/*
 * Console: what `tollens run` prints for people, on stdout, or on stderr under --json.
 */
#ifndef HYP_CONSOLE_H
#define HYP_CONSOLE_H

#include "run_options.h"

/* Prints what will run. */
void hyp_console_begin(const struct hyp_run *run);

/* Prints one claim's verdict and what is left of the run, and below one that needs a look the
 * commands for it. */
void hyp_console_verdict(const struct hyp_run *run, const struct hyp_claim *claim,
                         const char *left);

/* Prints which faults the claim's attacks noticed, as far as that was tried. */
void hyp_console_severity(const struct hyp_run *run, const struct hyp_claim *claim,
                          const char *left);

/* Prints the smallest faults that they noticed, as far as that was tried. */
void hyp_console_limits(const struct hyp_run *run, const struct hyp_claim *claim);

/* Prints the reasons, the counts and the path of the evidence. */
void hyp_console_end(const struct hyp_run *run, const struct hyp_run_options *options);

/* printf to where the others print. */
void hyp_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
