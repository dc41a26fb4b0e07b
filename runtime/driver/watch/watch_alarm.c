/*
 * An alarm: counted, the first one kept as a sentence, written as a line of JSON and as an event of
 * the trace, shown to a tool that listens for NVTX ranges, and passed to the callback.
 */
#include "core/c_locale.h"
#include "core/nvtx.h"
#include "tollens/trace.h"
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const kind_words[] = {"written_once",  "no_read_back", "copy_out_limit",
                                         "known_modules", "usual",        "no_copy",
                                         "no_share",      "known_kernels"};

/* A string of JSON. Labels and names may have any bytes but quotes and backslashes in names. */
static void watch_alarm_write_text(FILE *file, const char *key, const char *text) {
    fprintf(file, "\"%s\": \"", key);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') fputc('\\', file);
        if (*at < 0x20)
            fprintf(file, "\\u%04x", *at);
        else
            fputc(*at, file);
    }
    fputs("\", ", file);
}

static void watch_alarm_write_line(FILE *file, const struct tol_watch_alarm *alarm) {
    fputc('{', file);
    watch_alarm_write_text(file, "rule", alarm->rule);
    watch_alarm_write_text(file, "kind", kind_words[alarm->kind]);
    watch_alarm_write_text(file, "block", alarm->label);
    watch_alarm_write_text(file, "call", alarm->call);
    watch_alarm_write_text(file, "kernel", alarm->kernel);
    fprintf(file, "\"address\": %llu, \"bytes\": %llu, \"stream\": %llu, \"thread\": %llu, ",
            (unsigned long long)alarm->address, (unsigned long long)alarm->bytes,
            (unsigned long long)alarm->stream, (unsigned long long)alarm->thread);
    const locale_t before = tol_c_locale_begin();
    fprintf(file, "\"value\": %.17g, \"limit\": %.17g, ", alarm->value, alarm->limit);
    tol_c_locale_end(before);
    watch_alarm_write_text(file, "unit", alarm->unit);
    fprintf(file, "\"time_ns\": %llu, \"refused\": %s}\n", (unsigned long long)alarm->time_ns,
            alarm->refused ? "true" : "false");
}

/* Into the file of lines, and into the trace if there is one. */
static void write_out(struct tol_watch *watch, const struct tol_watch_alarm *alarm) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL) return;
    watch_alarm_write_line(memory, alarm);
    if (fclose(memory) == 0 && bytes > 0) {
        if (watch->options.lines != NULL) {
            fputs(text, watch->options.lines);
            fflush(watch->options.lines);
        }
        text[bytes - 1] = '\0';
        tol_trace_mark("alarm", text);
    }
    free(text);
}

static void watch_alarm_keep(struct tol_watch *watch, const struct tol_watch_alarm *alarm) {
    pthread_mutex_lock(&watch->alarm_lock);
    if (watch->first[0] == '\0') {
        snprintf(watch->first, sizeof watch->first,
                 "the rule \"%s\" was broken by %s%s%s%s: %g %s, and %g are allowed", alarm->rule,
                 alarm->call, alarm->label[0] != '\0' ? " on \"" : "", alarm->label,
                 alarm->label[0] != '\0' ? "\"" : "", alarm->value, alarm->unit, alarm->limit);
    }
    write_out(watch, alarm);
    pthread_mutex_unlock(&watch->alarm_lock);
}

static const char *watch_alarm_kernel_of(const struct watch_deed *deed) {
    if (deed->kernel_name != NULL) return deed->kernel_name;
    return deed->kernel != NULL && deed->kernel->name != NULL ? deed->kernel->name : "";
}

void watch_alarm(struct tol_watch *watch, const struct watch_rule *rule,
                 const struct watch_deed *deed, double value, double limit, const char *unit) {
    struct watch_block *block = deed->block;
    const struct tol_watch_alarm alarm = {
        .kind = rule->kind,
        .rule = rule->name,
        .label = block != NULL ? block->label : "",
        .call = deed->call != NULL ? tol_driver_function_name(deed->call->index) : "a kernel",
        .kernel = watch_alarm_kernel_of(deed),
        .address = block != NULL ? block->begin : 0,
        .bytes = block != NULL ? block->end - block->begin : 0,
        .stream = (uint64_t)(uintptr_t)deed->stream,
        .thread = (uint64_t)syscall(SYS_gettid),
        .value = value,
        .limit = limit,
        .unit = unit,
        .time_ns = deed->now_ns,
        .refused = rule->refuse && deed->call != NULL,
    };
    atomic_fetch_add(&watch->alarms, 1);
    if (block != NULL) atomic_fetch_add(&block->alarms, 1);
    watch_alarm_keep(watch, &alarm);
    { TOL_RANGE("alarm", deed->bytes); }
    if (watch->options.on_alarm != NULL) watch->options.on_alarm(&alarm, watch->options.user);
}
