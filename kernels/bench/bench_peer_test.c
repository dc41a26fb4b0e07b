/*
 * A peer that answers, cannot, ends, hangs, or talks nonsense: small programs of the shell.
 */
#include "bench/bench_peer.h"

#include "core/monotonic.h"
#include "test/test_device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* It answers "batch N" with N and a half, and says on stderr what it was asked to prepare. */
#define GOOD                                                                                       \
    "while read -r word rest; do case $word in "                                                   \
    "prepare) case $rest in row*) echo \"cannot rows\";; *) echo \"ready $rest\";; esac;; "        \
    "batch) echo \"$rest.5\";; "                                                                   \
    "check) echo right;; "                                                                         \
    "quit) exit 0;; esac; done"

/* When it gets "batch", it does this instead. */
#define THEN(what)                                                                                 \
    "while read -r word rest; do case $word in prepare) echo ready one;; batch) " what             \
    ";; check) echo wrong by 2;; esac; done"

static struct kn_peer *started(const char *command, unsigned limit_ms) {
    struct kn_peer *peer = NULL;
    MUST(kn_peer_open(command, limit_ms, &peer));
    return peer;
}

static void must_say(const struct kn_peer *peer, const char *text) {
    cr_assert(strstr(kn_peer_reason(peer), text) != NULL, "\"%s\" is not in: %s", text,
              kn_peer_reason(peer));
}

/* The peer stays gone, with the reason that it had. */
static void must_be_gone(struct kn_peer *peer, const char *text) {
    double us = 0;
    must_say(peer, text);
    cr_assert(!kn_peer_prepare(peer, "another"));
    cr_assert(!kn_peer_batch(peer, 1, &us));
    cr_assert(!kn_peer_check(peer));
    must_say(peer, text);
    kn_peer_close(peer);
}

Test(bench_peer, it_says_what_it_times_how_long_that_takes_and_whether_it_is_right) {
    struct kn_peer *peer = started(GOOD, 20000);
    double us = 0;
    cr_assert(kn_peer_prepare(peer, "attention bf16"));
    cr_assert_str_eq(kn_peer_name(peer), "attention bf16");
    cr_assert(kn_peer_batch(peer, 20, &us));
    cr_assert_eq(us, 20.5);
    cr_assert(kn_peer_batch(peer, 3, &us));
    cr_assert_eq(us, 3.5);
    cr_assert(kn_peer_check(peer));
    kn_peer_close(peer);
}

Test(bench_peer, what_it_cannot_time_does_not_end_it) {
    struct kn_peer *peer = started(GOOD, 20000);
    double us = 0;
    cr_assert(!kn_peer_prepare(peer, "row softmax"));
    must_say(peer, "the peer cannot: rows");
    cr_assert(kn_peer_prepare(peer, "attention"));
    cr_assert(kn_peer_batch(peer, 1, &us));
    kn_peer_close(peer);
}

/* The second answer would be another. */
Test(bench_peer, a_problem_that_is_ready_is_not_prepared_again) {
    struct kn_peer *peer =
        started("i=0; while read -r word rest; do i=$((i + 1)); echo ready $i; done", 20000);
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert_str_eq(kn_peer_name(peer), "1");
    cr_assert(kn_peer_prepare(peer, "two"));
    cr_assert_str_eq(kn_peer_name(peer), "2");
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert_str_eq(kn_peer_name(peer), "3");
    kn_peer_close(peer);
}

Test(bench_peer, wrong_results_are_said_and_the_problem_is_ready_no_more) {
    struct kn_peer *peer = started(THEN("echo 1"), 20000);
    double us = 0;
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(kn_peer_batch(peer, 1, &us));
    cr_assert(!kn_peer_check(peer));
    must_say(peer, "the peer's results are wrong: by 2");
    cr_assert(kn_peer_prepare(peer, "one"));
    kn_peer_close(peer);
}

