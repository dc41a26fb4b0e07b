/*
 * crowd: threads that share a context, in a process of its own and without Criterion, for H13 and
 * for tools that watch a process. Started by attacks, and by people with such a tool:
 *
 *     tollens crowd 4 1000       threads, launches of each
 *
 * Device, seed and saboteur come from the environment, as for attacks. Exit codes: 0 nothing was
 * found, 1 something was, and stdout says what, 2 it could not run.
 */
#include "command.h"
#include "attack/thread_stress.h"
#include "files/atomic_file.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int hyp_command_crowd(int count, char **words) {
    struct hyp_session session;
    struct hyp_crowd crowd = {0};
    uint64_t threads = 0, launches = 0;
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    if (count != 2 || !hyp_session_number(words[0], HYP_CROWD_THREADS_MAX, &threads) ||
        !hyp_session_number(words[1], 1 << 20, &launches) || threads == 0) {
        return hyp_command_complain(
            "crowd requires a number of threads, 1 to %d, and a number of launches",
            HYP_CROWD_THREADS_MAX);
    }
    if (!hyp_session_read(&session)) return hyp_command_complain("%s", hyp_error());
    if (hyp_session_open(&session.kind, &driver) != TOL_OK) {
        return hyp_command_complain("no device: %s", hyp_session_message());
    }
    if (session.sabotage != NULL && !hyp_sabotage_install(session.sabotage, driver)) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (tol_context_create(driver, session.ordinal, &context) != TOL_OK) {
        return hyp_command_complain("no device: %s", hyp_session_message());
    }
    const struct hyp_crowd_options options = {.threads = (unsigned)threads,
                                              .launches = (unsigned)launches,
                                              .pause = 4,
                                              .seed = session.seed};
    bool ended = hyp_crowd_run(context, &options, &crowd);
    for (unsigned i = 0; i < HYP_CROWD_TROUBLES_MAX && crowd.troubles[i][0] != '\0'; i++) {
        printf("%s\n", crowd.troubles[i]);
    }
    if (!ended) {
        fflush(stdout);
        _exit(HYP_EXIT_FALSIFIED); /* a thread still uses what would be taken down */
    }
    tol_context_destroy(context);
    tol_driver_close(driver);
    return crowd.violations > 0 ? HYP_EXIT_FALSIFIED : HYP_EXIT_OK;
}
