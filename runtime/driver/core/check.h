/*
 * Check: how a function of the runtime fails. These are the only macros that jump, to `out:`.
 *
 * A function that can fail declares `tol_status status = TOL_OK;`, releases what it holds under
 * `out:`, and returns status. TOL_TRY passes a failure on, TOL_CHECK makes one from a condition,
 * and TOL_CU makes one from a driver call.
 */
#ifndef TOLLENS_CHECK_H
#define TOLLENS_CHECK_H

#include "tollens/status.h"

#include <stdarg.h>

#if defined(__GNUC__)
#define TOL_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TOL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
/* For functions that make a message: keeps them out of the common path. */
#define TOL_COLD __attribute__((noinline, cold))
#define TOL_INLINE __attribute__((always_inline)) inline
#define TOL_HIDDEN __attribute__((visibility("hidden")))
#else
#define TOL_PRINTF(text, first)
#define TOL_UNLIKELY(condition) (condition)
#define TOL_COLD
#define TOL_INLINE inline
#define TOL_HIDDEN
#endif

/* Room for a message: a JIT log of several kilobytes must fit after the sentence. */
enum { TOL_MESSAGE_BYTES = 16384 };

/* Makes the calling thread's message, "file:line: text", and returns status. */
tol_status tol_fail(const char *file, int line, tol_status status, const char *format, ...)
    TOL_PRINTF(4, 5);

/* Makes the message of a failed driver call, "file:line: call: CUDA_NAME (code): text", and returns
 * the status that the code maps to. call is the exported name of the driver function. */
tol_status tol_fail_cuda(const char *file, int line, const char *call, int result,
                         const char *format, ...) TOL_PRINTF(5, 6);

/* Appends to the calling thread's message; what does not fit is cut. */
void tol_message_add(const char *format, ...) TOL_PRINTF(1, 2);

/* Sets text as the calling thread's message and result as its CUresult, and returns status: for
 * a failure that is stored and reported again later. */
tol_status tol_fail_again(tol_status status, int result, const char *text);

/* The status for a CUresult; TOL_DRIVER_ERROR if it has no status of its own. */
tol_status tol_status_of_cuda(int result);

/* Whether a CUresult destroys the context: every later call fails with it. */
int tol_cuda_is_sticky(int result);

#define TOL_FAIL(failure, ...)                                                                     \
    do {                                                                                           \
        status = tol_fail(__FILE__, __LINE__, failure, __VA_ARGS__);                               \
        goto out;                                                                                  \
    } while (0)

#define TOL_CHECK(condition, failure, ...)                                                         \
    do {                                                                                           \
        if (TOL_UNLIKELY(!(condition))) TOL_FAIL(failure, __VA_ARGS__);                            \
    } while (0)

#define TOL_TRY(expression)                                                                        \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (TOL_UNLIKELY(status != TOL_OK)) goto out;                                              \
    } while (0)

/* TOL_CU(table, cuMemFree_v2, (address), "freeing %zu bytes", bytes) */
#define TOL_CU(table, call, arguments, ...)                                                        \
    do {                                                                                           \
        CUresult tol_cu_result = (table)->call arguments;                                          \
        if (TOL_UNLIKELY(tol_cu_result != CUDA_SUCCESS)) {                                         \
            status = tol_fail_cuda(__FILE__, __LINE__, #call, (int)tol_cu_result, __VA_ARGS__);    \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

#endif
