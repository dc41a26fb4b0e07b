/*
 * Which format a file has, and the lines of our own.
 */
#include "trace_file.h"

#include "files/atomic_file.h"
#include "files/packed_file.h"
#include "trace_formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char first_line[] = "#tollens pool trace 1";
static const char names[] = "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns";
enum { FIELDS = 9, XZ = 0xfd };
enum { PACKED_MAX = 64 << 20, UNPACKED_MAX = 1 << 30 }; /* bytes */
enum field { EVENT, TIME, THREAD, STREAM, KIND, BLOCK, BYTES, TAG, TOOK };

struct reader {
    struct hyp_trace_maker *maker;
    struct hyp_trace *trace;
    uint64_t next; /* the least number of the next event */
};

static bool trace_file_read_kind(const struct reader *r, const char *word, uint8_t *kind) {
    for (unsigned i = 0; i < TOL_POOL_EVENT_KINDS; i++) {
        if (strcmp(word, tol_pool_event_name(i)) != 0) continue;
        *kind = (uint8_t)i;
        return true;
    }
    return hyp_trace_refuse(r->maker, "unknown kind of event", word);
}

static bool trace_file_read_fields(const struct reader *r, char *line, uint64_t values[FIELDS],
                                   uint8_t *kind) {
    static const uint64_t most[FIELDS] = {
        UINT64_MAX - 1,         UINT64_MAX, UINT16_MAX, UINT16_MAX, 0, UINT64_MAX, (1ull << 48) - 1,
        HYP_TRACE_TAGS_MAX - 1, UINT32_MAX};
    char *fields[FIELDS] = {NULL};
    if (!hyp_trace_split(r->maker, line, fields, FIELDS) ||
        !trace_file_read_kind(r, fields[KIND], kind)) {
        return false;
    }
    for (int i = 0; i < FIELDS; i++) {
        if (i == KIND) continue;
        if (!hyp_trace_number(r->maker, fields[i], 10, most[i], &values[i])) return false;
    }
    if (values[TAG] != 0 && r->trace->tags[values[TAG]][0] == '\0') {
        return hyp_trace_refuse(r->maker, "no #tag line defines the tag", fields[TAG]);
    }
    return true;
}

static bool trace_file_read_event(struct reader *r, char *line) {
    uint64_t values[FIELDS] = {0};
    uint8_t kind = 0;
    if (!trace_file_read_fields(r, line, values, &kind)) return false;
    if (values[EVENT] < r->next) {
        return hyp_trace_refuse(r->maker, "events must be in the order of their numbers", NULL);
    }
    r->next = values[EVENT] + 1;
    if (kind == TOL_POOL_EVENT_GROW || kind == TOL_POOL_EVENT_SHRINK ||
        kind == TOL_POOL_EVENT_STITCH) {
        return true;
    }
    if (values[THREAD] == 0) return hyp_trace_refuse(r->maker, "thread numbers begin at 1", NULL);
    return hyp_trace_add(r->maker, values[EVENT],
                         &(struct hyp_trace_found){.time_ns = values[TIME],
                                                   .thread = values[THREAD],
                                                   .stream = values[STREAM],
                                                   .block = values[BLOCK],
                                                   .bytes = values[BYTES],
                                                   .tag = (uint16_t)values[TAG],
                                                   .kind = kind,
                                                   .is_host = values[STREAM] == 0});
}

/* "#tag 3 weights", "#lost 17", or what later versions may say. */
static bool trace_file_read_note(struct reader *r, char *line) {
    uint64_t tag = 0;
    if (strncmp(line, "#lost ", 6) == 0) {
        return hyp_trace_number(r->maker, line + 6, 10, UINT64_MAX,
                                &r->trace->notes[HYP_TRACE_LOST].count);
    }
    if (strncmp(line, "#tag ", 5) != 0) return true;
    char *name = strchr(line + 5, ' ');
    if (name == NULL) {
        return hyp_trace_refuse(r->maker, "a tag must have a number and a name", NULL);
    }
    *name++ = '\0';
    if (!hyp_trace_number(r->maker, line + 5, 10, HYP_TRACE_TAGS_MAX - 1, &tag)) return false;
    size_t length = strlen(name);
    if (tag == 0 || length == 0 || length >= sizeof r->trace->tags[0]) {
        return hyp_trace_refuse(
            r->maker, "a tag must have a number of at least 1 and a name of 1 to 31 characters",
            NULL);
    }
    memcpy(r->trace->tags[tag], name, length + 1);
    return true;
}

