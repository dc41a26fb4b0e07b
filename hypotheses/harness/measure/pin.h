/*
 * Pin: keeps the calling thread on the processor that it runs on, for as long as it is timed.
 */
#ifndef HYP_PIN_H
#define HYP_PIN_H

#include <stdbool.h>

struct hyp_pin;

/* Pins the calling thread. NULL: the system does not allow it; the thread is not pinned. */
struct hyp_pin *hyp_pin_begin(void);

/* Gives the thread back the processors that it had. NULL does nothing. */
void hyp_pin_end(struct hyp_pin *pin);

#endif
