/*
 * A process that ends is reaped with its status; one that does not is abandoned at the deadline.
 */
#include "process_await.h"

#include "harness/clock.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int code) {
    const pid_t process = fork();
    cr_assert(process >= 0);
    if (process == 0) {
        if (code < 0) pause();
        _exit(code);
    }
    return process;
}

Test(process_await, one_that_ends_is_reaped_with_its_status) {
    for (int turn = 0; turn < 2; turn++) {
        int status = 0;
        const pid_t process = start(7);
        cr_assert(hyp_process_await(process, turn == 0 ? 0 : 60, &status));
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%#x", (unsigned)status);
        cr_assert(waitpid(process, NULL, WNOHANG) < 0, "it was not reaped");
    }
}

Test(process_await, one_that_does_not_end_is_given_up, .timeout = 60) {
    int status = 0;
    const pid_t process = start(-1);
    const uint64_t begin_ns = hyp_clock_ns();
    cr_assert_not(hyp_process_await(process, 0.2, &status));
    cr_assert(hyp_clock_ns() - begin_ns >= 200000000, "it did not wait");
    kill(process, SIGKILL);
    cr_assert(hyp_process_await(process, 60, &status) && WIFSIGNALED(status));
}