static bool trace_file_is_first(const struct reader *r, const char *line) {
    if (strcmp(line, first_line) == 0) return true;
    return hyp_trace_refuse(
        r->maker,
        "the first line must be '#tollens pool trace 1', the names of the columns of an RMM log, "
        "or the beginning of a PyTorch snapshot (pickle or JSON), not",
        line);
}

static bool trace_file_read_lines(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                                  FILE *file) {
    struct reader r = {maker, trace, 0};
    char line[HYP_TRACE_LINE_BYTES];
    enum hyp_trace_line one;
    bool has_names = false, is_first = true;
    while ((one = hyp_trace_next_line(maker, file, line)) == HYP_TRACE_LINE) {
        bool ok = true;
        if (is_first) {
            ok = trace_file_is_first(&r, line);
        } else if (line[0] == '#') {
            ok = trace_file_read_note(&r, line);
        } else if (!has_names) {
            has_names = true;
            ok = strcmp(line, names) == 0 ||
                 hyp_trace_refuse(maker, "unexpected names of the fields:", line);
        } else {
            ok = trace_file_read_event(&r, line);
        }
        if (!ok) return false;
        is_first = false;
    }
    return one == HYP_TRACE_LINE_NONE;
}

static bool trace_file_read_any(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                                const char *path, FILE *file);

/* Unpacks a stream and reads what it has, which must not be packed again. */
static bool trace_file_read_packed(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                                   const char *path, FILE *file) {
    size_t count = 0, bytes = 0;
    char *packed = malloc(PACKED_MAX), *text = NULL;
    if (packed == NULL) return hyp_fail("out of host memory for %s", path);
    count = fread(packed, 1, PACKED_MAX, file);
    bool ok = count < PACKED_MAX || hyp_fail("%s has %d bytes or more", path, PACKED_MAX);
    text = ok ? hyp_packed_unpack(path, packed, count, UNPACKED_MAX, &bytes) : NULL;
    free(packed);
    if (text == NULL) return false;
    ok = bytes > 0 && (unsigned char)text[0] != XZ;
    FILE *unpacked = ok ? fmemopen(text, bytes, "r") : NULL;
    ok = unpacked != NULL ? trace_file_read_any(maker, trace, path, unpacked)
                          : hyp_fail("%s holds no trace", path);
    if (unpacked != NULL) fclose(unpacked);
    free(text);
    return ok;
}

/* The format, from the first byte, which goes back: a pipe has no other way. */
static bool trace_file_read_any(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                                const char *path, FILE *file) {
    const int first = fgetc(file);
    if (first == EOF) {
        return ferror(file) ? hyp_fail("%s: %s", path, strerror(errno))
                            : hyp_fail("%s is empty", path);
    }
    ungetc(first, file);
    if (first == XZ) return trace_file_read_packed(maker, trace, path, file);
    if (first == 'T') return hyp_trace_read_rmm(maker, trace, file);
    if (first == 0x80 || first == '{' || first == '[') {
        return hyp_trace_read_snapshot(maker, trace, path, file);
    }
    trace->format = "a trace of tol_pool_trace";
    trace->unit = "event";
    return trace_file_read_lines(maker, trace, file);
}

bool hyp_trace_read(const char *path, struct hyp_trace *trace) {
    *trace = (struct hyp_trace){.unit = "line", .places = "line"};
    FILE *file = fopen(path, "r");
    if (file == NULL) return hyp_fail("%s: %s", path, strerror(errno));
    struct hyp_trace_maker *maker = hyp_trace_maker_begin(path, trace);
    const bool ok =
        maker != NULL && hyp_trace_maker_end(maker, trace_file_read_any(maker, trace, path, file));
    fclose(file);
    return ok;
}
