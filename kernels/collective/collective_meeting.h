/*
 * Collective meeting: how processes that are to be the ranks of one collective find each other and
 * exchange file descriptors. Internal.
 *
 * Rank 0 listens at a path, and the others come to it. Each brings a descriptor of its device's
 * memory and the end of a pipe that closes when it ends; rank 0 checks that all mean the same
 * collective, and hands everything to everybody, with a page that all share. Whoever does not fit
 * is refused with a sentence, and the place stays free for another.
 */
#ifndef KN_COLLECTIVE_MEETING_H
#define KN_COLLECTIVE_MEETING_H

#include "collective/collective.h"

/* To be raised with every change of the messages or of the shared page. */
enum { KN_MEETING_VERSION = 3, KN_MEETING_PAGE_BYTES = 65536 };
#define KN_MEETING_MAGIC 0x54434f4c4c454354u

/* What all ranks must agree on, or differ in, as each of them says it. */
struct kn_meeting_hello {
    uint64_t magic;
    uint32_t version, rank, ranks, way;
    uint64_t bytes, window_bytes;
    unsigned char device[16]; /* its UUID */
};

struct kn_meeting {
    const char *path;
    struct kn_meeting_hello own;
    uint64_t until_ns;
    int listener, page;
    int peers[KN_COLLECTIVE_RANKS_MAX]; /* of rank 0: the others'; of others: [0] is rank 0's */
    int windows[KN_COLLECTIVE_RANKS_MAX], lives[KN_COLLECTIVE_RANKS_MAX];
};

/* Brings `window` and `life`, which stay the caller's, and gets everybody's: windows, lives and
 * page of the meeting. End it in either case.
 * TOL_TIMEOUT: not all came; the message names who is missing. TOL_MISMATCH: this rank was refused,
 * and the message is rank 0's. TOL_INVALID_ARGUMENT, TOL_UNWRITABLE: the path cannot be used. */
tol_status kn_meeting_hold(struct kn_meeting *meeting, int window, int life);

/* All say whether they could use what they got, and hear whether everybody could. reason is used
 * where `ok` is false. TOL_POISONED: another rank could not, with its reason. */
tol_status kn_meeting_agree(struct kn_meeting *meeting, bool ok, const char *reason);

/* Closes all that the meeting still has: what a caller keeps, it sets to -1 there. */
void kn_meeting_end(struct kn_meeting *meeting);

#endif
