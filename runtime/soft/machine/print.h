/*
 * Print: printf and assert in kernels.
 *
 * As on a GPU, output is collected while kernels run and is printed when the host synchronizes.
 */
#ifndef SOFT_PRINT_H
#define SOFT_PRINT_H

#include "machine_state.h"

/* vprintf(format, arguments): more is their slots, generic addresses of 64 bits; d gets the number
 * of arguments printed, -1 without a format. */
const struct soft_instruction *soft_print(struct soft_warp *warp,
                                          const struct soft_instruction *in);

/* __assertfail(assertion, file, line, function, size): more is their slots. Ends the launch. */
const struct soft_instruction *soft_print_assertion(struct soft_warp *warp,
                                                    const struct soft_instruction *in);

/* Prints the collected output to stdout and stderr. Thread-safe. */
void soft_print_flush(void);

#endif
