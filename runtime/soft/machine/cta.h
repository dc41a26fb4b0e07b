/*
 * CTA: one block of threads while it runs; its warps take turns.
 */
#ifndef SOFT_CTA_H
#define SOFT_CTA_H

#include "machine_state.h"

/* Runs until all threads have exited (DONE), a turn is over (YIELD), or
 * the launch failed (FAULT). */
enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views);

#endif
