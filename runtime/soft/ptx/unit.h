/*
 * Unit: one input of a linked module.
 */
#ifndef SOFT_UNIT_H
#define SOFT_UNIT_H

#include "diagnostic.h"
#include "ptx.h"

/* A text to load. */
struct soft_source {
    const char *name; /* for messages: the program's name for it, or the file name; NULL: none */
    const char *text;
    size_t length;
    bool linked; /* by the linker: another text must define what it only declares */
    /* By a compiler that makes machine code elsewhere, which drivers take of any version. */
    bool is_compiled;
    bool stands_in; /* for machine code of this device: any version and any target */
};

struct soft_unit {
    struct ptx_module ptx;
    const char *name; /* while it is loaded */
    char *text;       /* a copy of the PTX, for reports */
    size_t length;
    bool linked, is_compiled, stands_in;
};

/* Errors name the text that they occur in. */
static inline void soft_unit_look_at(struct soft_diagnostic *diagnostic,
                                     const struct soft_unit *unit) {
    diagnostic->name = unit->name;
    diagnostic->text = unit->text;
    diagnostic->length = unit->length;
    diagnostic->takes_newer = unit->is_compiled || unit->stands_in;
}

#endif
