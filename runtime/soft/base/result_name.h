/*
 * What CUDA's result codes are called.
 */
#ifndef SOFT_RESULT_NAME_H
#define SOFT_RESULT_NAME_H

/* "CUDA_ERROR_LAUNCH_FAILED", and "launch failed"; NULL if CUDA has no such code. */
const char *soft_result_name(int code);
const char *soft_result_text(int code);

#endif
