/*
 * Rows: what the race check remembers while the lanes of every warp access adjacent elements, which
 * is what most accesses of global memory do. One mark then does for 32 words.
 *
 * A line is recorded only if one comparison decides about all its lanes: the access that it meets
 * is one of its own block, and ordered before it. Otherwise the row gets cells, which hold what the
 * lanes would have left there, and the lanes are checked one by one.
 */
#include "race_state.h"

#include <string.h>

/* ---- lines ---- */

/* Whether each lane has the same one element. */
static bool row_is_alike(const struct soft_row_line *one, const struct soft_row_line *other) {
    return one->start == other->start && one->shift == other->shift && one->span == 0 &&
           other->span == 0;
}

/* Where a line begins and ends in its row. */
static int row_low(const struct soft_row_line *line) {
    return line->start > 0 ? line->start : 0;
}

static int row_high(const struct soft_row_line *line) {
    int end = line->start + ((SOFT_LANES + line->span) << line->shift);
    return end < SOFT_ROW_BYTES ? end : SOFT_ROW_BYTES;
}

/* Whether all bytes of another line are a line's, in this row. */
static bool row_covers(const struct soft_row_line *line, const struct soft_row_line *other) {
    if (row_is_alike(line, other)) return (other->mark.lanes & ~line->mark.lanes) == 0;
    return line->mark.lanes == UINT32_MAX && row_low(line) <= row_low(other) &&
           row_high(line) >= row_high(other);
}

static bool row_meets(const struct soft_row_line *line, const struct soft_row_line *other) {
    return row_high(line) > row_low(other) && row_high(other) > row_low(line);
}

/* Whether each lane of a line is ordered after what it meets of an earlier one. A lane is ordered
 * after itself. */
static bool row_is_ordered(const struct soft_checked_access *touch,
                           const struct soft_row_line *line, const struct soft_row_line *earlier) {
    const struct soft_mark *mark = &earlier->mark;
    if (mark->cta != line->mark.cta) return false;
    return (mark->warp == line->mark.warp && row_is_alike(line, earlier)) ||
           soft_race_all_ordered(touch, mark);
}

static struct soft_row_line *row_line(struct soft_row *row, uint32_t number) {
    return number < SOFT_LINES_HERE ? &row->lines[number] : &row->more[number - SOFT_LINES_HERE];
}

/* Whether a line can be recorded beside an earlier one: two reads always can, other accesses if
 * they are ordered. A write leaves nothing of what it meets, so it must cover that. */
static bool row_allows(const struct soft_checked_access *touch, const struct soft_row_line *line,
                       const struct soft_row_line *earlier) {
    if (!row_meets(line, earlier) || (!line->writes && !earlier->writes)) return true;
    return row_is_ordered(touch, line, earlier) && (!line->writes || row_covers(line, earlier));
}

/* Whether a line makes an earlier one superfluous. */
static bool row_replaces(const struct soft_checked_access *touch, const struct soft_row_line *line,
                         const struct soft_row_line *earlier) {
    if (!row_meets(line, earlier)) return false;
    if (line->writes) return true;
    return !earlier->writes && row_covers(line, earlier) && row_is_ordered(touch, line, earlier);
}

enum { SPAN_MAX = 64 };

/* Adds a read to one of the same lanes at the same time that is beside it, or has it already. */
static bool row_merge(struct soft_row_line *earlier, const struct soft_row_line *line) {
    const struct soft_mark *one = &earlier->mark, *other = &line->mark;
    const int bytes = 1 << line->shift, distance = line->start - earlier->start;
    if (earlier->writes || line->writes || earlier->shift != line->shift ||
        one->cta != other->cta || one->warp != other->warp || one->time != other->time ||
        one->lanes != other->lanes) {
        return false;
    }
    if (distance < -bytes || distance > (earlier->span + 1) * bytes) return false;
    if (distance >= 0 && distance <= earlier->span * bytes) return true;
    if (earlier->span == SPAN_MAX) return false;
    if (distance < 0) earlier->start = line->start;
    earlier->span++;
    return true;
}

static bool row_add(struct soft_row *row, const struct soft_row_line *line,
                    struct soft_chunks *chunks) {
    if (row->count == SOFT_LINES_HERE + SOFT_LINES_MORE) return false;
    if (row->count >= SOFT_LINES_HERE && row->more == NULL) {
        row->more = soft_chunk_take(chunks, SOFT_LINES_MORE * sizeof *row->more);
        if (row->more == NULL) return false;
    }
    *row_line(row, row->count++) = *line;
    return true;
}

bool soft_row_take(const struct soft_checked_access *touch, struct soft_row *row,
                   const struct soft_row_line *line) {
    uint32_t kept = 0;
    if (row->words != NULL || row->bytes != NULL) return false;
    for (uint32_t i = 0; i < row->count; i++) {
        if (!row_allows(touch, line, row_line(row, i))) return false;
    }
    for (uint32_t i = 0; i < row->count; i++) {
        if (row_merge(row_line(row, i), line)) return true;
    }
    for (uint32_t i = 0; i < row->count; i++) {
        const struct soft_row_line *earlier = row_line(row, i);
        if (!row_replaces(touch, line, earlier)) *row_line(row, kept++) = *earlier;
    }
    row->count = kept;
    return row_add(row, line, touch->chunks);
}

/* ---- cells ---- */

