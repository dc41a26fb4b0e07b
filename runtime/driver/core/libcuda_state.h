/*
 * The fields of struct tol_driver.
 */
#ifndef TOLLENS_LIBCUDA_STATE_H
#define TOLLENS_LIBCUDA_STATE_H

#include "tollens/accesses.h"
#include "tollens/driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* The driver gets TOL_LOG_BYTES of the buffer for its log, which is more than the 25,600 bytes that
 * it keeps. The slack after them absorbs what a driver writes past its end. */
enum { TOL_LOG_BYTES = 32768, TOL_LOG_SLACK_BYTES = 32768 };

struct tol_driver {
    const struct tol_driver_table *functions; /* what is called: table, or the interposer's */
    struct tol_driver_table table;            /* what the library exports */
    bool has[TOL_FEATURE_COUNT];
    int version;
    tol_accesses_function tell_accesses; /* NULL: it cannot */
    bool is_soft; /* the library says that it is the soft device */
    atomic_int references;
    pthread_mutex_t lock;         /* guards contexts and their references */
    struct tol_context *contexts; /* those alive, at most one per device */
    pthread_mutex_t log_lock;     /* guards log_position and log */
    CUlogIterator log_position;   /* up to where the driver's own error log has been read */
    char path[256];
    char log[TOL_LOG_BYTES + TOL_LOG_SLACK_BYTES]; /* what was read of it last */
};

#endif
