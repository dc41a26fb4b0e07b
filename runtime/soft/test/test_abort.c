/*
 * A child process that must be aborted, and its message.
 */
#include "test_abort.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 60, CHILD_LACKS = 3 };

static void run_child(int said, void (*break_it)(void)) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(CHILD_SECONDS);
    signal(SIGABRT, SIG_DFL);
    dup2(said, STDERR_FILENO);
    break_it();
    _exit(0);
}

void test_must_abort(void (*break_it)(void), const char *file, const char *text) {
    char said[4096] = "";
    size_t length = 0;
    int ends[2], how = 0;
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], break_it);
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && length + 1 < sizeof said; length += (size_t)got) {
        got = read(ends[0], said + length, sizeof said - 1 - length);
        if (got < 0) got = 0;
    }
    close(ends[0]);
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT, "the child was not aborted (%d): %s",
              how, said);
    cr_assert(strstr(said, file) != NULL && strstr(said, text) != NULL,
              "%s: %s was expected to fail, not: %s", file, text, said);
}

void test_child_needs(bool condition) {
    if (!condition) _exit(CHILD_LACKS);
}
