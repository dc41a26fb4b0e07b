/*
 * Fault hooks: what a saboteur does. Most faults are a pair of hooks in the interposer.
 */
#ifndef HYP_FAULT_HOOKS_H
#define HYP_FAULT_HOOKS_H

#include "tollens.h"

/* A fault that can be injected. */
struct hyp_fault {
    const char *name, *sentence;
    tol_interpose_hook before, after;                /* hooks of the interposer; may be NULL */
    bool has_amount;                                 /* its name includes an amount */
    void (*plant)(struct tol_pool_options *options); /* NULL: not a fault of the pool */
};

/* The amount of the installed fault, for its hooks; and how the harness sets it. */
TOL_API double hyp_sabotage_given(void);
void hyp_sabotage_give(double amount);

#endif
