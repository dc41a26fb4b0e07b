/*
 * waitpid with a deadline. SIGKILL ends a process only when it leaves the kernel, and a driver that
 * waits for its device need not let it.
 */
#include "process_await.h"

#include "harness/clock.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

bool hyp_process_await(pid_t process, double seconds, int *status) {
    const struct timespec pause = {.tv_nsec = 20000000};
    const uint64_t begin_ns = hyp_clock_ns();
    for (;;) {
        const pid_t found = waitpid(process, status, seconds > 0 ? WNOHANG : 0);
        if (found == process || (found < 0 && errno != EINTR)) return true;
        if (seconds > 0 && (double)(hyp_clock_ns() - begin_ns) * 1e-9 > seconds) return false;
        if (seconds > 0) nanosleep(&pause, NULL);
    }
}
