/*
 * Parts of threads-check: a pool that grows and shrinks under several threads, copies, and a watch.
 */
#ifndef TOLLENS_THREADS_POOL_CHECK_H
#define TOLLENS_THREADS_POOL_CHECK_H

#include "tollens/context.h"

/* Return an exit code: 0 all is well, 1 something is lost, 2 it could not be tried; say what on
 * stderr. */
int check_growing_pool(struct tol_driver *driver);
int check_copies(struct tol_driver *driver);
int check_watch(struct tol_driver *driver);

#endif
