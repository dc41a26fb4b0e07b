/*
 * Reports errors: on stderr and to the thread. PyTorch's signatures have no parameter for a reason.
 */
#ifndef TOLLENS_TORCH_REPORT_H
#define TOLLENS_TORCH_REPORT_H

#include "tollens/status.h"

#include <stdbool.h>

/* Keeps "what: why" as the thread's latest failure; the first two of a process are written to
 * stderr. why is mostly tol_message(); "": there is no more to say. */
void torch_report(const char *what, const char *why);

/* Throws a C++ exception with the thread's latest failure: for out_of_memory one that Python sees
 * as torch.OutOfMemoryError. The caller holds no lock. */
_Noreturn void torch_throw(bool out_of_memory);

#endif
