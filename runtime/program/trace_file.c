/*
 * Lines of nine fields, and a table of the blocks that are live.
 */
#include "trace_file.h"

#include "files/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char first_line[] = "#tollens pool trace 1";
static const char names[] = "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns";
enum { FIELDS = 9, LINE_MAX_BYTES = 400 };
enum field { EVENT, TIME, THREAD, STREAM, KIND, BLOCK, BYTES, TAG, TOOK };

/* A live block: its name in the trace. */
struct live {
    uint64_t name, bytes;
    uint32_t block;
    bool is_live;
};

struct reader {
    const char *path;
    unsigned long line;
    struct hyp_trace *trace;
    struct live *table; /* open addressing; a power of two of places */
    size_t places, taken;
    uint16_t threads[65536], streams[65536]; /* by their numbers in the trace; 0: not seen */
    uint64_t next, live;
    struct {
        uint16_t thread;                            /* of the trace, that has this place */
        uint64_t last_used;                         /* its last event */
    } places_of_threads[HYP_TRACE_THREADS_MAX + 1]; /* from 1 */
};

static bool trace_file_refuse(const struct reader *r, const char *what, const char *word) {
    return hyp_fail("%s line %lu: %s%s%.60s%s", r->path, r->line, what, word != NULL ? " '" : "",
                    word != NULL ? word : "", word != NULL ? "'" : "");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct live *trace_file_place_of(struct live *table, size_t places, uint64_t name) {
    size_t at = (size_t)((name * 0x9e3779b97f4a7c15u) >> 20) & (places - 1);
    while (table[at].block != 0 && table[at].name != name) at = (at + 1) & (places - 1);
    return &table[at];
}

static bool grow_table(struct reader *r) {
    if (2 * r->taken < r->places) return true;
    size_t places = r->places > 0 ? 2 * r->places : 1024;
    struct live *table = calloc(places, sizeof *table);
    if (table == NULL) return hyp_fail("out of host memory for %zu blocks", places);
    for (size_t i = 0; i < r->places; i++) {
        if (r->table[i].block != 0)
            *trace_file_place_of(table, places, r->table[i].name) = r->table[i];
    }
    free(r->table);
    r->table = table;
    r->places = places;
    return true;
}

static bool trace_file_make_block(struct reader *r, uint64_t name, struct hyp_trace_event *event) {
    if (!grow_table(r)) return false;
    struct live *live = trace_file_place_of(r->table, r->places, name);
    if (live->is_live) return trace_file_refuse(r, "the block is live already", NULL);
    r->taken += live->block == 0;
    *live = (struct live){name, event->bytes, ++r->trace->blocks, true};
    event->block = live->block - 1;
    r->live += event->bytes;
    if (r->live > r->trace->peak) r->trace->peak = r->live;
    r->trace->allocations++;
    return true;
}

/* *skip: it was made by an event that is lost. */
static bool trace_file_free_block(struct reader *r, uint64_t name, struct hyp_trace_event *event,
                                  bool *skip) {
    if (!grow_table(r)) return false;
    struct live *live = trace_file_place_of(r->table, r->places, name);
    *skip = !live->is_live && r->trace->lost > 0 && live->block == 0;
    r->trace->skipped += *skip;
    if (*skip) return true;
    if (!live->is_live)
        return trace_file_refuse(r, "the block is not live, so it cannot be freed", NULL);
    live->is_live = false;
    event->block = live->block - 1;
    event->bytes = live->bytes;
    r->live -= live->bytes;
    r->trace->frees++;
    return true;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static bool trace_file_read_number(const struct reader *r, const char *word, uint64_t most,
                                   uint64_t *number) {
    char *end = NULL;
    errno = 0;
    if (word[0] < '0' || word[0] > '9') return trace_file_refuse(r, "this is not a number:", word);
    unsigned long long value = strtoull(word, &end, 10);
    if (*end != '\0') return trace_file_refuse(r, "this is not a number:", word);
    if (errno != 0 || value > most) return trace_file_refuse(r, "the number is too large:", word);
    *number = value;
    return true;
}

static bool trace_file_split(const struct reader *r, char *line, char *fields[FIELDS]) {
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = line;
        line = line != NULL ? strchr(line, ',') : NULL;
        if ((line == NULL) != (i == FIELDS - 1)) {
            return trace_file_refuse(r, "a line must have nine fields, separated by commas", NULL);
        }
        if (line != NULL) *line++ = '\0';
    }
    return true;
}

static bool trace_file_read_kind(const struct reader *r, const char *word, uint8_t *kind) {
    for (unsigned i = 0; i < TOL_POOL_EVENT_KINDS; i++) {
        if (strcmp(word, tol_pool_event_name(i)) != 0) continue;
        *kind = (uint8_t)i;
        return true;
    }
    return trace_file_refuse(r, "unknown kind of event", word);
}

/* A small number for a stream of the trace. */
static bool trace_file_stream(struct reader *r, uint64_t stream, uint16_t *result) {
    uint16_t *known = &r->streams[stream];
    if (*known == 0 && r->trace->streams == HYP_TRACE_STREAMS_MAX) {
        return trace_file_refuse(r, "too many", "streams");
    }
    if (*known == 0) *known = (uint16_t)++r->trace->streams;
    *result = *known;
    return true;
}

/* A program may start any number of threads in turn. Beyond the most, a thread takes the place of
 * the one that was silent for the longest time, which has probably ended. */
static uint16_t trace_file_thread(struct reader *r, uint64_t thread) {
    uint16_t *known = &r->threads[thread];
    if (*known == 0 && r->trace->threads < HYP_TRACE_THREADS_MAX) {
        *known = (uint16_t)++r->trace->threads;
    } else if (*known == 0) {
        *known = 1;
        for (uint16_t i = 2; i <= HYP_TRACE_THREADS_MAX; i++) {
            const uint64_t least = r->places_of_threads[*known].last_used;
            if (r->places_of_threads[i].last_used < least) *known = i;
        }
        r->threads[r->places_of_threads[*known].thread] = 0;
        r->trace->joined++;
    }
    r->places_of_threads[*known].thread = (uint16_t)thread;
    r->places_of_threads[*known].last_used = r->next;
    return *known;
}

static bool add_event(struct reader *r, const struct hyp_trace_event *event) {
    struct hyp_trace *trace = r->trace;
    if (trace->count == trace->room) {
        size_t room = trace->room > 0 ? 2 * trace->room : 4096;
        struct hyp_trace_event *more = realloc(trace->events, room * sizeof *more);
        if (more == NULL) return hyp_fail("out of host memory for %zu events", room);
        trace->events = more;
        trace->room = room;
    }
    trace->events[trace->count++] = *event;
    return true;
}

static bool trace_file_read_event(struct reader *r, char *line) {
    static const uint64_t most[FIELDS] = {
        UINT64_MAX - 1,         UINT64_MAX, UINT16_MAX, UINT16_MAX, 0, UINT64_MAX, (1ull << 48) - 1,
        HYP_TRACE_TAGS_MAX - 1, UINT32_MAX};
    struct hyp_trace_event event = {.number = 0};
    uint64_t values[FIELDS] = {0};
    char *fields[FIELDS] = {NULL};
    bool skip = false;
    if (!trace_file_split(r, line, fields) || !trace_file_read_kind(r, fields[KIND], &event.kind))
        return false;
    for (int i = 0; i < FIELDS; i++) {
        if (i != KIND && !trace_file_read_number(r, fields[i], most[i], &values[i])) return false;
    }
    if (values[EVENT] < r->next)
        return trace_file_refuse(r, "events must be in the order of their numbers", NULL);
    r->next = values[EVENT] + 1;
    if (event.kind == TOL_POOL_EVENT_GROW || event.kind == TOL_POOL_EVENT_SHRINK ||
        event.kind == TOL_POOL_EVENT_STITCH) {
        return true;
    }
    event.number = values[EVENT];
    event.bytes = values[BYTES];
    event.tag = (uint16_t)values[TAG];
    if (event.tag != 0 && r->trace->tags[event.tag][0] == '\0') {
        return trace_file_refuse(r, "no #tag line defines the tag", fields[TAG]);
    }
    if (values[THREAD] == 0) return trace_file_refuse(r, "thread numbers begin at 1", NULL);
    if (event.kind == TOL_POOL_EVENT_FREE &&
        !trace_file_free_block(r, values[BLOCK], &event, &skip)) {
        return false;
    }
    if (skip) return true; /* its thread and stream may have no event that is replayed */
    event.thread = (uint16_t)(trace_file_thread(r, values[THREAD]) - 1);
    if (values[STREAM] != 0 && !trace_file_stream(r, values[STREAM], &event.stream)) return false;
    bool allocates = event.kind == TOL_POOL_EVENT_ALLOCATE || event.kind == TOL_POOL_EVENT_REFUSE;
    if (allocates && event.bytes == 0)
        return trace_file_refuse(r, "a block must have at least 1 byte", NULL);
    if (event.kind == TOL_POOL_EVENT_ALLOCATE && !trace_file_make_block(r, values[BLOCK], &event))
        return false;
    r->trace->refusals += event.kind == TOL_POOL_EVENT_REFUSE;
    r->trace->trims += event.kind == TOL_POOL_EVENT_TRIM;
    return add_event(r, &event);
}

/* "#tag 3 weights", "#lost 17", or what later versions may say. */
static bool trace_file_read_note(struct reader *r, char *line) {
    uint64_t tag = 0;
    if (strncmp(line, "#lost ", 6) == 0) {
        return trace_file_read_number(r, line + 6, UINT64_MAX, &r->trace->lost);
    }
    if (strncmp(line, "#tag ", 5) != 0) return true;
    char *name = strchr(line + 5, ' ');
    if (name == NULL) return trace_file_refuse(r, "a tag must have a number and a name", NULL);
    *name++ = '\0';
    if (!trace_file_read_number(r, line + 5, HYP_TRACE_TAGS_MAX - 1, &tag)) return false;
    size_t length = strlen(name);
    if (tag == 0 || length == 0 || length >= sizeof r->trace->tags[0]) {
        return trace_file_refuse(
            r, "a tag must have a number of at least 1 and a name of 1 to 31 characters", NULL);
    }
    memcpy(r->trace->tags[tag], name, length + 1);
    return true;
}

static bool read_lines(struct reader *r, FILE *file) {
    char line[LINE_MAX_BYTES];
    bool has_names = false;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(line);
        r->line++;
        if (length + 1 == sizeof line && line[length - 1] != '\n') {
            return trace_file_refuse(r, "the line is too long", NULL);
        }
        /* A byte 0 ends it too, and may be the first. */
        if (length == 0 || line[length - 1] != '\n') {
            return trace_file_refuse(r, "the line is cut off", NULL);
        }
        line[--length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
        if (r->line == 1) {
            if (strcmp(line, first_line) == 0) continue;
            return trace_file_refuse(r, "the first line must be '#tollens pool trace 1', not",
                                     line);
        }
        if (line[0] == '#') {
            if (!trace_file_read_note(r, line)) return false;
        } else if (!has_names) {
            if (strcmp(line, names) != 0)
                return trace_file_refuse(r, "unexpected names of the fields:", line);
            has_names = true;
        } else if (!trace_file_read_event(r, line)) {
            return false;
        }
    }
    if (ferror(file)) return hyp_fail("%s: %s", r->path, strerror(errno));
    if (r->line == 0) return hyp_fail("%s is empty", r->path);
    if (r->trace->count == 0) return hyp_fail("%s has no event to replay", r->path);
    return true;
}

bool hyp_trace_read(const char *path, struct hyp_trace *trace) {
    *trace = (struct hyp_trace){.events = NULL};
    FILE *file = fopen(path, "r");
    if (file == NULL) return hyp_fail("%s: %s", path, strerror(errno));
    struct reader *r = calloc(1, sizeof *r);
    bool ok = r != NULL || hyp_fail("out of host memory");
    if (ok) {
        r->path = path;
        r->trace = trace;
        ok = read_lines(r, file);
        free(r->table);
    }
    free(r);
    fclose(file);
    return ok;
}

void hyp_trace_free(struct hyp_trace *trace) {
    free(trace->events);
    *trace = (struct hyp_trace){.events = NULL};
}
