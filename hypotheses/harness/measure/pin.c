/*
 * The set of processors before, and one of them meanwhile.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_SET */
#endif
#include "pin.h"

#include <sched.h>
#include <stdlib.h>

struct hyp_pin {
    cpu_set_t before;
};

struct hyp_pin *hyp_pin_begin(void) {
    struct hyp_pin *pin = calloc(1, sizeof *pin);
    cpu_set_t one;
    int here = sched_getcpu();
    if (pin == NULL) return NULL;
    CPU_ZERO(&one);
    /* The scheduler chose this one: more likely to be idle, and near its memory, than any other. */
    if (here >= 0 && here < CPU_SETSIZE) CPU_SET((size_t)here, &one);
    if (here < 0 || here >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof pin->before, &pin->before) != 0 ||
        sched_setaffinity(0, sizeof one, &one) != 0) {
        free(pin);
        return NULL;
    }
    return pin;
}

void hyp_pin_end(struct hyp_pin *pin) {
    if (pin == NULL) return;
    (void)sched_setaffinity(0, sizeof pin->before, &pin->before);
    free(pin);
}
