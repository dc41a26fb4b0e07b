/*
 * The rate of a device's clock: taken where it is one that a clock can have, else left as it was.
 *
 * The driver's cuEventElapsedTime is replaced by one whose clock is wrong. The
 * origin is put far into the past, so that what a busy host adds to the readings does not count.
 */
#include "test/test_device.h"
#include "trace_state.h"

#include "core/monotonic.h"

static const double past_ns = 1e13, usual_ns = 1e6;
static float told_ms; /* 0: the time since young_ns, and no more than is too little */
static double young_ns;
static CUresult told_result;

enum { TOO_LITTLE_MS = 49 };

static CUresult CUDAAPI tell(float *ms, CUevent begin, CUevent end) {
    if (begin == NULL || end == NULL) return CUDA_ERROR_INVALID_HANDLE;
    double since_ms = ((double)tol_now_ns() - young_ns) / 1e6;
    *ms = told_ms > 0 ? told_ms : (float)(since_ms < TOO_LITTLE_MS ? since_ms : TOO_LITTLE_MS);
    return told_result;
}

static struct tol_driver_table table;
static struct tol_trace_context context;

static void begin(void) {
    MUST(tol_context_bind(test_context()));
    table = *tol_driver_functions(test_driver());
    table.cuEventElapsedTime = tell;
    tol_trace.driver = &table;
    cr_assert(tol_trace_set_origin(&context));
    context.origin_ns -= past_ns;
    told_result = CUDA_SUCCESS;
}

static void end(void) {
    table.cuEventDestroy_v2(context.origin);
    table.cuEventDestroy_v2(context.spare);
    table.cuStreamDestroy_v2(context.stream);
    test_end();
}
TestSuite(trace_clock, .init = begin, .fini = end);

/* How far the clock went in the time since the origin, for one that is fast by a share. */
static double rate_where(double fast_by) {
    context.per_ms_ns = usual_ns;
    told_ms = (float)(past_ns / usual_ns * (1 + fast_by));
    tol_trace_set_rate(&context);
    return context.per_ms_ns;
}

Test(trace_clock, a_clock_that_is_a_little_fast_or_slow_sets_the_rate) {
    double fast = rate_where(1e-4), slow = rate_where(-1e-4);
    cr_assert(fast < usual_ns * (1 - 0.5e-4) && fast > usual_ns * (1 - 2e-4), "%.3f", fast);
    cr_assert(slow > usual_ns * (1 + 0.5e-4) && slow < usual_ns * (1 + 2e-4), "%.3f", slow);
}

Test(trace_clock, a_rate_that_no_clock_has_is_not_taken) {
    cr_assert_eq(rate_where(2e-3), usual_ns);
    cr_assert_eq(rate_where(-2e-3), usual_ns);
    cr_assert_eq(rate_where(9), usual_ns);
}

Test(trace_clock, what_cannot_be_read_leaves_the_rate) {
    told_result = CUDA_ERROR_NOT_READY;
    cr_assert_eq(rate_where(1e-4), usual_ns);
}

static CUresult CUDAAPI lose(CUevent event) {
    return event != NULL ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_HANDLE;
}

Test(trace_clock, without_a_second_clock_point_the_rate_stays) {
    table.cuEventQuery = lose;
    cr_assert_eq(rate_where(1e-4), usual_ns);
}

/* 30 ms after the origin the readings' own width would be taken for a difference of the clocks. */
Test(trace_clock, soon_after_the_origin_the_rate_stays) {
    context.per_ms_ns = usual_ns;
    told_ms = 0;
    young_ns = context.origin_ns = (double)tol_now_ns() - 30e6;
    tol_trace_set_rate(&context);
    cr_assert_eq(context.per_ms_ns, usual_ns);
}
