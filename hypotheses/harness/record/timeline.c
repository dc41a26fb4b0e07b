/*
 * The list that attacks add to: an array of events, which is whole when the run has ended it.
 */
#include "timeline.h"

#include "harness/claim.h"
#include "files/atomic_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *begun; /* its absolute path */

/* Writes text in one go. false: hyp_error(). */
static bool timeline_put(const char *path, const char *mode, const char *text) {
    FILE *file = fopen(path, mode);
    bool ok = file != NULL && fputs(text, file) >= 0;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    return ok || hyp_fail("the trace %s cannot be written: %s", path, strerror(errno));
}

static bool set_number(const char *name, unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return setenv(name, text, 1) == 0;
}

bool hyp_timeline_begin(const char *path, unsigned every, unsigned share) {
    if (!timeline_put(path, "w", "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")) return false;
    begun = realpath(path, NULL);
    if (begun == NULL || setenv("TOLLENS_TRACE", begun, 1) != 0 ||
        !set_number("TOLLENS_TRACE_EVERY", every) || !set_number("TOLLENS_TRACE_SHARE", share)) {
        return hyp_fail("the path of the trace %s cannot be passed to the attacks: %s", path,
                        strerror(errno));
    }
    return true;
}

static bool get_number(const char *name, uint64_t most, unsigned *number) {
    const char *text = getenv(name);
    uint64_t value = 0;
    if (text != NULL && text[0] != '\0' && !hyp_session_number(text, most, &value)) {
        return hyp_fail("%s=%s: it must be a number up to %llu", name, text,
                        (unsigned long long)most);
    }
    *number = (unsigned)value;
    return true;
}

bool hyp_timeline_options(struct tol_trace_options *options) {
    *options = (struct tol_trace_options){0};
    return get_number("TOLLENS_TRACE_EVERY", HYP_TRACE_EVERY_MAX, &options->every) &&
           get_number("TOLLENS_TRACE_SHARE", TOL_TRACE_SHARE_MAX, &options->share);
}

bool hyp_timeline_end(void) {
    char last[128];
    if (begun == NULL) return true;
    /* After the last comma there must be an event. */
    snprintf(last, sizeof last,
             "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
             "\"args\":{\"name\":\"tollens run\"}}\n]}\n",
             (int)getpid());
    bool ok = timeline_put(begun, "a", last);
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
