/*
 * Starts peer-process, which lies beside the program or in the folder lib/ of an installed one. It
 * is a program of its own: a process that has initialised CUDA cannot go on as a fork.
 */
#include "peer_child.h"

#include "harness/session.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_S = 60 };

extern char **environ;

static const char *program_path(void) {
    static const char *const ways[] = {"/peer-process", "/lib/peer-process",
                                       "/../lib/tollens/peer-process"};
    static char path[4400];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(path, sizeof path, "%s%s", hyp_session_program_folder(), ways[i]);
        if (access(path, X_OK) == 0) return path;
    }
    return NULL;
}

/* Some orders must fail, so what the soft device reports there is no finding. */
static bool peer_child_start(const char *program, char *const *words, int socket, pid_t *process) {
    enum { VARIABLES_MAX = 2000 };
    static const char report[] = "TOLLENS_SOFT_REPORT=";
    char *variables[VARIABLES_MAX + 1];
    size_t count = 0;
    for (char **at = environ; *at != NULL && count < VARIABLES_MAX; at++) {
        if (strncmp(*at, report, strlen(report)) != 0) variables[count++] = *at;
    }
    variables[count] = NULL;
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    const bool ok = posix_spawn_file_actions_adddup2(&actions, socket, PEER_SOCKET) == 0 &&
                    posix_spawn(process, program, &actions, NULL, words, variables) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

bool peer_child_begin(struct peer_stage *stage, size_t device, struct peer_child *child) {
    struct hyp_attack *attack = stage->attack;
    char ordinal[24], library[4400], ptx[4400];
    int sockets[2], file = -1;
    struct peer_answer ready;
    const char *program = program_path(), *root = hyp_session_root();
    *child = (struct peer_child){.process = -1, .socket = -1};
    if (!HYP_CHECK(attack, program != NULL && root != NULL,
                   "peer-process is not beside the program")) {
        return false;
    }
    snprintf(ordinal, sizeof ordinal, "%zu", device);
    snprintf(library, sizeof library, "%s", tol_driver_path(attack->driver));
    snprintf(ptx, sizeof ptx, "%s/fixtures/ptx/kernels/peer_move.ptx", root);
    char *const words[] = {(char *)(uintptr_t)program, library, ordinal, ptx, NULL};
    if (!HYP_CHECK(attack, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0,
                   "no sockets: %s", strerror(errno))) {
        return false;
    }
    const bool is_started = peer_child_start(program, words, sockets[1], &child->process);
    close(sockets[1]);
    child->socket = sockets[0];
    if (!HYP_CHECK(attack, is_started, "%s cannot be started", program)) return false;
    return HYP_CHECK(attack, peer_receive(child->socket, &ready, sizeof ready, &file, ANSWER_S),
                     "the other process was not ready within %d s", ANSWER_S) &&
           HYP_CHECK(attack, ready.result == CUDA_SUCCESS,
                     "the other process: CUDA error %d from %s", ready.result, ready.text);
}

bool peer_child_ask(struct peer_stage *stage, const struct peer_child *child,
                    const struct peer_order *order, int file, struct peer_answer *answer,
                    int *answer_file) {
    int got = -1;
    const bool ok = HYP_CHECK(stage->attack, peer_send(child->socket, order, sizeof *order, file),
                              "the other process has ended") &&
                    HYP_CHECK(stage->attack,
                              peer_receive(child->socket, answer, sizeof *answer, &got, ANSWER_S),
                              "the other process did not answer order %d within %d s",
                              (int)order->kind, ANSWER_S);
    if (answer_file != NULL) {
        *answer_file = got;
    } else if (got >= 0) {
        close(got);
    }
    return ok;
}

void peer_child_end(struct peer_child *child, bool is_killed) {
    const struct peer_order end = {.kind = PEER_END};
    if (child->process > 0) {
        enum { TURNS = 200, TURN_US = 50000 };
        bool is_over = false;
        if (is_killed || !peer_send(child->socket, &end, sizeof end, -1)) {
            kill(child->process, SIGKILL);
        }
        for (int i = 0; i < TURNS && !is_over; i++) {
            is_over = waitpid(child->process, NULL, WNOHANG) == child->process;
            if (!is_over) usleep(TURN_US);
        }
        if (!is_over) {
            kill(child->process, SIGKILL);
            waitpid(child->process, NULL, 0);
        }
    }
    if (child->socket >= 0) close(child->socket);
    *child = (struct peer_child){.process = -1, .socket = -1};
}
