/*
 * threads: runs threads that share a context in its own process and without Criterion. H13 starts
 * it, and people do under a tool that watches a process:
 *
 *     tollens threads 4 1000       threads, launches of each
 *
 * Device, seed and saboteur come from the environment, as for attacks. Exit codes: 0 no violation,
 * 1 a violation, which stdout names, 2 it could not run.
 */
#include "run/command.h"
#include "attack/thread_stress.h"
#include "files/atomic_file.h"
#include "harness/sabotage.h"
#include "harness/session.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int hyp_command_threads(int count, char **words) {
    struct hyp_session session;
    struct hyp_thread_stress stress = {0};
    uint64_t threads = 0, launches = 0;
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    if (count != 2 || !hyp_session_number(words[0], HYP_THREAD_STRESS_THREADS_MAX, &threads) ||
        !hyp_session_number(words[1], 1 << 20, &launches) || threads == 0) {
        return hyp_command_complain(
            "threads requires a number of threads, 1 to %d, and a number of launches",
            HYP_THREAD_STRESS_THREADS_MAX);
    }
    if (!hyp_session_read(&session)) return hyp_command_complain("%s", hyp_error());
    if (hyp_session_open(&session.kind, &driver) != TOL_OK) {
        hyp_command_next("%s doctor", hyp_command_program());
        return hyp_command_complain("no device: %s", hyp_session_message());
    }
    hyp_sabotage_place(session.seed, "threads");
    if (session.sabotage != NULL && !hyp_sabotage_install(session.sabotage, driver)) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (tol_context_create(driver, session.ordinal, &context) != TOL_OK) {
        hyp_command_next("%s doctor", hyp_command_program());
        return hyp_command_complain("no device: %s", hyp_session_message());
    }
    const struct hyp_thread_stress_options options = {.threads = (unsigned)threads,
                                                      .launches = (unsigned)launches,
                                                      .pause = 4,
                                                      .seed = session.seed};
    bool ended = hyp_thread_stress_run(context, &options, &stress);
    json_t *troubles = json_array();
    for (unsigned i = 0; i < HYP_THREAD_STRESS_TROUBLES_MAX && stress.troubles[i][0] != '\0'; i++) {
        hyp_command_say("%s\n", stress.troubles[i]);
        json_array_append_new(troubles, hyp_record_text(stress.troubles[i]));
    }
    int code = !ended || stress.violations > 0 ? HYP_EXIT_FALSIFIED : HYP_EXIT_OK;
    json_t *document = json_pack("{s:I, s:I, s:b, s:I, s:o}", "threads", (json_int_t)threads,
                                 "launches", (json_int_t)launches, "ended", (int)ended,
                                 "violations", (json_int_t)stress.violations, "messages", troubles);
    if (hyp_command_is_json()) {
        code = hyp_command_answer("threads", document, code);
    } else {
        json_decref(document);
    }
    if (!ended) {
        fflush(stdout);
        _exit(HYP_EXIT_FALSIFIED); /* a thread still uses what would be taken down */
    }
    tol_context_destroy(context);
    tol_driver_close(driver);
    return code;
}
