/*
 * Resolves names that one input of a linked module declares and another defines.
 */
#ifndef SOFT_UNITE_H
#define SOFT_UNITE_H

#include "unit.h"

/* Redirects the symbols that units declare to the definitions in other units. false: two units
 * define the same name, or another error; diagnostic has it. */
bool soft_unite(struct soft_diagnostic *diagnostic, const struct soft_unit *units, unsigned count);

#endif
