/*
 * Unit: one input of a linked module.
 */
#ifndef SOFT_UNIT_H
#define SOFT_UNIT_H

#include "diagnostic.h"
#include "ptx.h"

/* A text to load. */
struct soft_source {
    const char *name; /* for messages, as the program or the file system has it; NULL: none */
    const char *text;
    size_t length;
    bool linked; /* by the linker: what it only declares, another text must define */
};

struct soft_unit {
    struct ptx_module ptx;
    const char *name; /* while it is loaded */
    char *text;       /* a copy of the PTX, for reports */
    size_t length;
    bool linked;
};

/* Errors name the text that they occur in. */
static inline void soft_unit_look_at(struct soft_diagnostic *diagnostic,
                                     const struct soft_unit *unit) {
    diagnostic->name = unit->name;
    diagnostic->text = unit->text;
    diagnostic->length = unit->length;
}

#endif
