/*
 * Who does not fit is refused with a sentence, and does not keep the others from meeting.
 */
#include "collective/collective_meeting.h"
#include "collective/ranks_scene.h"
#include "collective/collective_socket.h"
#include "core/monotonic.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

TestSuite(collective_refuse, .timeout = 120);

static struct kn_collective_seat seat_of(const struct ranks_child *child) {
    return (struct kn_collective_seat){.path = child->path,
                                       .rank = child->rank,
                                       .ranks = child->ranks,
                                       .bytes = RANKS_WINDOW,
                                       .deadline_ms = 60000};
}

static tol_status join(struct ranks_child *child, const struct kn_collective_seat *seat,
                       enum kn_collective_way way) {
    return kn_collective_join(child->context, seat, &(struct kn_collective_options){.way = way},
                              &child->collective);
}

/* Rank 1 tries everything that is wrong, while rank 0 waits for it, and then comes. */
static bool run_wrong_seats(struct ranks_child *child) {
    struct kn_collective_seat seat = seat_of(child), wrong = seat;
    if (child->rank == 0) {
        NEED(child, join(child, &seat, KN_WAY_DIRECT));
    } else {
        wrong.ranks = 3;
        NEED_FAIL(child, join(child, &wrong, KN_WAY_DIRECT), TOL_MISMATCH,
                  "has 2 ranks, and this rank was told 3");
        wrong = seat;
        wrong.bytes /= 2;
        NEED_FAIL(child, join(child, &wrong, KN_WAY_DIRECT), TOL_MISMATCH,
                  "has 1048576 bytes per rank, and rank 1 asked for 524288");
        NEED_FAIL(child, join(child, &seat, KN_WAY_RING), TOL_MISMATCH,
                  "goes the way direct, and rank 1 was told ring");
        /* A second rank 0 finds the path in use. */
        wrong = seat;
        wrong.rank = 0;
        NEED_FAIL(child, join(child, &wrong, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT, "is in use");
        NEED(child, join(child, &seat, KN_WAY_DIRECT));
    }
    const struct kn_collective_part part = ranks_part(child, false);
    NEED(child, kn_all_reduce(child->collective, &part, 100, KN_F32));
    NEED(child, kn_collective_wait(child->collective, 60000));
    return true;
}

Test(collective_refuse, seats_that_do_not_fit_are_refused) {
    ranks_end(ranks_run(2, run_wrong_seats, 2), 2);
}

/* Says hello as something else; *answer is the sentence. */
static bool say(struct ranks_child *child, const void *hello, size_t bytes, char answer[400]) {
    struct {
        uint32_t is_ok;
        char text[300];
    } got = {.is_ok = 1};
    int peer = -1;
    size_t size = 0;
    const uint64_t until_ns = tol_now_ns() + UINT64_C(30000000000);
    NEED(child, kn_socket_connect(child->path, until_ns, &peer));
    NEED_TRUE(child, kn_socket_send(peer, hello, bytes, NULL, 0));
    NEED(child, kn_socket_receive(peer, until_ns, &got, sizeof got, &size, NULL, 0));
    NEED_TRUE(child, size == sizeof got && got.is_ok == 0);
    snprintf(answer, 400, "%s", got.text);
    close(peer);
    return true;
}

/* Other versions, strangers, and one who says nothing come before rank 1 does. */
static bool run_strangers(struct ranks_child *child) {
    const struct kn_collective_seat seat = seat_of(child);
    struct kn_meeting_hello hello = {.magic = KN_MEETING_MAGIC,
                                     .version = KN_MEETING_VERSION + 1,
                                     .rank = 1,
                                     .ranks = 2,
                                     .bytes = RANKS_WINDOW};
    char answer[400];
    int silent = -1;
    if (child->rank == 1) {
        if (!say(child, &hello, sizeof hello, answer)) return false;
        NEED_TRUE(child, strstr(answer, "is of version 3, and this rank of version 4") != NULL);
        /* A later version may say more. */
        if (!say(child, &hello, sizeof hello - 8, answer)) return false;
        NEED_TRUE(child, strstr(answer, "of version 4") != NULL);
        if (!say(child, "GET / HTTP/1.1", 14, answer)) return false;
        NEED_TRUE(child, strstr(answer, "is no rank of a collective") != NULL);
        if (!say(child, "?", 1, answer)) return false;
        NEED_TRUE(child, strstr(answer, "is no rank of a collective") != NULL);
        NEED(child, kn_socket_connect(child->path, tol_now_ns() + UINT64_C(30000000000), &silent));
        close(silent);
    }
    NEED(child, join(child, &seat, KN_WAY_DIRECT));
    return true;
}

Test(collective_refuse, strangers_and_other_versions_are_refused) {
    ranks_end(ranks_run(2, run_strangers, 2), 2);
}

/* Ranks 1 and 2 say that they are 1; the one that is refused comes again as 2. */
static bool run_twins(struct ranks_child *child) {
    struct kn_collective_seat seat = seat_of(child);
    if (child->rank == 2) seat.rank = 1;
    tol_status status = join(child, &seat, KN_WAY_DIRECT);
    if (child->rank > 0 && status == TOL_MISMATCH) {
        NEED_TRUE(child, strstr(tol_message(), "rank 1 of the collective at") != NULL &&
                             strstr(tol_message(), "is there already") != NULL);
        child->all[0].data[0] = 1;
        seat.rank = 2;
        status = join(child, &seat, KN_WAY_DIRECT);
    }
    NEED(child, status);
    return true;
}

Test(collective_refuse, a_rank_that_is_there_already_is_refused) {
    struct ranks_shared *shared = ranks_run(3, run_twins, 3);
    cr_assert_eq(shared[0].data[0], 1);
    ranks_end(shared, 3);
}

/* Both processes use device 0. */
static bool run_one_device(struct ranks_child *child) {
    const struct kn_collective_seat seat = seat_of(child);
    struct tol_context *own = child->context, *first = NULL;
    if (child->rank == 0) {
        NEED(child, join(child, &seat, KN_WAY_DIRECT));
        return true;
    }
    NEED(child, tol_context_create(tol_context_driver(own), 0, &first));
    child->context = first;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_MISMATCH,
              "ranks 0 and 1 of the collective at");
    NEED_TRUE(child, strstr(tol_message(), "are one device") != NULL);
    child->context = own;
    tol_context_destroy(first);
    NEED(child, join(child, &seat, KN_WAY_DIRECT));
    return true;
}

