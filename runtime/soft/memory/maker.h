/*
 * Maker: the call that created an object, for leak reports; and what a call made, for the trace.
 */
#ifndef SOFT_MAKER_H
#define SOFT_MAKER_H

#include <stdint.h>

struct soft_maker {
    const char *function; /* NULL: it is not known */
    uint64_t call;        /* the number of the call among all calls, from 1 */
    const void *site;     /* where the program called: base/call_site.h */
};

/* The call that the thread is in. Only kept where TOLLENS_SOFT_CHECK has leak or stream. */
extern _Thread_local struct soft_maker soft_maker;

/* What the thread has allocated or freed last. */
struct soft_made {
    uint64_t address, bytes;
};
extern _Thread_local struct soft_made soft_made;

#endif
