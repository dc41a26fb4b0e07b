/*
 * H13: threads can share a context.
 *
 * `tollens explain H13` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "attack/thread_stress.h"
#include "files/atomic_file.h"
#include "record/record.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

HYP_WORDS(
    13,
    .claim = "Threads can share a context, each with its own stream, and use everything the "
             "runtime offers at the same time.",
    .prediction = "0 violations: 2, 4, 8 and 16 threads with 1000 launches each lose no launch, "
                  "run none twice and touch nothing of each other's.",
    .falsified_if = "a slot or the total differs from the sum of its launches, a call fails, a "
                    "kernel has two handles, a thread waits for another thread's work or does not "
                    "end, or the soft device reports a race.",
    .method = "Each launch adds a number to its own slot, and each of its threads adds one to a "
              "total. Meanwhile all threads create and destroy modules, kernels, events, batches "
              "and blocks of one pool. The same runs in separate processes on the soft device, "
              "under its race checker, each with another order of blocks and warps: 100 of them "
              "in full mode. Sixteen threads also make 20,000 launches in all and hardly anything "
              "else (in full mode 320,000, and 100,000 on the soft device).",
    .control = "The words between the slots stay 0. A block keeps its thread's words until it is "
               "freed. A host function must really block its stream while the other threads "
               "proceed.",
    .confounders = "Threads interleave differently from run to run, so a survived verdict covers "
                   "these runs only. On a GPU the driver's own locks order much of the work; "
                   "ninja test-tsan looks for data races in the runtime itself. A driver has "
                   "fewer queues to a GPU than there are streams: work that is queued after a "
                   "blocking host function can hold up other streams, even with direct driver "
                   "calls, so nothing is queued after it while the others proceed.")

static void threads_report(struct hyp_attack *attack, const struct hyp_thread_stress *stress,
                           unsigned threads) {
    attack->record->samples += stress->checks - stress->violations;
    for (uint64_t i = 0; i < stress->violations; i++) {
        const char *text = i < HYP_THREAD_STRESS_TROUBLES_MAX ? stress->troubles[i] : "";
        if (text[0] == '\0') text = "another violation, whose message was not kept";
        HYP_CHECK(attack, false, "%u threads: %s", threads, text);
    }
}

/* false: a thread hangs and still uses the context, so the attack cannot continue. */
static bool attack_with(struct hyp_attack *attack, unsigned threads, unsigned launches,
                        bool (*run)(struct tol_context *context,
                                    const struct hyp_thread_stress_options *options,
                                    struct hyp_thread_stress *stress)) {
    struct hyp_thread_stress stress = {0};
    const struct hyp_thread_stress_options options = {
        .threads = threads, .launches = launches, .seed = hyp_random(attack)};
    bool ended = run(attack->context, &options, &stress);
    threads_report(attack, &stress, threads);
    return ended;
}

static const unsigned thread_counts[] = {2, 4, 8, 16};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

HYP_ATTACK(h13, threads_lose_nothing) {
    bool is_quick = !attack->session.full && attack->kind == HYP_DEVICE_SOFT;
    for (unsigned i = 0; i < THREAD_COUNTS; i++) {
        unsigned launches = !is_quick ? 1000 : 400 / thread_counts[i];
        if (!attack_with(attack, thread_counts[i], launches, hyp_thread_stress_run)) return;
        hyp_attack_progress(attack, (i + 1) / (double)THREAD_COUNTS);
    }
}

/* Almost only launches, so that there are enough to show rare errors. */
HYP_ATTACK(h13, many_launches_of_threads_are_each_made_once) {
    enum { LAUNCHERS = 16 };
    const bool is_soft = attack->kind == HYP_DEVICE_SOFT;
    /* These launches would fill the trace. */
    const bool is_traced = attack->session.trace != NULL;
    const unsigned launches = is_traced               ? 10 * LAUNCHERS
                              : !attack->session.full ? 20000
                              : is_soft               ? 100000
                                                      : 320000;
    struct hyp_thread_stress stress = {0};
    const struct hyp_thread_stress_options options = {.threads = LAUNCHERS,
                                                      .launches = launches / LAUNCHERS,
                                                      .pause = 512,
                                                      .singly = true,
                                                      .seed = hyp_random(attack)};
    (void)hyp_thread_stress_run(attack->context, &options, &stress);
    threads_report(attack, &stress, LAUNCHERS);
}

