/*
 * A trace as JSON: a complete event ("ph":"X") for each call, in its thread's row, and for each
 * piece of device work, in its stream's. Times are microseconds: of a whole
 * file since the trace began, of a part on the host's clock.
 */
#include "core/c_locale.h"
#include "core/check.h"
#include "trace_state.h"

#include <string.h>
#include <unistd.h>

enum { STREAM_ROWS = 1000, STREAMS_MAX = 256 };

struct writer {
    FILE *file;
    bool is_part, is_first;
    long process;
    CUstream streams[STREAMS_MAX];
    unsigned stream_count;
};

/* Before each event: the separator. */
static void trace_write_next(struct writer *w) {
    if (!w->is_part && !w->is_first) fputs(",\n", w->file);
    w->is_first = false;
}

static void trace_write_end(struct writer *w) {
    if (w->is_part) fputs(",\n", w->file);
}

/* Names are identifiers; any other text is cut where JSON would need an escape. */
static void put_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fputc('\\', file);
        if (c >= ' ') fputc(c, file);
    }
}

static void name_row(struct writer *w, const char *what, unsigned row, const char *text,
                     unsigned number) {
    trace_write_next(w);
    fprintf(w->file, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%ld,\"tid\":%u,\"args\":{\"name\":\"",
            what, w->process, row);
    put_text(w->file, text);
    if (number > 0) fprintf(w->file, " %u", number);
    fputs("\"}}", w->file);
    trace_write_end(w);
}

static unsigned trace_write_row_of(struct writer *w, CUstream stream) {
    for (unsigned i = 0; i < w->stream_count; i++) {
        if (w->streams[i] == stream) return STREAM_ROWS + i;
    }
    if (w->stream_count == STREAMS_MAX) return STREAM_ROWS + STREAMS_MAX;
    w->streams[w->stream_count] = stream;
    name_row(w, "thread_name", STREAM_ROWS + w->stream_count, "stream", w->stream_count + 1);
    return STREAM_ROWS + w->stream_count++;
}

/* Parts keep the host's clock, so that processes keep their order in time. */
static double us_of(const struct writer *w, double ns) {
    return (w->is_part ? ns : ns - (double)tol_trace.begin_ns) * 1e-3;
}

static void put_call(struct writer *w, const struct tol_trace_call *call) {
    trace_write_next(w);
    fprintf(w->file,
            "{\"name\":\"%s\",\"cat\":\"driver\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"pid\":%ld,\"tid\":%u,\"args\":{\"result\":%d}}",
            tol_driver_function_name(call->index), us_of(w, (double)call->begin_ns),
            (double)(call->end_ns - call->begin_ns) * 1e-3, w->process, call->thread,
            (int)call->result);
    trace_write_end(w);
}

static void put_operation(struct writer *w, const struct tol_trace_operation *operation) {
    static const char *const kinds[] = {"kernel", "copy", "fill", "graph", "event"};
    static const char *const begins[] = {"event", "previous end", "call", "shared"};
    const struct tol_trace_operation *head = operation->head;
    unsigned row = trace_write_row_of(w, operation->stream);
    trace_write_next(w);
    fputs("{\"name\":\"", w->file);
    put_text(w->file, tol_trace_name_of(operation));
    double ns = operation->end_ns - operation->begin_ns;
    fprintf(w->file,
            "\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%ld,\"tid\":%u,"
            "\"args\":{\"bytes\":%zu,\"begin\":\"%s\",\"end\":\"%s\"",
            kinds[operation->kind], us_of(w, operation->begin_ns), ns > 0 ? ns * 1e-3 : 0,
            w->process, row, operation->bytes, begins[operation->begin_from],
            head->sharers > 1 ? "shared" : "event");
    if (head->sharers > 1) fprintf(w->file, ",\"shared_by\":%u", head->sharers);
    fprintf(w->file, "%s}}", head->is_late ? ",\"late\":true" : "");
    trace_write_end(w);
}

