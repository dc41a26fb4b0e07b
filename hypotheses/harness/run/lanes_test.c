/*
 * Jobs side by side: how many, in which order they are taken, and how a failure ends them.
 */
#include "lanes.h"

#include "files/atomic_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdatomic.h>
#include <time.h>

enum { JOBS = 40 };

struct seen {
    atomic_uint begun, running, most, ran[JOBS];
    size_t taken[JOBS], taken_count, failing, refused;
};

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Later jobs of a row end earlier. */
static bool run(void *user, size_t job) {
    struct seen *seen = user;
    const unsigned now = atomic_fetch_add(&seen->running, 1) + 1;
    unsigned most = atomic_load(&seen->most);
    while (now > most && !atomic_compare_exchange_weak(&seen->most, &most, now)) continue;
    atomic_fetch_add(&seen->begun, 1);
    atomic_fetch_add(&seen->ran[job], 1);
    for (size_t i = job % 4; i < 4; i++) nap();
    atomic_fetch_sub(&seen->running, 1);
    return job != seen->failing || hyp_fail("job %zu failed", job);
}

static bool take(void *user, size_t job) {
    struct seen *seen = user;
    seen->taken[seen->taken_count++] = job;
    return job != seen->refused || hyp_fail("job %zu was refused", job);
}

static struct seen seen;

static bool try_lanes(unsigned lanes, size_t jobs) {
    return hyp_lanes_run(&(struct hyp_lanes){lanes, jobs, run, take, &seen});
}

TestSuite(lanes, .timeout = 120);

Test(lanes, every_job_runs_once_and_is_taken_in_order) {
    const unsigned lanes[] = {1, 2, 4, JOBS + 1};
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
        seen = (struct seen){.failing = JOBS, .refused = JOBS};
        cr_assert(try_lanes(lanes[i], JOBS), "%s", hyp_error());
        cr_assert(eq(sz, seen.taken_count, JOBS));
        for (size_t job = 0; job < JOBS; job++) {
            cr_assert(eq(sz, seen.taken[job], job));
            cr_assert(eq(uint, seen.ran[job], 1));
        }
        cr_assert(le(uint, seen.most, lanes[i]));
        cr_assert(lanes[i] == 1 || seen.most > 1, "%u lanes ran one job at a time", lanes[i]);
    }
}

Test(lanes, none_is_enough) {
    seen = (struct seen){.failing = JOBS, .refused = JOBS};
    cr_assert(try_lanes(4, 0));
    cr_assert(eq(sz, seen.taken_count, 0));
}

Test(lanes, a_failed_job_ends_it_with_its_words) {
    seen = (struct seen){.failing = 5, .refused = JOBS};
    cr_assert(not(try_lanes(4, JOBS)));
    cr_assert(eq(str, (char *)hyp_error(), "job 5 failed"));
    cr_assert(lt(uint, seen.begun, 5 + 1 + 2 * 4));
    cr_assert(le(sz, seen.taken_count, 5));
    cr_assert(eq(uint, seen.running, 0));
}

Test(lanes, what_is_not_taken_ends_it) {
    seen = (struct seen){.failing = JOBS, .refused = 3};
    cr_assert(not(try_lanes(2, JOBS)));
    cr_assert(eq(str, (char *)hyp_error(), "job 3 was refused"));
    cr_assert(eq(sz, seen.taken_count, 4));
}
