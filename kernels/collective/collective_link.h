/*
 * Collective link: what the process of one rank shares with those of the others, and how its stream
 * waits for theirs. Internal.
 *
 * Each rank has a word in a page that all processes map, a number that its stream raises step by
 * step, and that the streams of others wait for. If a rank is lost, whoever notices says so in the
 * page and raises the words itself, so that its own stream ends.
 */
#ifndef KN_COLLECTIVE_LINK_H
#define KN_COLLECTIVE_LINK_H

#include "collective/collective_state.h"
#include "collective/collective_window.h"

enum { KN_LINK_NAME = 24 };

struct kn_meeting;
struct kn_link_page;

struct kn_collective_link {
    unsigned rank, ranks;
    struct kn_link_page *page;
    CUdeviceptr words; /* the page for the device; 0: not registered */
    uint32_t base;     /* what the words are after all earlier calls */
    uint32_t steps;    /* of the call that is being queued */
    uint64_t calls, checked;
    int lives[KN_COLLECTIVE_RANKS_MAX], own_life; /* pipes that close with a process */
    struct kn_window windows[KN_COLLECTIVE_RANKS_MAX];
    size_t bytes; /* at the beginning of each window, for callers; inboxes follow */
};

/* Maps the page of a meeting and takes the ends of the pipes from it. kn_link_close undoes it. */
tol_status kn_link_open(struct tol_context *context, struct kn_meeting *meeting,
                        struct kn_collective_link *link);
/* What a rank called, for others to compare: no byte of it is padding. It is in words only once it
 * differs, since words take a microsecond. */
struct kn_link_call {
    char name[KN_LINK_NAME]; /* zeros after it */
    uint64_t count;
    uint64_t in, out; /* where others use them in the memory of a rank; UINT64_MAX: they do not */
    uint32_t type, root; /* a kn_type; UINT32_MAX: there is none */
};
_Static_assert(sizeof(struct kn_link_call) == KN_LINK_NAME + 32, "a call has padding");

/* Begins a call: its steps count from 0, and others see what it is, so that a rank that makes
 * another is noticed. */
void kn_link_begin(struct kn_collective_link *link, const struct kn_link_call *call);

#endif