Test(bench_peer, one_that_ends_is_told_with_its_exit_code_or_signal) {
    double us = 0;
    struct kn_peer *peer = started(THEN("exit 3"), 20000);
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(!kn_peer_batch(peer, 7, &us));
    must_be_gone(peer, "the peer ended with exit code 3 where \"batch 7\" was asked");
    peer = started(THEN("kill -ABRT $$"), 20000);
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(!kn_peer_batch(peer, 7, &us));
    must_be_gone(peer, "the peer was ended by signal 6 where");
    peer = started("/nowhere/at/all 2>/dev/null", 20000);
    cr_assert(!kn_peer_prepare(peer, "one"));
    must_be_gone(peer, "the peer ended with exit code 127 where \"prepare one\" was asked");
}

Test(bench_peer, one_that_hangs_is_ended_with_what_it_started) {
    double us = 0;
    char name[] = "/tmp/bench_peer.XXXXXX", command[400];
    const int file = mkstemp(name);
    cr_assert(file >= 0);
    snprintf(command, sizeof command, THEN("trap '' TERM; sleep 600 & echo $! >%s; wait"), name);
    struct kn_peer *peer = started(command, 300);
    const uint64_t begin_ns = tol_now_ns();
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(!kn_peer_batch(peer, 1, &us));
    must_say(peer, "the peer gave no answer to \"batch 1\" in 0.3 s");
    cr_assert(tol_now_ns() - begin_ns < 60000000000u);
    char path[64], line[200] = "";
    cr_assert(read(file, line, sizeof line - 1) > 0);
    close(file), unlink(name);
    const pid_t child = (pid_t)strtol(line, NULL, 10);
    cr_assert(child > 1, "%s", line);
    /* It was killed; somebody reaps it soon. */
    for (int i = 0; i < 2000 && kill(child, 0) == 0; i++) usleep(1000);
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE *text = fopen(path, "r");
    const bool is_listed = text != NULL && fgets(line, sizeof line, text) != NULL;
    if (text != NULL) fclose(text);
    const char *state = is_listed ? strstr(line, ") ") : NULL;
    cr_assert(state == NULL || state[2] == 'Z', "process %d goes on", child);
    must_be_gone(peer, "the peer gave no answer");
}

Test(bench_peer, nonsense_ends_it) {
    static const char *const answers[] = {"soon", "-1", "0", "nan", "inf", "12.5 us", "", "1e999"};
    double us = 4;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        char command[200], text[100];
        snprintf(command, sizeof command, THEN("echo '%s'"), answers[i]);
        snprintf(text, sizeof text, "the peer answered \"%s\" to \"batch 1\"", answers[i]);
        struct kn_peer *peer = started(command, 20000);
        cr_assert(kn_peer_prepare(peer, "one"));
        cr_assert(!kn_peer_batch(peer, 1, &us));
        must_be_gone(peer, text);
    }
    cr_assert_eq(us, 4);
    struct kn_peer *peer = started("while read -r line; do echo hello; done", 20000);
    cr_assert(!kn_peer_prepare(peer, "one"));
    must_be_gone(peer, "the peer answered \"hello\" to \"prepare one\"");
    peer = started("head -c 5000 /dev/zero | tr '\\0' x; sleep 600", 20000);
    cr_assert(!kn_peer_prepare(peer, "one"));
    must_be_gone(peer, "the peer answered \"xxxxxxxx");
}

/* Otherwise the answer to one line would be taken for that to the next. */
Test(bench_peer, an_answer_that_nobody_asked_for_ends_it) {
    double us = 0;
    struct kn_peer *peer = started(
        "read -r line; printf 'ready one\\n5\\n'; while read -r line; do echo 6; done", 20000);
    cr_assert(kn_peer_prepare(peer, "one"));
    cr_assert(!kn_peer_batch(peer, 1, &us));
    must_be_gone(peer, "the peer answered \"5\" to \"nothing\"");
}

Test(bench_peer, one_that_does_not_quit_is_ended_when_it_is_closed) {
    struct kn_peer *peer = started("trap '' TERM; echo ready; while :; do sleep 600; done", 20000);
    const uint64_t begin_ns = tol_now_ns();
    kn_peer_close(peer);
    cr_assert(tol_now_ns() - begin_ns < 60000000000u);
    kn_peer_close(NULL);
}
