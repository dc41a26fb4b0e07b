/*
 * One fault is installed in a process, so one amount is enough.
 */
#include "harness/fault_hooks.h"

static double installed_amount;

double hyp_sabotage_given(void) {
    return installed_amount;
}

void hyp_sabotage_give(double amount) {
    installed_amount = amount;
}
