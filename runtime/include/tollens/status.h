/*
 * Status: how every runtime call reports its outcome.
 *
 * A fallible function returns a tol_status. A failure makes one message, at the place where it is
 * first detected: the source line, the driver call as written, CUDA's name for the code, and the
 * numbers involved. The message is in a buffer of the calling thread until that thread's next
 * failure. The runtime never prints or exits, and making a message never allocates.
 *
 * All functions here are thread-safe. Source: spec 004 section 1.1 (7, visual control), D-22, D-45.
 */
#ifndef TOLLENS_STATUS_H
#define TOLLENS_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TOL_API __declspec(dllexport)
#else
#define TOL_API __attribute__((visibility("default")))
#endif

/* The outcomes; status.def has the list. */
typedef enum tol_status {
#define TOL_STATUS(name, sentence) TOL_##name,
#include "status.def"
#undef TOL_STATUS
    TOL_STATUS_COUNT
} tol_status;

/* The enumerator's name, such as "TOL_TIMEOUT"; "TOL_STATUS_UNKNOWN" for an invalid number.
 * Static. */
TOL_API const char *tol_status_name(tol_status status);

/* What the status means: one clause without a full stop. Static. */
TOL_API const char *tol_status_sentence(tol_status status);

/* The message of the calling thread's last failure; "" if there was none. The thread's next failure
 * overwrites the buffer: copy it to keep it. Successful calls do not change it. */
TOL_API const char *tol_message(void);

/* The CUresult of the calling thread's last failure; 0 if the driver did not report it. */
TOL_API int tol_message_cuda(void);

/* The CUDA name of a CUresult, such as "CUDA_ERROR_ILLEGAL_ADDRESS"; "CUDA_ERROR_?" for a number
 * that cuda_result.def does not list. Static. */
TOL_API const char *tol_cuda_name(int result);

#ifdef __cplusplus
}
#endif
#endif
