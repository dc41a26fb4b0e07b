/*
 * Statuses and messages: names complete, messages per thread, nothing lost.
 */
#include "check.h"
#include "tollens/cuda_abi.h"
#include "tollens/status.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

Test(status, every_status_has_a_name_and_a_sentence) {
    for (int i = 0; i < TOL_STATUS_COUNT; i++) {
        const char *name = tol_status_name((tol_status)i);
        cr_assert(strncmp(name, "TOL_", 4) == 0 && strcmp(name, "TOL_STATUS_UNKNOWN") != 0);
        cr_assert(strlen(tol_status_sentence((tol_status)i)) > 8, "%s has no sentence", name);
    }
    cr_assert_str_eq(tol_status_name(TOL_TIMEOUT), "TOL_TIMEOUT");
    cr_assert_str_eq(tol_status_name((tol_status)-1), "TOL_STATUS_UNKNOWN");
    cr_assert_str_eq(tol_status_name(TOL_STATUS_COUNT), "TOL_STATUS_UNKNOWN");
}

/* The codes that a truncated table once printed as "unknown" (SPEC_INVENTORY section 1.6). */
Test(status, cuda_codes_have_their_own_names) {
    cr_assert_str_eq(tol_cuda_name(0), "CUDA_SUCCESS");
    cr_assert_str_eq(tol_cuda_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    cr_assert_str_eq(tol_cuda_name(716), "CUDA_ERROR_MISALIGNED_ADDRESS");
    cr_assert_str_eq(tol_cuda_name(901), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    cr_assert_str_eq(tol_cuda_name(300), "CUDA_ERROR_INVALID_SOURCE");
    cr_assert_str_eq(tol_cuda_name(500), "CUDA_ERROR_NOT_FOUND");
    cr_assert_str_eq(tol_cuda_name(123456), "CUDA_ERROR_?");
}

Test(status, a_message_names_place_call_code_and_numbers) {
    tol_status status = tol_fail_cuda("a/long/path/to/room/file.c", 12, "cuMemAlloc_v2", 2,
                                      "of %zu bytes", (size_t)68719476736u);
    cr_assert(status == TOL_OUT_OF_DEVICE_MEMORY);
    cr_assert_str_eq(tol_message(), "room/file.c:12: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): "
                                    "of 68719476736 bytes");
    cr_assert(tol_message_cuda() == 2);
}

Test(status, a_message_of_our_own_has_no_cuda_code) {
    (void)tol_fail_cuda("f.c", 1, "cuInit", 3, "x");
    (void)tol_fail("f.c", 2, TOL_TIMEOUT, "late");
    cr_assert_str_eq(tol_message(), "f.c:2: late");
    cr_assert(tol_message_cuda() == 0);
}

Test(status, what_does_not_fit_a_message_is_cut) {
    static char text[TOL_MESSAGE_BYTES * 2];
    memset(text, 'x', sizeof text - 1);
    (void)tol_fail("f.c", 1, TOL_INVALID_MODULE, "%s", text);
    tol_message_add("%s", text);
    cr_assert(strlen(tol_message()) == TOL_MESSAGE_BYTES - 1);
}

static void *fail_elsewhere(void *argument) {
    cr_assert_str_eq(tol_message(), "", "a new thread has had no failure");
    (void)tol_fail("f.c", 9, TOL_TIMEOUT, "other");
    return argument;
}

/* A name from a file could otherwise hide the message, or change what a terminal shows of it. */
Test(status, a_message_has_no_control_characters_of_names) {
    tol_fail("a.c", 1, TOL_NOT_FOUND, "%s", "no \033[31mkernel\a \302\2331m\177\r");
    cr_assert_str_eq(tol_message(), "a.c:1: no ?[31mkernel? ??1m??");
    tol_message_add("\n\t%s", "\303\244 \342\202\254");
    cr_assert_str_eq(tol_message(), "a.c:1: no ?[31mkernel? ??1m??\n\t\303\244 \342\202\254");
}

Test(status, each_thread_has_its_own_message) {
    pthread_t thread;
    (void)tol_fail("f.c", 1, TOL_TIMEOUT, "mine");
    cr_assert(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    cr_assert_str_eq(tol_message(), "f.c:1: mine");
}

Test(status, cuda_codes_map_to_statuses) {
    static const struct {
        int code;
        tol_status status;
    } table[] = {
        {CUDA_SUCCESS, TOL_OK},
        {CUDA_ERROR_INVALID_VALUE, TOL_INVALID_ARGUMENT},
        {CUDA_ERROR_OUT_OF_MEMORY, TOL_OUT_OF_DEVICE_MEMORY},
        {CUDA_ERROR_INVALID_PTX, TOL_INVALID_MODULE},
        {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, TOL_INVALID_MODULE},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, TOL_INVALID_MODULE},
        {CUDA_ERROR_NOT_FOUND, TOL_NOT_FOUND},
        {CUDA_ERROR_NOT_READY, TOL_NOT_READY},
        {CUDA_ERROR_ILLEGAL_ADDRESS, TOL_DRIVER_ERROR},
        {CUDA_ERROR_UNKNOWN, TOL_DRIVER_ERROR},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cr_assert(tol_status_of_cuda(table[i].code) == table[i].status, "%s",
                  tol_cuda_name(table[i].code));
    }
}

Test(status, sticky_codes_are_those_that_end_a_context) {
    cr_assert(tol_cuda_is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
    cr_assert(tol_cuda_is_sticky(CUDA_ERROR_LAUNCH_FAILED));
    cr_assert(tol_cuda_is_sticky(CUDA_ERROR_ASSERT));
    cr_assert(!tol_cuda_is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
    cr_assert(!tol_cuda_is_sticky(CUDA_ERROR_INVALID_VALUE));
    cr_assert(!tol_cuda_is_sticky(CUDA_SUCCESS));
}
