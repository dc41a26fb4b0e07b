/*
 * fork and exec, because posix_spawn has no parent death signal. All memory is allocated before the
 * fork, because the caller may have threads.
 */
#include "guard_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* in every architecture; headers older than Linux 5.3 lack it */
#endif

enum { ADDED = 4, VALUE_BYTES = 512, LOWEST_FILE = 3 };

/* ---- the environment ---- */

struct settings {
    char text[ADDED][VALUE_BYTES]; /* NAME=VALUE */
    size_t count;
    char **all; /* ours and these */
};

static void guard_child_set(struct settings *settings, const char *name, const char *value) {
    snprintf(settings->text[settings->count++], VALUE_BYTES, "%s=%s", name, value);
}

/* The N-th entry of a comma-separated list, in text; false: there is none. */
static bool guard_child_entry_of(const char *list, unsigned long index, char *text, size_t bytes) {
    for (; index > 0 && list != NULL; index--) {
        list = strchr(list, ',');
        if (list != NULL) list++;
    }
    if (list == NULL || *list == '\0') return false;
    snprintf(text, bytes, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

/* Which devices the worker sees. */
static void set_device(struct settings *settings, const char *device) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    guard_child_set(settings, "TOLLENS_GUARD_DEVICE", device);
    if (strchr(device, ':') == NULL) return; /* any name; it means something to the program */
    if (strncmp(device, "cuda:", 5) != 0) {
        guard_child_set(settings, "TOLLENS_DEVICE", device);
        return;
    }
    char *end = NULL, entry[VALUE_BYTES / 2];
    const unsigned long index = strtoul(device + 5, &end, 10);
    const bool is_index = end != device + 5 && *end == '\0';
    if (!is_index || visible == NULL ||
        !guard_child_entry_of(visible, index, entry, sizeof entry)) {
        snprintf(entry, sizeof entry, "%s", device + 5);
    }
    guard_child_set(settings, "CUDA_VISIBLE_DEVICES", entry);
    guard_child_set(settings, "TOLLENS_DEVICE", "cuda:0");
}

static bool is_set(const struct settings *settings, const char *variable) {
    const size_t name = strcspn(variable, "=");
    for (size_t i = 0; i < settings->count; i++) {
        if (strncmp(settings->text[i], variable, name + 1) == 0) return true;
    }
    return false;
}

static tol_status guard_child_make_environment(struct settings *settings, const char *device,
                                               unsigned beat_ms) {
    tol_status status = TOL_OK;
    char number[16];
    size_t count = 0, at = 0;
    settings->count = 0;
    snprintf(number, sizeof number, "%u", beat_ms);
    guard_child_set(settings, "TOLLENS_GUARD_BEAT_MS", number);
    set_device(settings, device);
    while (environ != NULL && environ[count] != NULL) count++;
    settings->all = calloc(count + ADDED + 1, sizeof *settings->all);
    TOL_CHECK(settings->all != NULL, TOL_OUT_OF_HOST_MEMORY, "an environment");
    for (size_t i = 0; i < count; i++) {
        if (!is_set(settings, environ[i])) settings->all[at++] = environ[i];
    }
    for (size_t i = 0; i < settings->count; i++) settings->all[at++] = settings->text[i];
out:
    return status;
}

/* ---- pipes ---- */

static bool is_high(int *file) {
    if (*file >= LOWEST_FILE) return true;
    const int high = fcntl(*file, F_DUPFD_CLOEXEC, LOWEST_FILE);
    close(*file);
    *file = high;
    return high >= 0;
}

/* Both ends are above the standard descriptors, so that dup2 in the child does not overwrite
 * them. */
static tol_status make_pipe(int ends[2]) {
    tol_status status = TOL_OK;
    TOL_CHECK(pipe2(ends, O_CLOEXEC) == 0, TOL_OUT_OF_HOST_MEMORY, "a pipe: %s", strerror(errno));
    TOL_CHECK(is_high(&ends[0]) && is_high(&ends[1]), TOL_OUT_OF_HOST_MEMORY, "a pipe: %s",
              strerror(errno));
out:
    return status;
}

static void close_end(int *file) {
    if (*file >= 0) close(*file);
    *file = -1;
}

/* ---- the start ---- */

/* In the child: only calls that are safe after a fork. told receives errno if there is no exec. */
static void guard_child_become(const char *const *program, char **environment, pid_t parent, int in,
                               int out, int told) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* it died before the line above */
    for (int number = 1; number < NSIG; number++) sigaction(number, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        /* exec takes the arguments as they are. */
        execvpe(program[0], (char *const *)(uintptr_t)program, environment);
    }
    const int error = errno;
    const ssize_t written = write(told, &error, sizeof error);
    _exit(written == sizeof error ? 127 : 126);
}

