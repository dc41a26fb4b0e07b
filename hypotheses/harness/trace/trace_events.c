/*
 * A table of the blocks that are live, and seats for threads and streams.
 */
#include "trace_events.h"

#include "files/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* A block: its name in the file. */
struct trace_block {
    uint64_t name, bytes;
    uint32_t block; /* from 1; 0: the place is empty */
    bool is_live;
};

/* The threads or the streams that have a number now. A program may start any number of them in
 * turn. Beyond the most, one takes the place of the one that was silent for the longest time, which
 * has probably ended. */
struct trace_seats {
    unsigned most, taken;
    struct {
        uint64_t name, last_used;
    } seats[HYP_TRACE_STREAMS_MAX];
};

struct hyp_trace_maker {
    const char *path;
    struct hyp_trace *trace;
    uint64_t place; /* of what is read now */
    enum hyp_trace_rule rule;
    struct trace_block *table; /* open addressing; a power of two of places */
    size_t places, taken;
    uint64_t salt; /* makes the places unknown to who writes a file */
    uint64_t turn; /* of the seats: how many events have been added */
    struct trace_seats threads, streams;
    struct hyp_trace_event *before; /* allocations of blocks that were live before the trace */
    size_t before_count, before_room;
};

void hyp_trace_at(struct hyp_trace_maker *m, uint64_t place) {
    m->place = place;
}

bool hyp_trace_refuse(const struct hyp_trace_maker *m, const char *what, const char *word) {
    return hyp_fail("%s %s %llu: %s%s%.60s%s", m->path, m->trace->places,
                    (unsigned long long)m->place, what, word != NULL ? " '" : "",
                    word != NULL ? word : "", word != NULL ? "'" : "");
}

void hyp_trace_notice(struct hyp_trace_maker *m, enum hyp_trace_note note) {
    if (m->trace->notes[note].count++ == 0) m->trace->notes[note].first = m->place;
}

/* What is said about each note, and whether the place of the first one helps. */
static const struct {
    const char *words;
    bool has_place;
} trace_events_notes[HYP_TRACE_NOTES] = {
    [HYP_TRACE_LOST] = {"events that were lost before the first one", false},
    [HYP_TRACE_THREADS_JOINED] = {"threads that took the place of one that had been silent, "
                                  "because a replay has at most 256 at once",
                                  true},
    [HYP_TRACE_STREAMS_JOINED] = {"streams that took the place of one that had been silent, "
                                  "because a replay has at most 1,024 at once",
                                  true},
    [HYP_TRACE_NO_BYTES] = {"allocations of zero bytes, left out", true},
    [HYP_TRACE_UNKNOWN_FREES] = {"frees of blocks that were not live, left out", true},
    [HYP_TRACE_STILL_LIVE] = {"allocations at the address of a live block, which is freed first",
                              true},
    [HYP_TRACE_LIVE_BEFORE] = {"blocks that were live before the trace, allocated first", false},
    [HYP_TRACE_PENDING] = {"blocks that were freed, but still in use at the end", false},
    [HYP_TRACE_OTHER_EVENTS] = {"events of the traced allocator's own segments, left out", false},
    [HYP_TRACE_UNKNOWN_EVENTS] = {"events of an unknown kind, left out", true},
    [HYP_TRACE_OTHER_DEVICES] = {"events of other devices, left out", false},
    [HYP_TRACE_CUT_SHORT] = {"incomplete last lines, left out", true},
};

const char *hyp_trace_note(const struct hyp_trace *trace, enum hyp_trace_note note) {
    static char text[200];
    const unsigned long long count = trace->notes[note].count, first = trace->notes[note].first;
    if (count == 0) return NULL;
    int at = snprintf(text, sizeof text, "%s: %llu", trace_events_notes[note].words, count);
    if (trace_events_notes[note].has_place) {
        snprintf(text + at, sizeof text - (size_t)at, ", the first in %s %llu", trace->places,
                 first);
    }
    return text;
}

void hyp_trace_free(struct hyp_trace *trace) {
    free(trace->events);
    *trace = (struct hyp_trace){.events = NULL};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct trace_block *trace_events_place_of(const struct hyp_trace_maker *m,
                                                 struct trace_block *table, size_t places,
                                                 uint64_t name) {
    const uint64_t mixed = (name ^ m->salt) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)((mixed ^ mixed >> 32) * (m->salt | 1) >> 20) & (places - 1);
    while (table[at].block != 0 && table[at].name != name) at = (at + 1) & (places - 1);
    return &table[at];
}