HYP_ATTACK(h13, a_kernel_has_one_handle) {
    const unsigned rounds = attack->session.full ? 50 : 10;
    for (unsigned i = 0; i < THREAD_COUNTS * rounds; i++) {
        const unsigned threads = thread_counts[i % THREAD_COUNTS];
        if (!attack_with(attack, threads, 1, hyp_thread_stress_look_up)) return;
        hyp_attack_progress(attack, (i + 1.0) / (THREAD_COUNTS * rounds));
    }
}

HYP_ATTACK_WITH(h13, no_thread_waits_for_anothers_work, .many_queues = true) {
    for (unsigned i = 0; i < THREAD_COUNTS; i++) {
        if (!attack_with(attack, thread_counts[i], 4, hyp_thread_stress_pass_by)) return;
        if (attack->record->violations > 0) return; /* each further run would wait as long */
    }
}

/* ---- processes, each with another order of blocks and warps ---------------------------------- */

/* The soft device's first report of a process that is more than a note; "" if there is none. */
static void first_finding(const char *path, char *finding, size_t bytes) {
    size_t length = 0;
    char *text = hyp_file_read(path, 1 << 20, &length);
    finding[0] = '\0';
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        if (finding[0] == '\0' && strstr(line, "\"severity\": \"note\"") == NULL &&
            strstr(line, "\"severity\":\"note\"") == NULL) {
            snprintf(finding, bytes, "%s", line);
        }
        line = end != NULL ? end + 1 : NULL;
    }
    free(text);
}

/* Runs the program again as `tollens threads` and keeps its output. Returns its wait status, or
 * -1. */
static int threads_run_threads(unsigned threads, unsigned launches, char *said, size_t bytes) {
    extern char **environ;
    char number[2][16];
    int ends[2], status = -1;
    pid_t child = 0;
    posix_spawn_file_actions_t actions;
    snprintf(number[0], sizeof number[0], "%u", threads);
    snprintf(number[1], sizeof number[1], "%u", launches);
    char program[] = "tollens", command[] = "threads";
    char *const words[] = {program, command, number[0], number[1], NULL};
    said[0] = '\0';
    if (pipe(ends) != 0) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int error = posix_spawn(&child, hyp_session_program(), &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t used = 0;
    while (error == 0) {
        ssize_t got = read(ends[0], said + used, bytes - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    said[used] = '\0';
    close(ends[0]);
    while (error == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

HYP_ATTACK(h13, no_order_of_blocks_and_warps_races) {
    const bool is_soft = attack->kind == HYP_DEVICE_SOFT;
    const unsigned runs = attack->session.sabotage != NULL || !is_soft ? 2
                          : attack->session.full                       ? 100
                                                                       : 12;
    char report_path[1200], said[2048], finding[600], seed[32];
    const char *folder = attack->session.out != NULL ? attack->session.out : "/tmp";
    snprintf(report_path, sizeof report_path, "%s/h13-%d.report", folder, (int)getpid());
    unsetenv("BXFI_MAP"); /* the child is not a worker of Criterion */
    setenv("TOLLENS_DEVICE", is_soft ? "soft" : "cuda", 1);
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race,stream", 1);
    setenv("TOLLENS_SOFT_REPORT", report_path, 1);
    for (unsigned run = 0; run < runs; run++) {
        unsigned long long drawn = hyp_random(attack) % 1000000 + 1;
        snprintf(seed, sizeof seed, "%llu", drawn);
        setenv("TOLLENS_SOFT_SEED", seed, 1);
        setenv("TOLLENS_SEED", seed, 1);
        unlink(report_path);
        int status = threads_run_threads(4, is_soft ? 24 : 1000, said, sizeof said);
        first_finding(report_path, finding, sizeof finding);
        HYP_CHECK(attack, status == 0 && finding[0] == '\0', "seed %s: %s%d: %.300s %.500s", seed,
                  status >= 0 && WIFSIGNALED(status) ? "ended by signal " : "exit code ",
                  status < 0            ? -1
                  : WIFSIGNALED(status) ? WTERMSIG(status)
                                        : WEXITSTATUS(status),
                  said, finding);
        hyp_attack_progress(attack, (run + 1.0) / runs);
    }
    unlink(report_path);
    if (is_soft) {
        hyp_attack_note(attack,
                        "%u orders of blocks and warps, each in its own process under the race "
                        "checker",
                        runs);
    }
}
