/*
 * The checks of a launch, for graphs.
 */
#ifndef TOLLENS_LAUNCH_CHECK_H
#define TOLLENS_LAUNCH_CHECK_H

#include "tollens/launch.h"

/* Refuses what a launch refuses: sizes and arguments that do not fit the kernel. */
tol_status tol_launch_check(const struct tol_kernel *kernel, const struct tol_launch_shape *shape,
                            const struct tol_arguments *arguments);

#endif