Test(collective_refuse, one_device_is_one_rank) {
    ranks_end(ranks_run(2, run_one_device, 2), 2);
}

/* Rank 2 never comes. The socket of a process that is gone is no hindrance. */
static bool run_missing(struct ranks_child *child) {
    struct kn_collective_seat seat = seat_of(child);
    const uint64_t begin_ns = tol_now_ns();
    seat.deadline_ms = 300;
    if (child->rank == 2) return true;
    if (child->rank == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const int stale = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        snprintf(address.sun_path, sizeof address.sun_path, "%s", child->path);
        NEED_TRUE(child, bind(stale, (struct sockaddr *)&address, sizeof address) == 0);
        close(stale);
        NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_TIMEOUT,
                  "of the 3 ranks of the collective at");
        NEED_TRUE(child, strstr(tol_message(), "2") != NULL);
    } else {
        const tol_status status = join(child, &seat, KN_WAY_DIRECT);
        NEED_TRUE(child, status == TOL_TIMEOUT || status == TOL_POISONED);
    }
    NEED_TRUE(child, child->collective == NULL);
    NEED_TRUE(child, tol_now_ns() - begin_ns < UINT64_C(30000000000));
    return true;
}

Test(collective_refuse, who_does_not_come_is_named) {
    ranks_end(ranks_run(3, run_missing, 3), 3);
}

static bool run_nonsense(struct ranks_child *child) {
    const struct kn_collective_seat good = seat_of(child);
    struct kn_collective_seat seat = good;
    char path[200];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    NEED_FAIL(child, kn_collective_join(child->context, NULL, NULL, &child->collective),
              TOL_INVALID_ARGUMENT, "NULL");
    seat.path = path;
    seat.rank = 0;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT,
              "the path of a socket has 1 to 107 bytes");
    seat.path = "/nowhere/at/all";
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_UNWRITABLE, "/nowhere/at/all");
    seat = good;
    seat.rank = 2;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT, "no rank is 2 of 2");
    seat = good;
    seat.bytes = 0;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT, "share no memory");
    seat.bytes = SIZE_MAX;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_OUT_OF_RANGE, "no size");
    seat = good;
    seat.ranks = 1;
    NEED_FAIL(child, join(child, &seat, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT, "1 ranks");
    /* A file that is no socket stays. */
    if (child->rank == 0) {
        FILE *file = fopen(child->path, "w");
        NEED_TRUE(child, file != NULL && fclose(file) == 0);
        NEED_FAIL(child, join(child, &good, KN_WAY_DIRECT), TOL_INVALID_ARGUMENT, "is in use");
        NEED_TRUE(child, unlink(child->path) == 0);
    }
    return true;
}

Test(collective_refuse, what_makes_no_sense_is_refused) {
    ranks_end(ranks_run(2, run_nonsense, 2), 2);
}

/* Nothing comes in time, and nothing ever will. */
Test(collective_refuse, what_does_not_come_has_no_bytes) {
    int ends[2], files[2] = {7, 7};
    char message[8];
    size_t got = 77;
    cr_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    cr_assert_eq(kn_socket_receive(ends[0], tol_now_ns(), message, sizeof message, &got, files, 2),
                 TOL_TIMEOUT);
    cr_assert(got == 0 && files[0] == -1 && files[1] == -1);
    got = 77;
    close(ends[1]);
    cr_assert_eq(kn_socket_receive(ends[0], tol_now_ns() + 1000000000, message, sizeof message,
                                   &got, files, 2),
                 TOL_OK);
    cr_assert_eq(got, 0);
    close(ends[0]);
}

/* A process may have closed its input, whose number is then the first that is free. */
Test(collective_refuse, a_socket_may_be_file_0) {
    char path[64];
    int listener = -1, peer = -1;
    const uint64_t until_ns = tol_now_ns() + 3000000000;
    snprintf(path, sizeof path, "/tmp/tollens_file_0_%d", (int)getpid());
    cr_assert_eq(kn_socket_listen(path, &listener), TOL_OK, "%s", tol_message());
    close(0);
    cr_assert_eq(kn_socket_connect(path, until_ns, &peer), TOL_OK, "%s", tol_message());
    cr_assert_eq(peer, 0);
    close(peer);
    close(listener);
    unlink(path);
}
