/*
 * Which job a device is given next, without any process.
 */
#include "guard/guard_jobs.h"
#include "test/test_device.h"

static struct guard_jobs jobs;

static void begin(void) {
    uint64_t number = 0;
    MUST(guard_jobs_open(&jobs, &(struct tol_guard_options){.attempts = 2}));
    for (int i = 0; i < 3; i++) MUST(guard_jobs_submit(&jobs, "x", 1, &number));
    cr_assert(number == 3);
}

static void end(void) {
    guard_jobs_clear(&jobs);
}
TestSuite(guard_jobs, .init = begin, .fini = end);

static uint64_t next(size_t device, bool is_alone) {
    const struct guard_job *job = guard_jobs_next(&jobs, device, is_alone);
    return job != NULL ? guard_jobs_number(&jobs, job) : 0;
}

Test(guard_jobs, a_lost_job_comes_first_and_goes_to_another_device) {
    cr_assert(next(0, false) == 1 && next(1, false) == 2);
    MUST(guard_jobs_lose(&jobs, &jobs.job[0], 0, 5, "it was lost"));
    cr_assert(next(0, false) == 3, "not the one that it has lost itself");
    cr_assert(next(0, false) == 0);
    cr_assert(next(1, false) == 1 && next(1, false) == 0);
}

Test(guard_jobs, the_last_device_has_its_lost_job_again) {
    cr_assert(next(0, true) == 1);
    MUST(guard_jobs_lose(&jobs, &jobs.job[0], 0, 5, "it was lost"));
    cr_assert(next(0, true) == 1);
}

Test(guard_jobs, the_last_attempt_is_an_answer) {
    for (unsigned i = 1; i <= 2; i++) {
        cr_assert(next(0, true) == 1);
        MUST(guard_jobs_lose(&jobs, &jobs.job[0], 0, 5, "it was lost"));
        cr_assert((jobs.job[0].stage == GUARD_IS_ANSWERED) == (i == 2));
    }
    cr_assert(jobs.job[0].is_failed && jobs.failed == 1);
    cr_assert_str_eq(jobs.job[0].answer.bytes, "it ended 2 workers; the latest: it was lost");
    cr_assert(next(0, true) == 2);
}

Test(guard_jobs, what_is_put_back_is_handed_out_once_and_not_counted_as_lost) {
    cr_assert(next(0, false) == 1 && next(1, false) == 2);
    MUST(guard_jobs_lose(&jobs, &jobs.job[0], 0, 5, "it was lost"));
    guard_jobs_put_back(&jobs, 2);
    guard_jobs_put_back(&jobs, 0);
    cr_assert(jobs.job[1].lost == 0);
    const uint64_t first = next(1, false), second = next(1, false), third = next(1, false);
    cr_assert(first == 1 && second == 2 && third == 3 && next(1, true) == 0 && next(0, true) == 0);
}