static void put_mark(const struct tol_trace_moment *moment, void *user) {
    struct writer *w = user;
    trace_write_next(w);
    fputs("{\"name\":\"", w->file);
    put_text(w->file, moment->name);
    fprintf(w->file,
            "\",\"cat\":\"mark\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%.3f,\"pid\":%ld,\"tid\":%u,"
            "\"args\":%s}",
            us_of(w, (double)moment->at_ns), w->process, moment->thread, moment->arguments);
    trace_write_end(w);
}

static size_t trace_write_least(size_t a, size_t b) {
    return a < b ? a : b;
}

static void trace_write_put_all(struct writer *w, const char *process) {
    struct tol_trace_stats stats;
    tol_trace_stats(&stats);
    name_row(w, "process_name", 0, process, 0);
    for (unsigned i = 1; i <= atomic_load(&tol_trace.threads); i++) {
        name_row(w, "thread_name", i, "thread", i);
    }
    for (size_t i = 0; i < stats.calls; i++) {
        if (atomic_load(&tol_trace.calls[i].is_whole)) put_call(w, &tol_trace.calls[i]);
    }
    for (unsigned c = 0; c < atomic_load(&tol_trace.context_count); c++) {
        const struct tol_trace_context *context = &tol_trace.contexts[c];
        size_t noted = trace_write_least(atomic_load(&context->noted), context->usable);
        for (size_t i = 0; i < noted; i++) {
            if (context->operations[i].is_collected) put_operation(w, &context->operations[i]);
        }
    }
    const size_t lost_marks = tol_trace_each_mark(put_mark, w);
    if (!stats.overflowed && lost_marks == 0) return;
    trace_write_next(w);
    fprintf(w->file,
            "{\"name\":\"the trace overflowed\",\"ph\":\"i\",\"s\":\"g\",\"ts\":0,\"pid\":%ld,"
            "\"tid\":0,\"args\":{\"lost_calls\":%zu,\"lost_operations\":%zu,\"lost_marks\":%zu}}",
            w->process, stats.lost_calls, stats.lost_operations, lost_marks);
    trace_write_end(w);
}

void tol_trace_stats(struct tol_trace_stats *stats) {
    *stats = (struct tol_trace_stats){0};
    if (!tol_trace.is_on) return;
    size_t noted = atomic_load(&tol_trace.noted);
    stats->calls = trace_write_least(noted, tol_trace.options.calls_max);
    stats->lost_calls = noted - stats->calls;
    for (unsigned i = 0; i < atomic_load(&tol_trace.context_count); i++) {
        const struct tol_trace_context *context = &tol_trace.contexts[i];
        noted = atomic_load(&context->noted);
        size_t kept = trace_write_least(noted, context->usable);
        stats->operations += kept;
        stats->lost_operations += noted - kept;
    }
    stats->overflowed = stats->lost_calls > 0 || stats->lost_operations > 0;
}

tol_status tol_trace_write(FILE *file, const char *process, bool is_part) {
    tol_status status = TOL_OK;
    struct tol_trace_stats stats;
    struct writer w = {.file = file, .is_part = is_part, .is_first = true, .process = getpid()};
    TOL_CHECK(file != NULL && process != NULL, TOL_INVALID_ARGUMENT,
              "tol_trace_write: an argument is NULL");
    TOL_CHECK(tol_trace.is_on, TOL_INVALID_ARGUMENT, "no trace is installed");
    tol_trace_collect();
    const locale_t before = tol_c_locale_begin();
    pthread_mutex_lock(&tol_trace.lock); /* a context may be closed meanwhile, and collected */
    tol_trace_stats(&stats);
    if (!is_part) {
        fprintf(file,
                "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"overflowed\":%s,\"lost_calls\":%zu,"
                "\"lost_operations\":%zu},\"traceEvents\":[\n",
                stats.overflowed ? "true" : "false", stats.lost_calls, stats.lost_operations);
    }
    trace_write_put_all(&w, process);
    if (!is_part) fputs("\n]}\n", file);
    pthread_mutex_unlock(&tol_trace.lock);
    tol_c_locale_end(before);
    TOL_CHECK(fflush(file) == 0 && ferror(file) == 0, TOL_INVALID_ARGUMENT,
              "the trace cannot be written to its file");
out:
    return status;
}
