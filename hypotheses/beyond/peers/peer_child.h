/*
 * Child: the other process, as the attack sees it. Every answer has a deadline; a process that does
 * not keep it is killed, and that is a violation.
 */
#ifndef HYP_PEER_CHILD_H
#define HYP_PEER_CHILD_H

#include "peer_message.h"
#include "peer_stage.h"

#include <sys/types.h>

struct peer_child {
    pid_t process;
    int socket;
};

/* Starts it on a device. false: a violation was recorded. End it in either case. */
bool peer_child_begin(struct peer_stage *stage, size_t device, struct peer_child *child);

/* Gives an order with a file descriptor or -1, and waits for the answer. *answer_file (if not NULL)
 * is the caller's to close, or -1. false: a violation was recorded. */
bool peer_child_ask(struct peer_stage *stage, const struct peer_child *child,
                    const struct peer_order *order, int file, struct peer_answer *answer,
                    int *answer_file);

/* Ends it; with is_killed, without its knowing. */
void peer_child_end(struct peer_child *child, bool is_killed);

#endif
