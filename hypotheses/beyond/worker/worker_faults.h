/*
 * Worker faults: faults of the engine, caused from outside, that the attacks on its claims must
 * notice. Most are hooks in the interposer, which change the arguments of a kernel or the driver's
 * answer. The others are changes to a file, or a step that an attack makes in place of
 * the library's; their names say which.
 */
#ifndef HYP_WORKER_FAULTS_H
#define HYP_WORKER_FAULTS_H

#include "harness/plugin.h"

extern const struct hyp_fault worker_faults[];

/* Whether the attack runs under this fault. */
bool worker_fault_is(const struct hyp_attack *attack, const char *name);

/*
 * Hooks for an attack that installs an interposer of its own: those of the fault that the attack
 * runs under, if it is one of these.
 */
void worker_fault_hooks(const struct hyp_attack *attack, struct tol_interpose_options *options);

#endif
