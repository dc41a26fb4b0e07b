/*
 * The status names, CUDA's own names, and the one message each thread keeps.
 *
 * The message buffer is thread-local and fixed: reporting that memory ran out must not need memory.
 */
#include "tollens/status.h"

#include "check.h"
#include "tollens/cuda_abi.h"
#include "tollens/plain_text.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char message[TOL_MESSAGE_BYTES];
static _Thread_local int message_cuda;

/* Keeps the folder and the file of a path: "objects/module.c" says where in fewer words than an
 * absolute path, and is the same on every machine. */
static const char *short_path(const char *file) {
    const char *last = strrchr(file, '/');
    if (last == NULL) return file;
    for (const char *c = last; c > file; c--) {
        if (c[-1] == '/') return c;
    }
    return file;
}

TOL_PRINTF(1, 0)
static void status_append(const char *format, va_list arguments) {
    size_t used = strlen(message);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    tol_plain_text(message + used);
}

const char *tol_status_name(tol_status status) {
    switch (status) {
#define TOL_STATUS(name, sentence)                                                                 \
    case TOL_##name:                                                                               \
        return "TOL_" #name;
#include "tollens/status.def"
#undef TOL_STATUS
    case TOL_STATUS_COUNT:
        break;
    }
    return "TOL_STATUS_UNKNOWN";
}

const char *tol_status_sentence(tol_status status) {
    switch (status) {
#define TOL_STATUS(name, sentence)                                                                 \
    case TOL_##name:                                                                               \
        return sentence;
#include "tollens/status.def"
#undef TOL_STATUS
    case TOL_STATUS_COUNT:
        break;
    }
    return "unknown status";
}

const char *tol_message(void) {
    return message;
}

int tol_message_cuda(void) {
    return message_cuda;
}

const char *tol_cuda_name(int result) {
    switch (result) {
#define CUDA_RESULT(name, value)                                                                   \
    case value:                                                                                    \
        return #name;
#include "tollens/cuda_result.def"
#undef CUDA_RESULT
    default:
        return "CUDA_ERROR_?";
    }
}

tol_status tol_status_of_cuda(int result) {
    switch (result) {
    case CUDA_SUCCESS:
        return TOL_OK;
    case CUDA_ERROR_INVALID_VALUE:
        return TOL_INVALID_ARGUMENT;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return TOL_OUT_OF_DEVICE_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return TOL_NO_DEVICE;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
        return TOL_INVALID_MODULE;
    case CUDA_ERROR_NOT_FOUND:
        return TOL_NOT_FOUND;
    case CUDA_ERROR_NOT_READY:
        return TOL_NOT_READY;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        return TOL_OVER_LIMIT;
    case CUDA_ERROR_NOT_SUPPORTED:
        return TOL_UNSUPPORTED;
    default:
        return TOL_DRIVER_ERROR;
    }
}

/* The codes after which, by CUDA's documentation, the process must be restarted. */
int tol_cuda_is_sticky(int result) {
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return 1;
    default:
        return 0;
    }
}

tol_status tol_fail(const char *file, int line, tol_status status, const char *format, ...) {
    va_list arguments;
    message_cuda = 0;
    snprintf(message, sizeof message, "%s:%d: ", short_path(file), line);
    va_start(arguments, format);
    status_append(format, arguments);
    va_end(arguments);
    return status;
}

tol_status tol_fail_cuda(const char *file, int line, const char *call, int result,
                         const char *format, ...) {
    va_list arguments;
    message_cuda = result;
    snprintf(message, sizeof message, "%s:%d: %s: %s (%d): ", short_path(file), line, call,
             tol_cuda_name(result), result);
    va_start(arguments, format);
    status_append(format, arguments);
    va_end(arguments);
    return tol_status_of_cuda(result);
}

void tol_message_add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    status_append(format, arguments);
    va_end(arguments);
}

tol_status tol_fail_again(tol_status status, int result, const char *text) {
    message_cuda = result;
    snprintf(message, sizeof message, "%s", text);
    return status;
}
