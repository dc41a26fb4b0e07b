/*
 * Source line: where an instruction of a PTX text came from.
 */
#ifndef SOFT_SOURCE_LINE_H
#define SOFT_SOURCE_LINE_H

#include "base/report.h"
#include "code.h"
#include "ptx/unit.h"

/* Sets the instruction, its PTX line and, if the text has .loc directives, its source line and the
 * lines of the calls that it was inlined into. */
void soft_source_line_of(const struct soft_unit *unit, const struct soft_origin *origin,
                         struct soft_report *report);

#endif
