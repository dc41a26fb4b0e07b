/*
 * Checks all functions of one text of a module, with several threads.
 */
#ifndef SOFT_CHECK_UNIT_H
#define SOFT_CHECK_UNIT_H

#include "base/crew.h"
#include "ptx/diagnostic.h"
#include "ptx/unit.h"

/* Checks them, with SOFT_CREW_MAX arenas for their codes. *sites is the module's number of memory
 * accesses. false: the diagnostic has the first error of the text. The module is linked. */
bool soft_check_unit(struct soft_diagnostic *diagnostic, const struct soft_unit *unit,
                     struct soft_share *shares, uint32_t *sites);

#endif
