/*
 * Status: how every call of the runtime says what happened.
 *
 * A fallible function returns a tol_status. Where a failure is first seen, one message is made that
 * names the place, the driver call as written, CUDA's own name for the code and the numbers
 * involved; it lies in a buffer of the calling thread until that thread's next failure. Nothing in
 * the runtime prints or exits, and making a message never allocates.
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

typedef enum tol_status {
#define TOL_STATUS(name, sentence) TOL_##name,
#include "status.def"
#undef TOL_STATUS
    TOL_STATUS_COUNT
} tol_status;

/* The enumerator's name, "TOL_TIMEOUT"; "TOL_STATUS_UNKNOWN" for a number that is none. Static. */
TOL_API const char *tol_status_name(tol_status status);

/* What the status means, one clause without a full stop. Static. */
TOL_API const char *tol_status_sentence(tol_status status);

/* The message of the calling thread's last failure; "" when it has had none. The buffer belongs to
 * the thread and is overwritten by its next failure: copy it to keep it. Successful calls leave it
 * alone. */
TOL_API const char *tol_message(void);

/* The CUresult behind the calling thread's last failure; 0 when the driver was not involved. */
TOL_API int tol_message_cuda(void);

/* The CUDA name of a CUresult, "CUDA_ERROR_ILLEGAL_ADDRESS"; "CUDA_ERROR_?" for a number that
 * cuda_result.def does not list. Static. */
TOL_API const char *tol_cuda_name(int result);

#ifdef __cplusplus
}
#endif
#endif
