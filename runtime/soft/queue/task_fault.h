/*
 * What to say of a copy, a fill or an operation on values that found its memory gone: it was there
 * when the operation was queued, and has been freed or unmapped since.
 */
#ifndef SOFT_TASK_FAULT_H
#define SOFT_TASK_FAULT_H

#include "task.h"

/* Tells of the first byte that such a task may not use, on stderr, in the log and in the report
 * file. at: which of a batch's operations it was. Takes no lock of the driver's. */
void soft_task_fault_tell(const struct soft_task *task, unsigned at,
                          const struct soft_reach *reach);

#endif