/* The lanes of a line that have a byte of the row. */
static uint32_t row_lanes(const struct soft_row_line *line, int byte) {
    const int last = (byte - line->start) >> line->shift, first = last - line->span;
    if (byte < line->start || first >= SOFT_LANES) return 0;
    const uint32_t from = first > 0 ? UINT32_MAX << first : UINT32_MAX;
    return line->mark.lanes & from & (last < SOFT_LANES - 1 ? (2u << last) - 1 : UINT32_MAX);
}

/* Keeps all readers: which of them were ordered is not known any more. */
static bool row_add_reader(struct soft_chunks *chunks, struct soft_cell *cell,
                           const struct soft_mark *mark) {
    if (cell->read.time == 0) {
        cell->read = *mark;
        return true;
    }
    if (cell->more == NULL) cell->more = soft_chunk_take(chunks, sizeof *cell->more);
    if (cell->more == NULL) return false;
    struct soft_readers *more = cell->more;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < more->count; i++) {
        if (more->marks[i].time < more->marks[oldest].time) oldest = i;
    }
    more->marks[more->count < SOFT_READERS_MAX ? more->count++ : oldest] = *mark;
    return true;
}

/* Divides a line into cells of the given number of bytes. */
static bool row_spread(const struct soft_row_line *line, struct soft_cell *cells, int bytes,
                       struct soft_chunks *chunks) {
    bool ok = true;
    for (int at = 0; at < SOFT_ROW_BYTES; at += bytes) {
        struct soft_mark mark = line->mark;
        mark.lanes = row_lanes(line, at);
        if (mark.lanes == 0) continue;
        if (line->writes) {
            cells[at / bytes].write = mark;
        } else {
            ok &= row_add_reader(chunks, &cells[at / bytes], &mark);
        }
    }
    return ok;
}

bool soft_row_expand(struct soft_row *row, struct soft_chunks *chunks) {
    if (row->words != NULL || row->bytes != NULL) return true;
    bool narrow = false, ok = true;
    for (uint32_t i = 0; i < row->count; i++) narrow |= row_line(row, i)->shift < 2;
    const int bytes = narrow ? 1 : SOFT_CELL_BYTES;
    struct soft_cell *cells =
        soft_chunk_take(chunks, SOFT_ROW_BYTES / (unsigned)bytes * sizeof *cells);
    if (cells == NULL) return false;
    for (uint32_t i = 0; i < row->count; i++) {
        ok &= row_spread(row_line(row, i), cells, bytes, chunks);
    }
    if (narrow) row->bytes = cells;
    if (!narrow) row->words = cells;
    row->count = 0;
    return ok;
}

/* A copy of a word's cell for one more of its bytes. */
static struct soft_cell row_copy(const struct soft_cell *word, struct soft_chunks *chunks) {
    struct soft_cell copy = *word;
    if (word->more != NULL) copy.more = soft_chunk_take(chunks, sizeof *copy.more);
    if (copy.more != NULL) *copy.more = *word->more;
    if (word->flag != NULL) copy.flag = soft_chunk_take(chunks, sizeof *copy.flag);
    if (copy.flag != NULL) {
        *copy.flag = *word->flag;
        soft_clock_hold(copy.flag->released);
        soft_clock_hold(copy.flag->near);
    }
    return copy;
}

bool soft_row_split(struct soft_row *row, struct soft_chunks *chunks) {
    if (row->bytes != NULL) return true;
    struct soft_cell *bytes = soft_chunk_take(chunks, SOFT_ROW_BYTES * sizeof *bytes);
    if (bytes == NULL) return false;
    for (uint32_t i = 0; i < SOFT_ROW_BYTES; i++) {
        const struct soft_cell *word = &row->words[i / SOFT_CELL_BYTES];
        bytes[i] = i % SOFT_CELL_BYTES == 0 ? *word : row_copy(word, chunks);
    }
    soft_chunk_give(chunks, row->words, SOFT_CELLS * sizeof *row->words);
    row->words = NULL;
    row->bytes = bytes;
    return true;
}

void soft_cell_forget(struct soft_cell *cell, struct soft_clocks *clocks,
                      struct soft_chunks *chunks) {
    soft_chunk_give(chunks, cell->more, sizeof *cell->more);
    if (cell->flag != NULL) {
        soft_clock_drop(clocks, cell->flag->released);
        soft_clock_drop(clocks, cell->flag->near);
    }
    soft_chunk_give(chunks, cell->flag, sizeof *cell->flag);
    *cell = (struct soft_cell){0};
}

void soft_row_forget(struct soft_row *row, struct soft_clocks *clocks, struct soft_chunks *chunks) {
    struct soft_cell *cells = row->bytes != NULL ? row->bytes : row->words;
    const uint32_t count = row->bytes != NULL ? SOFT_ROW_BYTES : SOFT_CELLS;
    for (uint32_t i = 0; cells != NULL && i < count; i++) {
        soft_cell_forget(&cells[i], clocks, chunks);
    }
    soft_chunk_give(chunks, row->words, SOFT_CELLS * sizeof *row->words);
    soft_chunk_give(chunks, row->bytes, SOFT_ROW_BYTES * sizeof *row->bytes);
    soft_chunk_give(chunks, row->more, SOFT_LINES_MORE * sizeof *row->more);
    *row = (struct soft_row){0};
}
