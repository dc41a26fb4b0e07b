/*
 * What CUDA's result codes are called.
 */
#ifndef SOFT_RESULT_NAME_H
#define SOFT_RESULT_NAME_H

/* "CUDA_ERROR_LAUNCH_FAILED", and "launch failed"; NULL for a number that is none of CUDA's. */
const char *soft_result_name(int code);
const char *soft_result_text(int code);

#endif
