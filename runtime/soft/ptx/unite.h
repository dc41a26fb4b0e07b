/*
 * Resolves names that one input of a linked module declares and another defines.
 */
#ifndef SOFT_UNITE_H
#define SOFT_UNITE_H

#include "unit.h"

/* Makes the symbols that units declare mean what another unit defines. false: two define the same,
 * or it is something else; diagnostic holds the error. */
bool soft_unite(struct soft_diagnostic *diagnostic, const struct soft_unit *units, unsigned count);

#endif
