/*
 * Reports a copy, a fill or a stream memory operation that accessed memory which was freed or
 * unmapped after the operation was queued.
 */
#ifndef SOFT_TASK_FAULT_H
#define SOFT_TASK_FAULT_H

#include "task.h"

/* Reports the first byte that such a task may not use, on stderr, in the log and in the report
 * file. at: the operation of the batch. Takes no lock of the driver. */
void soft_task_fault_report(const struct soft_task *task, unsigned at,
                            const struct soft_reach *reach);

#endif
