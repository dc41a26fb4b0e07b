/*
 * Telling of what went wrong: stderr, the driver's log, a JSON file.
 */
#include "report.h"

#include "../cuda_abi.h"
#include "options.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The real driver's log holds 25600 bytes; ours about as much. */
enum { LOG_LINES = 64, LINE_BYTES = 1024 };

static struct {
    pthread_mutex_t lock;
    char lines[LOG_LINES][LINE_BYTES];
    uint32_t end; /* the number of the next line; line n is in lines[n % LOG_LINES] */
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *soft_report_kind(int result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
        return "illegal address";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
        return "misaligned address";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
        return "no end";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "out of host memory";
    default:
        return "launch failure";
    }
}

void soft_report_text(const struct soft_report *report, char *text, size_t bytes) {
    char place[256] = "";
    if (report->instruction[0] != '\0') {
        snprintf(place, sizeof place,
                 " in block (%u,%u,%u), thread (%u,%u,%u)%s, at PTX line %u: %.100s",
                 report->block[0], report->block[1], report->block[2], report->thread[0],
                 report->thread[1], report->thread[2], report->lanes > 1 ? " and others" : "",
                 report->ptx_line, report->instruction);
    }
    snprintf(text, bytes, "%s in kernel %s%s%s%s%s: %s", report->kind, report->kernel,
             report->source[0] != '\0' ? ", " : "", report->source, place,
             report->instruction[0] != '\0' ? "" : ",", report->detail);
}

/* A JSON string's inside. */
static void put_json(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(file, "\\%c", c);
        } else if (c < ' ' || c > '~') {
            fprintf(file, "\\u%04x", c);
        } else {
            fputc(c, file);
        }
    }
}

static void tell_file(const struct soft_report *report) {
    const char *path = soft_options()->report;
    if (path == NULL || path[0] == '\0') return;
    FILE *file = fopen(path, "a");
    if (file == NULL) {
        fprintf(stderr, "tollens-soft: the report file %s cannot be opened\n", path);
        return;
    }
    fprintf(file, "{\"kind\": \"%s\", \"result\": %d, \"kernel\": \"", report->kind,
            report->result);
    put_json(file, report->kernel);
    fprintf(file, "\", \"source\": \"");
    put_json(file, report->source);
    fprintf(file, "\", \"ptx_line\": %u, \"instruction\": \"", report->ptx_line);
    put_json(file, report->instruction);
    fprintf(file, "\", \"block\": [%u, %u, %u], \"thread\": [%u, %u, %u], \"lanes\": %u, ",
            report->block[0], report->block[1], report->block[2], report->thread[0],
            report->thread[1], report->thread[2], report->lanes);
    fprintf(file, "\"address\": %llu, \"detail\": \"", (unsigned long long)report->address);
    put_json(file, report->detail);
    fprintf(file, "\"}\n");
    fclose(file);
}

void soft_report_tell(const struct soft_report *report) {
    char text[LINE_BYTES];
    soft_report_text(report, text, sizeof text);
    soft_log_add(text);
    pthread_mutex_lock(&notes.lock);
    fprintf(stderr, "tollens-soft: %s\n", text);
    tell_file(report);
    pthread_mutex_unlock(&notes.lock);
}

uint32_t soft_log_end(void) {
    pthread_mutex_lock(&notes.lock);
    uint32_t end = notes.end;
    pthread_mutex_unlock(&notes.lock);
    return end;
}

void soft_log_add(const char *text) {
    pthread_mutex_lock(&notes.lock);
    snprintf(notes.lines[notes.end % LOG_LINES], LINE_BYTES, "%s", text);
    notes.end++;
    pthread_mutex_unlock(&notes.lock);
}

size_t soft_log_dump(uint32_t *position, char *text, size_t bytes) {
    static const char cut[] = "[older lines are left out]\n";
    size_t used = 0;
    pthread_mutex_lock(&notes.lock);
    uint32_t oldest = notes.end > LOG_LINES ? notes.end - LOG_LINES : 0;
    uint32_t first = notes.end, begin = *position > oldest ? *position : oldest;
    bool lost = *position < oldest;
    /* The newest lines that fit, and room for the note that some do not. */
    size_t needed = 1, room = bytes > sizeof cut ? bytes - sizeof cut : 0;
    while (first > begin) {
        size_t length = strlen(notes.lines[(first - 1) % LOG_LINES]) + 1;
        if (needed + length > room) break;
        needed += length;
        first--;
    }
    lost = lost || first > begin;
    if (bytes > 0) text[0] = '\0';
    if (lost && bytes > sizeof cut) used += (size_t)snprintf(text, bytes, "%s", cut);
    for (uint32_t line = first; line < notes.end; line++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s\n", notes.lines[line % LOG_LINES]);
    }
    *position = notes.end;
    pthread_mutex_unlock(&notes.lock);
    return used;
}