/* The place of a block, which may be empty. NULL: there is no memory for more. */
static struct trace_block *trace_events_find(struct hyp_trace_maker *m, uint64_t name) {
    if (2 * m->taken >= m->places) {
        const size_t places = m->places > 0 ? 2 * m->places : 1024;
        struct trace_block *table = calloc(places, sizeof *table);
        if (table == NULL) {
            hyp_fail("out of host memory for %zu blocks", places);
            return NULL;
        }
        for (size_t i = 0; i < m->places; i++) {
            if (m->table[i].block == 0) continue;
            *trace_events_place_of(m, table, places, m->table[i].name) = m->table[i];
        }
        free(m->table);
        m->table = table;
        m->places = places;
    }
    return trace_events_place_of(m, m->table, m->places, name);
}

/* A new block at a place. */
static void trace_events_place(struct hyp_trace_maker *m, struct trace_block *place, uint64_t name,
                               struct hyp_trace_event *event) {
    m->taken += place->block == 0;
    *place = (struct trace_block){name, event->bytes, ++m->trace->blocks, true};
    event->block = place->block - 1;
    event->kind = TOL_POOL_EVENT_ALLOCATE;
    m->trace->allocations++;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static bool trace_events_append(struct hyp_trace_event **events, size_t *count, size_t *room,
                                const struct hyp_trace_event *event) {
    if (*count == *room) {
        const size_t more = *room > 0 ? 2 * *room : 4096;
        struct hyp_trace_event *grown = realloc(*events, more * sizeof *grown);
        if (grown == NULL) return hyp_fail("out of host memory for %zu events", more);
        *events = grown;
        *room = more;
    }
    (*events)[(*count)++] = *event;
    return true;
}

static bool trace_events_keep(struct hyp_trace_maker *m, const struct hyp_trace_event *event) {
    struct hyp_trace *trace = m->trace;
    return trace_events_append(&trace->events, &trace->count, &trace->room, event);
}

/* A block that was live before the trace: its place is empty. */
static bool trace_events_add_before(struct hyp_trace_maker *m, struct trace_block *place,
                                    uint64_t name, struct hyp_trace_event event) {
    hyp_trace_notice(m, HYP_TRACE_LIVE_BEFORE);
    event.number = event.time_ns = 0;
    trace_events_place(m, place, name, &event);
    return trace_events_append(&m->before, &m->before_count, &m->before_room, &event);
}

static bool trace_events_free(struct hyp_trace_maker *m, const struct hyp_trace_found *found,
                              struct hyp_trace_event event) {
    struct trace_block *place = trace_events_find(m, found->block);
    if (place == NULL) return false;
    if (place->block == 0 && m->rule == HYP_TRACE_COMPLETES && found->bytes > 0 &&
        !trace_events_add_before(m, place, found->block, event)) {
        return false;
    }
    if (!place->is_live) {
        const bool was_lost = m->trace->notes[HYP_TRACE_LOST].count > 0 && place->block == 0;
        if (m->rule == HYP_TRACE_REFUSES && !was_lost) {
            return hyp_trace_refuse(m, "the block is not live, so it cannot be freed", NULL);
        }
        /* What was allocated with zero bytes was left out and noted then. */
        if (found->bytes > 0) hyp_trace_notice(m, HYP_TRACE_UNKNOWN_FREES);
        return true;
    }
    place->is_live = false;
    event.block = place->block - 1;
    event.bytes = place->bytes;
    m->trace->frees++;
    return trace_events_keep(m, &event);
}

static bool trace_events_allocate(struct hyp_trace_maker *m, const struct hyp_trace_found *found,
                                  struct hyp_trace_event event) {
    struct trace_block *place = trace_events_find(m, found->block);
    if (place == NULL) return false;
    if (place->is_live) {
        if (m->rule == HYP_TRACE_REFUSES) {
            return hyp_trace_refuse(m, "the block is live already", NULL);
        }
        hyp_trace_notice(m, HYP_TRACE_STILL_LIVE);
        struct hyp_trace_event end = event;
        end.kind = TOL_POOL_EVENT_FREE;
        if (!trace_events_free(m, found, end)) return false;
    }
    trace_events_place(m, place, found->block, &event);
    return trace_events_keep(m, &event);
}

/* The number of a thread or stream, from 0. */
static uint16_t trace_events_seat(struct hyp_trace_maker *m, struct trace_seats *all, uint64_t name,
                                  enum hyp_trace_note joined) {
    unsigned oldest = 0, own = 0;
    while (own < all->taken && all->seats[own].name != name) {
        if (all->seats[own].last_used < all->seats[oldest].last_used) oldest = own;
        own++;
    }
    if (own == all->most) {
        hyp_trace_notice(m, joined);
        own = oldest;
    }
    if (own == all->taken) all->taken++;
    all->seats[own].name = name;
    all->seats[own].last_used = m->turn;
    return (uint16_t)own;
}

static void trace_events_seat_both(struct hyp_trace_maker *m, const struct hyp_trace_found *found,
                                   struct hyp_trace_event *event) {
    m->turn++;
    event->thread = trace_events_seat(m, &m->threads, found->thread, HYP_TRACE_THREADS_JOINED);
    if (!found->is_host) {
        event->stream = (uint16_t)(1 + trace_events_seat(m, &m->streams, found->stream,
                                                         HYP_TRACE_STREAMS_JOINED));
    }
}

/* Whether a free will be left out: then its thread and stream may have no event that is replayed,
 * and get no number. */
static bool trace_events_is_lost(struct hyp_trace_maker *m, const struct hyp_trace_found *found) {
    if (found->kind != TOL_POOL_EVENT_FREE || m->rule == HYP_TRACE_COMPLETES) return false;
    const struct trace_block *place = trace_events_find(m, found->block);
    return place != NULL && !place->is_live;
}

bool hyp_trace_add(struct hyp_trace_maker *m, uint64_t number,
                   const struct hyp_trace_found *found) {
    struct hyp_trace_event event = {.number = number,
                                    .time_ns = found->time_ns,
                                    .bytes = found->bytes,
                                    .stream_name = found->stream,
                                    .tag = found->tag,
                                    .kind = found->kind};
    const bool allocates =
        found->kind == TOL_POOL_EVENT_ALLOCATE || found->kind == TOL_POOL_EVENT_REFUSE;
    if (allocates && found->bytes == 0) {
        if (m->rule == HYP_TRACE_REFUSES) {
            return hyp_trace_refuse(m, "a block must have at least 1 byte", NULL);
        }
        hyp_trace_notice(m, HYP_TRACE_NO_BYTES);
        return true;
    }
    if (!trace_events_is_lost(m, found)) trace_events_seat_both(m, found, &event);
    if (found->kind == TOL_POOL_EVENT_FREE) return trace_events_free(m, found, event);
    if (found->kind == TOL_POOL_EVENT_ALLOCATE) return trace_events_allocate(m, found, event);
    m->trace->refusals += found->kind == TOL_POOL_EVENT_REFUSE;
    m->trace->trims += found->kind == TOL_POOL_EVENT_TRIM;
    return trace_events_keep(m, &event);
}

bool hyp_trace_add_live(struct hyp_trace_maker *m, const struct hyp_trace_found *found) {
    struct hyp_trace_event event = {.bytes = found->bytes, .stream_name = found->stream};
    struct trace_block *place = trace_events_find(m, found->block);
    if (place == NULL) return false;
    if (place->block != 0 || found->bytes == 0) return true;
    trace_events_seat_both(m, found, &event);
    return trace_events_add_before(m, place, found->block, event);
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct hyp_trace_maker *hyp_trace_maker_begin(const char *path, struct hyp_trace *trace) {
    struct hyp_trace_maker *m = calloc(1, sizeof *m);
    if (m == NULL) {
        hyp_fail("out of host memory");
        return NULL;
    }
    m->path = path;
    m->trace = trace;
    m->threads.most = HYP_TRACE_THREADS_MAX;
    m->streams.most = HYP_TRACE_STREAMS_MAX;
    if (getrandom(&m->salt, sizeof m->salt, GRND_NONBLOCK) < 0) m->salt = (uintptr_t)m;
    return m;
}

void hyp_trace_maker_rule(struct hyp_trace_maker *m, enum hyp_trace_rule rule) {
    m->rule = rule;
}

/* Puts the blocks that were live before the trace at its beginning. */
static bool trace_events_join(struct hyp_trace_maker *m) {
    struct hyp_trace *trace = m->trace;
    if (m->before_count == 0) return true;
    const size_t count = m->before_count + trace->count;
    struct hyp_trace_event *all = realloc(m->before, count * sizeof *all);
    if (all == NULL) return hyp_fail("out of host memory for %zu events", count);
    if (trace->count > 0) {
        memcpy(all + m->before_count, trace->events, trace->count * sizeof *all);
    }
    free(trace->events);
    trace->events = all;
    trace->count = trace->room = count;
    m->before = NULL;
    return true;
}

/* The most live bytes. Their sum must not wrap around. */
static bool trace_events_sum(struct hyp_trace_maker *m) {
    struct hyp_trace *trace = m->trace;
    uint64_t live = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct hyp_trace_event *event = &trace->events[i];
        if (event->kind == TOL_POOL_EVENT_FREE) live -= event->bytes;
        if (event->kind != TOL_POOL_EVENT_ALLOCATE) continue;
        live += event->bytes;
        if (live > trace->peak) trace->peak = live;
        if (live >> 62 != 0) {
            return hyp_fail("%s %s %llu: more than 2^62 bytes would be live", m->path, trace->unit,
                            (unsigned long long)event->number);
        }
    }
    return true;
}

bool hyp_trace_maker_end(struct hyp_trace_maker *m, bool ok) {
    struct hyp_trace *trace = m->trace;
    trace->threads = m->threads.taken;
    trace->streams = m->streams.taken;
    ok = ok && trace_events_join(m);
    if (ok && trace->count == 0) ok = hyp_fail("%s has no event to replay", m->path);
    ok = ok && trace_events_sum(m);
    free(m->before);
    free(m->table);
    free(m);
    return ok;
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum hyp_trace_line hyp_trace_next_line(struct hyp_trace_maker *m, FILE *file,
                                        char line[HYP_TRACE_LINE_BYTES]) {
    if (fgets(line, HYP_TRACE_LINE_BYTES, file) == NULL) {
        if (!ferror(file)) return HYP_TRACE_LINE_NONE;
        hyp_fail("%s: %s", m->path, strerror(errno));
        return HYP_TRACE_LINE_BAD;
    }
    size_t length = strlen(line);
    m->place++;
    if (length + 1 == HYP_TRACE_LINE_BYTES && line[length - 1] != '\n') {
        hyp_trace_refuse(m, "the line is too long", NULL);
        return HYP_TRACE_LINE_BAD;
    }
    /* A byte 0 ends it too, and may be the first. */
    if (length == 0 || line[length - 1] != '\n') {
        hyp_trace_refuse(m, "the line is cut off", NULL);
        return fgetc(file) == EOF && !ferror(file) ? HYP_TRACE_LINE_CUT : HYP_TRACE_LINE_BAD;
    }
    line[--length] = '\0';
    if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
    return HYP_TRACE_LINE;
}

bool hyp_trace_split(const struct hyp_trace_maker *m, char *line, char **fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fields[i] = line;
        line = line != NULL ? strchr(line, ',') : NULL;
        if ((line == NULL) != (i == count - 1)) {
            return hyp_fail("%s %s %llu: a line must have %zu fields, separated by commas", m->path,
                            m->trace->places, (unsigned long long)m->place, count);
        }
        if (line != NULL) *line++ = '\0';
    }
    return true;
}

bool hyp_trace_number(const struct hyp_trace_maker *m, const char *word, int base, uint64_t most,
                      uint64_t *value) {
    static const char digits[] = "0123456789abcdefABCDEF";
    char *end = NULL;
    errno = 0;
    /* strtoull takes blanks and signs as well. */
    if (word[0] == '\0' || memchr(digits, word[0], base == 10 ? 10 : 22) == NULL) {
        return hyp_trace_refuse(m, "this is not a number:", word);
    }
    const unsigned long long read = strtoull(word, &end, base);
    if (*end != '\0') return hyp_trace_refuse(m, "this is not a number:", word);
    if (errno != 0 || read > most) {
        return hyp_trace_refuse(m, "the number is too large:", word);
    }
    *value = read;
    return true;
}
