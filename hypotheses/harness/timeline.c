/*
 * The list that attacks add to: an array of events, which is whole when the run has ended it.
 */
#include "timeline.h"

#include "claim.h"
#include "folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *begun; /* its absolute path */

/* Writes text in one go. false: hyp_error(). */
static bool put(const char *path, const char *mode, const char *text) {
    FILE *file = fopen(path, mode);
    bool ok = file != NULL && fputs(text, file) >= 0;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    return ok || hyp_fail("the trace %s cannot be written: %s", path, strerror(errno));
}

bool hyp_timeline_begin(const char *path) {
    if (!put(path, "w", "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")) return false;
    begun = realpath(path, NULL);
    if (begun == NULL || setenv("TOLLENS_TRACE", begun, 1) != 0) {
        return hyp_fail("the trace %s cannot be found again: %s", path, strerror(errno));
    }
    return true;
}

bool hyp_timeline_end(void) {
    char last[128];
    if (begun == NULL) return true;
    /* Behind the last comma there must be an event. */
    snprintf(last, sizeof last,
             "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
             "\"args\":{\"name\":\"tollens run\"}}\n]}\n",
             (int)getpid());
    bool ok = put(begun, "a", last);
    free(begun);
    begun = NULL;
    return ok;
}

bool hyp_timeline_wants(const struct hyp_session *session, const char *suite) {
    const struct hyp_claim *claim = hyp_claim_of_suite(suite);
    bool is_timed = claim != NULL && claim->words != NULL && claim->words->is_timed;
    return session->trace != NULL && session->sabotage == NULL && !is_timed;
}

bool hyp_timeline_add(const struct hyp_session *session, const char *name) {
    FILE *file = fopen(session->trace, "a");
    bool ok = file != NULL && tol_trace_write(file, name, true) == TOL_OK;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    return ok || hyp_fail("the trace %s cannot be written: %s", session->trace, strerror(errno));
}
