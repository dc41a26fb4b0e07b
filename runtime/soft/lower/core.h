/*
 * Core: the instruction bodies, compiled for one processor level. The first use selects the best
 * level that this processor supports, or the one that TOLLENS_SOFT_CORE names.
 */
#ifndef SOFT_CORE_H
#define SOFT_CORE_H

#include "code.h"

struct soft_core {
    const char *name; /* x1, x3 or x4: the x86-64 level; x1 on other processors */
    soft_handler *run[SOFT_OPS][2];
};

const struct soft_core *soft_core(void);

/* What an operation is called: "add_32". Static. */
const char *soft_op_name(enum soft_op op);

#endif
