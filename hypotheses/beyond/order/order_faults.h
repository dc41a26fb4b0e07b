/*
 * Order faults: calls of the driver that lose, move or answer something, which the attacks on the
 * claims must notice. Each is a hook in the interposer; the attacks do not know which.
 */
#ifndef HYP_ORDER_FAULTS_H
#define HYP_ORDER_FAULTS_H

#include "harness/plugin.h"

extern const struct hyp_fault order_faults[];

#endif
