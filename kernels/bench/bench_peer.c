/*
 * A child with one socket for its input and output, a line at a time.
 */
#include "bench_peer.h"

#include "core/check.h"
#include "core/monotonic.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 256, NAME = 24, REASON = 400, END_MS = 1000 };

struct kn_peer {
    pid_t process;
    int socket; /* -1: the peer is gone, for the reason below */
    unsigned limit_ms;
    char problem[LINE]; /* that is ready; "": none */
    char name[NAME], reason[REASON];
    char bytes[LINE]; /* that came and were not read yet */
    size_t count;
};

/* ---- the process ----------------------------------------------------------------------------- */

/* In a group of its own, so that what the command starts ends with it. */
static void become_peer(int socket, const char *command) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0) _exit(127);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

tol_status kn_peer_open(const char *command, unsigned limit_ms, struct kn_peer **peer) {
    tol_status status = TOL_OK;
    int sockets[2] = {-1, -1};
    struct kn_peer *made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "a peer");
    TOL_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, TOL_UNSUPPORTED,
              "socketpair: %s", strerror(errno));
    made->process = fork();
    TOL_CHECK(made->process >= 0, TOL_UNSUPPORTED, "fork: %s", strerror(errno));
    if (made->process == 0) become_peer(sockets[1], command);
    setpgid(made->process, made->process); /* here too: whichever comes first */
    made->socket = sockets[0], made->limit_ms = limit_ms;
    sockets[0] = -1;
    *peer = made;
    made = NULL;
out:
    for (int i = 0; i < 2; i++) {
        if (sockets[i] >= 0) close(sockets[i]);
    }
    free(made);
    return status;
}

/* Waits for the end of the process, and enforces it after a number of milliseconds. What it started
 * ends before it is reaped, for then its group's number is nobody else's yet. */
