/*
 * Checks: the optional checks of TOLLENS_SOFT_CHECK; memory checks are always on.
 */
#ifndef SOFT_CHECKS_H
#define SOFT_CHECKS_H

#include "lower/code.h"

/* Gives the instructions of a function, which is complete and not yet run, the handlers that check
 * them. This undoes fusing. */
void soft_checks_hook(const struct soft_code *code);

#endif
