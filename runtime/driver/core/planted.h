/*
 * Planted defects: faults inside the runtime that the suites switch on to check that their attacks
 * detect them. Not installed, and not exported by the shared library: no program can switch one on.
 */
#ifndef TOLLENS_PLANTED_H
#define TOLLENS_PLANTED_H

#include <stdatomic.h>

/* While it is set, tol_module_kernel adds kernels to a module's cache without the module's lock.
 * The saboteur lock_missing sets it. Any thread. */
extern atomic_bool tol_planted_no_lock;

#endif
