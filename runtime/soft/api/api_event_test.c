/*
 * Events: points in streams, and the time between them.
 */
#include "test/test_api.h"

#include <stdlib.h>

Test(api_event, bad_arguments_are_refused) {
    CUevent event = NULL, gone = NULL, untimed = NULL;
    CUstream stream = NULL;
    float ms = 0;
    api_context(0);
    REFUSED(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuEventCreate(&event, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&gone, 0));
    OK(cuEventDestroy_v2(gone));
    OK(cuStreamCreate(&stream, 0));
    CUevent none[] = {gone, NULL, (CUevent)stream};
    for (int i = 0; i < 3; i++) {
        REFUSED(cuEventDestroy_v2(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuEventQuery(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuEventSynchronize(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuEventRecord(none[i], stream), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamWaitEvent(stream, none[i], 0), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuEventElapsedTime(&ms, event, none[i]), CUDA_ERROR_INVALID_HANDLE);
    }
    REFUSED(cuEventRecord(event, (CUstream)event), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuEventRecordWithFlags(event, stream, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitEvent(stream, event, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    OK(cuEventElapsedTime(&ms, event, event));
    REFUSED(cuEventElapsedTime(NULL, event, event), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_event, one_that_was_never_recorded_is_an_empty_set_of_work) {
    CUevent event = NULL;
    CUstream stream = NULL;
    float ms = 0;
    api_context(0);
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventQuery(event));
    OK(cuEventSynchronize(event));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuStreamQuery(stream));
    REFUSED(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_event, it_is_ready_when_the_work_before_it_is) {
    CUevent event = NULL, later = NULL, untimed = NULL;
    CUstream stream = NULL;
    CUdeviceptr flag_address = 0;
    float ms = -1;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&later, 0));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    api_hold(flag_address, stream);
    OK(cuEventRecord(later, stream));
    OK(cuEventRecord(untimed, stream));
    REFUSED(cuEventQuery(later), CUDA_ERROR_NOT_READY);
    OK(cuEventQuery(event));
    REFUSED(cuEventElapsedTime(&ms, event, later), CUDA_ERROR_NOT_READY);
    REFUSED(cuEventElapsedTime(&ms, later, event), CUDA_ERROR_NOT_READY);
    REFUSED(cuEventElapsedTime(&ms, untimed, later), CUDA_ERROR_INVALID_HANDLE);
    *flag = 1;
    OK(cuEventSynchronize(later));
    OK(cuEventQuery(later));
    OK(cuEventElapsedTime(&ms, event, later));
    cr_assert(ms > 0, "%g", (double)ms);
    float back = 0;
    OK(cuEventElapsedTime_v2(&back, later, event));
    cr_assert(back == -ms, "%g and %g", (double)ms, (double)back);
    REFUSED(cuEventElapsedTime(&ms, event, untimed), CUDA_ERROR_INVALID_HANDLE);
}

/* A wait is for the latest recording at the time of the call; recording again changes nothing. */
Test(api_event, waiting_is_for_the_recording_of_that_time) {
    CUevent event = NULL;
    CUstream one = NULL, other = NULL, third = NULL;
    CUdeviceptr flag_address = 0;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    api_hold(flag_address, one);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuEventRecord(event, third));
    OK(cuEventSynchronize(event));
    REFUSED(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    /* Even an event that is gone is waited for. */
    OK(cuEventDestroy_v2(event));
    REFUSED(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuStreamSynchronize(other));
}

Test(api_event, events_order_devices) {
    CUcontext zero = NULL, one = NULL;
    CUevent event = NULL, own = NULL;
    CUstream stream = NULL, far = NULL;
    CUdeviceptr flag_address = 0, value = 0;
    float ms = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    zero = api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    one = api_context(1);
    OK(cuStreamCreate(&far, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&own, 0));
    OK(cuMemAlloc_v2(&value, 4));
    OK(cuMemsetD32_v2(value, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(zero));
    api_hold(flag_address, stream);
    OK(cuEventRecord(event, stream));
    OK(cuCtxSetCurrent(one));
    OK(cuStreamWaitEvent(far, event, 0));
    api_put(value, 4, far);
    REFUSED(cuStreamQuery(far), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuStreamSynchronize(far));
    cr_assert_eq(api_read(value), 4);
    /* An event and the stream it is recorded in are of one context. */
    REFUSED(cuEventRecord(event, far), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuEventRecord(own, stream), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(own, far));
    OK(cuEventSynchronize(own));
    REFUSED(cuEventElapsedTime(&ms, event, own), CUDA_ERROR_INVALID_HANDLE);
}

/* A failed context answers for its events, whichever context is current. */
Test(api_event, one_of_a_failed_context_says_so) {
    CUevent event = NULL, own = NULL;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    (void)api_context(0);
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, NULL));
    OK(cuEventSynchronize(event));
    cr_assert_eq(api_fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
    (void)api_context(1);
    OK(cuEventCreate(&own, 0));
    OK(cuEventRecord(own, NULL));
    OK(cuEventSynchronize(own));
    REFUSED(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuEventQuery(own));
}
