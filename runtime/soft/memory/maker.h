/*
 * Maker: the call that created an object, for leak reports; and the object that a call created, for
 * the trace.
 */
#ifndef SOFT_MAKER_H
#define SOFT_MAKER_H

#include <stdint.h>

struct soft_maker {
    const char *function; /* NULL: it is not known */
    uint64_t call;        /* the number of the call among all calls, from 1 */
    const void *site;     /* where the program called: base/call_site.h */
};

/* The thread's current call. Only kept if TOLLENS_SOFT_CHECK has leak or stream. */
extern _Thread_local struct soft_maker soft_maker;

/* The thread's last allocation or free. */
struct soft_made {
    uint64_t address, bytes;
};
extern _Thread_local struct soft_made soft_made;

#endif