static int bench_peer_end(struct kn_peer *peer, unsigned wait_ms) {
    const uint64_t deadline = tol_now_ns() + wait_ms * 1000000ull;
    const id_t process = (id_t)peer->process;
    siginfo_t ended = {.si_pid = 0};
    int how = 0;
    close(peer->socket);
    peer->socket = -1;
    while (waitid(P_PID, process, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0 &&
           tol_now_ns() < deadline) {
        poll(NULL, 0, 1);
    }
    kill(-peer->process, SIGKILL);
    waitpid(peer->process, &how, 0);
    return how;
}

/* The peer talks no more: how it ended, after what it got. */
static bool bench_peer_lose(struct kn_peer *peer, const char *asked) {
    const int how = bench_peer_end(peer, END_MS);
    if (WIFEXITED(how)) {
        snprintf(peer->reason, sizeof peer->reason,
                 "the peer ended with exit code %d where \"%.100s\" was asked", WEXITSTATUS(how),
                 asked);
    } else {
        snprintf(peer->reason, sizeof peer->reason,
                 "the peer was ended by signal %d where \"%.100s\" was asked", WTERMSIG(how),
                 asked);
    }
    return false;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes a line out of what came, without its end. */
static bool bench_peer_take_line(struct kn_peer *peer, char *line) {
    char *newline = memchr(peer->bytes, '\n', peer->count);
    if (newline == NULL) return false;
    const size_t length = (size_t)(newline - peer->bytes);
    memcpy(line, peer->bytes, length);
    line[length] = '\0';
    peer->count -= length + 1;
    memmove(peer->bytes, newline + 1, peer->count);
    return true;
}

static bool bench_peer_refuse(struct kn_peer *peer, const char *asked, const char *answer) {
    bench_peer_end(peer, 0);
    snprintf(peer->reason, sizeof peer->reason, "the peer answered \"%.100s\" to \"%.100s\"",
             answer, asked);
    return false;
}

/* Sends a line, and waits for the answer to it. */
static bool bench_peer_ask(struct kn_peer *peer, const char *asked, char answer[LINE]) {
    char line[LINE + 1];
    const uint64_t deadline = tol_now_ns() + peer->limit_ms * 1000000ull;
    const int length = snprintf(line, sizeof line, "%s\n", asked);
    if (peer->socket < 0) return false;
    const ssize_t early = recv(peer->socket, peer->bytes + peer->count,
                               sizeof peer->bytes - 1 - peer->count, MSG_DONTWAIT);
    if (early > 0) peer->count += (size_t)early;
    peer->bytes[peer->count] = '\0';
    if (peer->count > 0) { /* nobody asked for what came */
        snprintf(answer, LINE, "%.*s", (int)strcspn(peer->bytes, "\n"), peer->bytes);
        return bench_peer_refuse(peer, "nothing", answer);
    }
    if (send(peer->socket, line, (size_t)length, MSG_NOSIGNAL) != length)
        return bench_peer_lose(peer, asked);
    while (!bench_peer_take_line(peer, answer)) {
        const uint64_t now = tol_now_ns();
        struct pollfd ready = {.fd = peer->socket, .events = POLLIN};
        const size_t room = sizeof peer->bytes - 1 - peer->count;
        if (room == 0) {
            peer->bytes[peer->count] = '\0';
            return bench_peer_refuse(peer, asked, peer->bytes);
        }
        if (now >= deadline) {
            bench_peer_end(peer, 0);
            snprintf(peer->reason, sizeof peer->reason,
                     "the peer gave no answer to \"%.100s\" in %.1f s", asked,
                     peer->limit_ms * 1e-3);
            return false;
        }
        if (poll(&ready, 1, (int)((deadline - now) / 1000000u) + 1) <= 0) continue;
        const ssize_t got = recv(peer->socket, peer->bytes + peer->count, room, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return bench_peer_lose(peer, asked);
        peer->count += (size_t)got;
    }
    return true;
}

/* What follows the word; NULL: the line does not begin with it. */
static const char *bench_peer_text_after(const char *line, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] != ' ') return NULL;
    return line + length + 1;
}

bool kn_peer_prepare(struct kn_peer *peer, const char *problem) {
    char asked[LINE], answer[LINE];
    if (peer->socket < 0) return false;
    if (problem[0] != '\0' && strcmp(problem, peer->problem) == 0) return true;
    peer->problem[0] = '\0';
    snprintf(asked, sizeof asked, "prepare %s", problem);
    if (!bench_peer_ask(peer, asked, answer)) return false;
    const char *name = bench_peer_text_after(answer, "ready"),
               *why = bench_peer_text_after(answer, "cannot");
    if (why != NULL) {
        snprintf(peer->reason, sizeof peer->reason, "the peer cannot: %.200s", why);
        return false;
    }
    if (name == NULL || name[0] == '\0' || strpbrk(name, "\"\\") != NULL) {
        return bench_peer_refuse(peer, asked, answer);
    }
    snprintf(peer->name, sizeof peer->name, "%.*s", NAME - 1, name);
    snprintf(peer->problem, sizeof peer->problem, "%s", problem);
    return true;
}

bool kn_peer_batch(struct kn_peer *peer, size_t launches, double *us) {
    char asked[LINE], answer[LINE], *rest = NULL;
    snprintf(asked, sizeof asked, "batch %zu", launches);
    if (!bench_peer_ask(peer, asked, answer)) return false;
    const double value = strtod(answer, &rest);
    if (rest == answer || *rest != '\0' || !(value > 0) || isinf(value)) {
        return bench_peer_refuse(peer, asked, answer);
    }
    *us = value;
    return true;
}

bool kn_peer_check(struct kn_peer *peer) {
    char answer[LINE];
    if (!bench_peer_ask(peer, "check", answer)) return false;
    if (strcmp(answer, "right") == 0) return true;
    const char *why = bench_peer_text_after(answer, "wrong");
    if (why == NULL) return bench_peer_refuse(peer, "check", answer);
    peer->problem[0] = '\0';
    snprintf(peer->reason, sizeof peer->reason, "the peer's results are wrong: %.200s", why);
    return false;
}

const char *kn_peer_name(const struct kn_peer *peer) {
    return peer->name;
}

const char *kn_peer_reason(const struct kn_peer *peer) {
    return peer->reason;
}

void kn_peer_close(struct kn_peer *peer) {
    if (peer == NULL) return;
    if (peer->socket >= 0) {
        if (send(peer->socket, "quit\n", 5, MSG_NOSIGNAL) == 5) shutdown(peer->socket, SHUT_WR);
        bench_peer_end(peer, END_MS);
    }
    free(peer);
}