/* Waits until the child has executed the program; returns its errno if it failed. */
static int exec_error(int told) {
    int error = 0;
    ssize_t got;
    do {
        got = read(told, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == sizeof error ? error : 0;
}

tol_status guard_child_start(const char *const *program, const char *device, unsigned beat_ms,
                             struct guard_child *child) {
    tol_status status = TOL_OK;
    int in[2] = {-1, -1}, out[2] = {-1, -1}, told[2] = {-1, -1};
    struct settings settings = {.count = 0};
    *child = GUARD_NO_CHILD;
    TOL_TRY(guard_child_make_environment(&settings, device, beat_ms));
    TOL_TRY(make_pipe(in));
    TOL_TRY(make_pipe(out));
    TOL_TRY(make_pipe(told));
    const pid_t parent = getpid();
    child->id = fork();
    if (child->id == 0) guard_child_become(program, settings.all, parent, in[0], out[1], told[1]);
    if (child->id < 0) {
        child->id = 0;
        TOL_FAIL(TOL_OUT_OF_HOST_MEMORY, "a process: %s", strerror(errno));
    }
    setpgid(child->id, child->id); /* parent and child both call it */
    close_end(&told[1]);
    const int error = exec_error(told[0]);
    TOL_CHECK(error == 0, TOL_NOT_FOUND, "%s cannot be started: %s", program[0], strerror(error));
    child->event = (int)syscall(SYS_pidfd_open, child->id, 0);
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    child->in = in[1];
    child->out = out[0];
    in[1] = out[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        close_end(&in[i]);
        close_end(&out[i]);
        close_end(&told[i]);
    }
    free(settings.all);
    if (status != TOL_OK) guard_child_close(child);
    return status;
}

/* ---- the end ---- */

void guard_child_kill(const struct guard_child *child) {
    if (child->id == 0) return;
    kill(-child->id, SIGKILL);
    kill(child->id, SIGKILL);
}

bool guard_child_end(struct guard_child *child, bool *is_good, char *how, size_t bytes) {
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)child->id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0) {
        return false;
    }
    /* Until the dead leader is waited for, no other process can have its group's number. */
    kill(-child->id, SIGKILL);
    waitid(P_PID, (id_t)child->id, &info, WEXITED);
    *is_good = info.si_code == CLD_EXITED && info.si_status == 0;
    if (info.si_code == CLD_EXITED) {
        snprintf(how, bytes, "it ended with exit code %d", info.si_status);
    } else {
        snprintf(how, bytes, "it was ended by signal %d (%s)", info.si_status,
                 strsignal(info.si_status));
    }
    child->id = 0;
    close_end(&child->event);
    return true;
}

void guard_child_close(struct guard_child *child) {
    if (child->id != 0) {
        guard_child_kill(child);
        while (waitpid(child->id, NULL, 0) < 0 && errno == EINTR) continue;
    }
    close_end(&child->event);
    close_end(&child->in);
    close_end(&child->out);
    *child = GUARD_NO_CHILD;
}
