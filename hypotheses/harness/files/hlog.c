/*
 * Lines of the log: tag, offset, length, largest value, histogram.
 */
#include "hlog.h"

#include "hdr_encode.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool hyp_hlog_begin(struct hyp_hlog *log, const char *path, double start_s) {
    char when[64];
    time_t seconds = (time_t)start_s;
    struct tm utc;
    if (!hyp_file_begin(&log->file, path)) return false;
    log->start_s = start_s;
    gmtime_r(&seconds, &utc);
    strftime(when, sizeof when, "%a %b %d %H:%M:%S UTC %Y", &utc);
    FILE *out = log->file.stream;
    fprintf(out, "#[Logged with Tollens 0.1]\n");
    fprintf(out, "#[Histogram log format version 1.3]\n");
    fprintf(out, "#[StartTime: %.3f (seconds since epoch), %s]\n", start_s, when);
    fprintf(out, "#[BaseTime: %.3f (seconds since epoch)]\n", start_s);
    fprintf(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
                 "\"Interval_Compressed_Histogram\"\n");
    return true;
}

bool hyp_hlog_add(struct hyp_hlog *log, const char *tag, double offset_s, double length_s,
                  const struct tol_hdr *hdr) {
    if (strpbrk(tag, ", \t\r\n") != NULL || strlen(tag) > 100) {
        return hyp_fail("'%s' is not a valid tag of a histogram", tag);
    }
    char *text = hyp_hdr_encode(hdr);
    if (text == NULL) return hyp_fail("out of memory to encode the histogram %s", tag);
    if (!(offset_s > 0)) offset_s = 0;
    if (!(length_s > 0)) length_s = 0;
    /* The maximum is for people; Java's writer divides nanoseconds by a million, and so do we. */
    fprintf(log->file.stream, "Tag=%s,%.3f,%.3f,%.3f,%s\n", tag, offset_s, length_s,
            (double)tol_hdr_max(hdr) / 1e6, text);
    free(text);
    return true;
}

bool hyp_hlog_end(struct hyp_hlog *log) {
    return hyp_file_keep(&log->file);
}

/* Splits the next field off a line, up to a comma. */
static char *next_field(char **line) {
    char *field = *line;
    char *comma = field != NULL ? strchr(field, ',') : NULL;
    if (comma != NULL) *comma = '\0';
    *line = comma != NULL ? comma + 1 : NULL;
    return field;
}

/* What the lines of a header say; negative where they do not. */
struct times {
    double start_s, base_s;
};

static void hlog_read_header(const char *line, struct times *times) {
    static const char start[] = "#[StartTime: ", base[] = "#[BaseTime: ";
    if (strncmp(line, start, sizeof start - 1) == 0) {
        times->start_s = strtod(line + sizeof start - 1, NULL);
    } else if (strncmp(line, base, sizeof base - 1) == 0) {
        times->base_s = strtod(line + sizeof base - 1, NULL);
    }
}

/* Times count from the base where there is one. Without, writers disagree whether they count from
 * the start or from 1970; by custom they do from the start where they lie a year before it. */
static double hlog_begin_of(double offset_s, const struct times *times) {
    const double year_s = 365 * 24 * 3600.0;
    if (times->base_s >= 0) return times->base_s + offset_s;
    if (times->start_s >= 0 && offset_s < times->start_s - year_s) return times->start_s + offset_s;
    return offset_s;
}

static bool hlog_read_line(char *line, const struct times *times,
                           bool (*visit)(const struct hyp_hlog_entry *entry, void *user),
                           void *user, const char *path, unsigned number) {
    struct hyp_hlog_entry entry = {.tag = ""};
    if (strncmp(line, "Tag=", 4) == 0) {
        snprintf(entry.tag, sizeof entry.tag, "%s", next_field(&line) + 4);
    }
    const char *offset = next_field(&line), *length = next_field(&line), *max = next_field(&line);
    if (offset == NULL || length == NULL || max == NULL || line == NULL) {
        return hyp_fail("%s, line %u: a field is missing", path, number);
    }
    struct tol_hdr *hdr = NULL;
    entry.begin_s = hlog_begin_of(strtod(offset, NULL), times);
    entry.length_s = strtod(length, NULL);
    tol_hdr_error error = hyp_hdr_decode(line, strcspn(line, "\r"), &hdr);
    if (error != TOL_HDR_OK) {
        return hyp_fail("%s, line %u: %s", path, number, tol_hdr_sentence(error));
    }
    entry.hdr = hdr;
    bool go_on = visit(&entry, user);
    tol_hdr_free(hdr);
    return go_on || hyp_fail("%s: reading stopped at line %u", path, number);
}

bool hyp_hlog_read(const char *path, bool (*visit)(const struct hyp_hlog_entry *entry, void *user),
                   void *user) {
    enum { LOG_BYTES_MAX = 256 << 20 };
    size_t bytes = 0;
    char *text = hyp_file_read(path, LOG_BYTES_MAX, &bytes);
    if (text == NULL) return false;
    /* What follows a byte 0 would not be read, and not be missed. */
    bool ok = memchr(text, '\0', bytes) == NULL ||
              hyp_fail("%s contains a byte 0, so it is not a histogram log", path);
    unsigned number = 0;
    struct times times = {-1, -1};
    for (char *line = text; ok && line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        number++;
        if (line[0] == '#') hlog_read_header(line, &times);
        if (line[0] != '#' && line[0] != '"' && line[0] != '\0') {
            ok = hlog_read_line(line, &times, visit, user, path, number);
        }
        line = end != NULL ? end + 1 : NULL;
    }
    free(text);
    return ok;
}
