/*
 * Reads with pread into one growing buffer, and verifies the checksum of each record.
 */
#include "guard_journal.h"

#include "tollens/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 32, SUM_AT = 28 };
static const char mark[] = "TGJ1", format[] = "tollens guard journal, version 1\n";

struct guard_journal {
    int file;
    char *path;
    uint64_t end, sequence;
    bool is_synced;
    int error; /* errno of the write that failed; 0: none has */
    unsigned char *buffer;
    size_t room;
};

/* ---- sums and numbers ---- */

uint32_t guard_sum(uint32_t sum, const void *bytes, size_t count) {
    /* Half a byte at a time: a table that a reader can check, and fast enough for records. */
    static const uint32_t table[16] = {0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u,
                                       0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
                                       0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
                                       0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};
    const unsigned char *byte = bytes;
    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum ^= byte[i];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}

static void guard_journal_put(unsigned char *to, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t guard_journal_get(const unsigned char *from, int bytes) {
    uint64_t number = 0;
    for (int i = bytes; i-- > 0;) number = number << 8 | from[i];
    return number;
}

static tol_status guard_journal_make_room(struct guard_journal *j, size_t bytes) {
    tol_status status = TOL_OK;
    if (bytes <= j->room) return TOL_OK;
    unsigned char *grown = realloc(j->buffer, bytes + bytes / 2);
    TOL_CHECK(grown != NULL, TOL_OUT_OF_HOST_MEMORY, "a record of %zu bytes", bytes);
    j->buffer = grown;
    j->room = bytes + bytes / 2;
out:
    return status;
}

/* ---- reading ---- */

/* Up to count bytes at an offset; fewer at the end of the file. */
static tol_status guard_journal_read_at(struct guard_journal *j, uint64_t at, void *bytes,
                                        size_t count, size_t *got) {
    tol_status status = TOL_OK;
    for (*got = 0; *got < count;) {
        const ssize_t part = pread(j->file, (char *)bytes + *got, count - *got, (off_t)(at + *got));
        if (part < 0 && errno == EINTR) continue;
        TOL_CHECK(part >= 0, TOL_UNREADABLE, "the journal %s: %s", j->path, strerror(errno));
        if (part == 0) break;
        *got += (size_t)part;
    }
out:
    return status;
}

/* The record at an offset. *bytes: its size with its head; 0: there is no whole record. */
static tol_status read_record(struct guard_journal *j, uint64_t at, struct guard_record *record,
                              uint64_t *sequence, size_t *bytes) {
    tol_status status = TOL_OK;
    size_t got = 0;
    *bytes = 0;
    TOL_TRY(guard_journal_make_room(j, HEAD_BYTES));
    TOL_TRY(guard_journal_read_at(j, at, j->buffer, HEAD_BYTES, &got));
    if (got < HEAD_BYTES || memcmp(j->buffer, mark, 4) != 0) goto out;
    const size_t count = (size_t)guard_journal_get(j->buffer + 4, 4);
    if (count > TOL_GUARD_BYTES_MAX) goto out;
    TOL_TRY(guard_journal_make_room(j, HEAD_BYTES + count));
    TOL_TRY(guard_journal_read_at(j, at + HEAD_BYTES, j->buffer + HEAD_BYTES, count, &got));
    if (got < count) goto out;
    const uint32_t sum = guard_sum(guard_sum(0, j->buffer, SUM_AT), j->buffer + HEAD_BYTES, count);
    if (sum != guard_journal_get(j->buffer + SUM_AT, 4) ||
        guard_journal_get(j->buffer + 24, 4) >= GUARD_KINDS)
        goto out;
    *sequence = guard_journal_get(j->buffer + 8, 8);
    *record =
        (struct guard_record){(enum guard_kind)guard_journal_get(j->buffer + 24, 4),
                              guard_journal_get(j->buffer + 16, 8), j->buffer + HEAD_BYTES, count};
    *bytes = HEAD_BYTES + count;
out:
    return status;
}

/* Whether a whole record begins anywhere after an offset: then the damage is not the end of the
 * last write. */
static tol_status find_record(struct guard_journal *j, uint64_t from, uint64_t size, bool *found) {
    tol_status status = TOL_OK;
    unsigned char head[4096];
    struct guard_record record;
    uint64_t sequence;
    size_t got = 0, bytes = 0;
    *found = false;
    for (uint64_t at = from; at + HEAD_BYTES <= size; at += sizeof head - 3) {
        TOL_TRY(guard_journal_read_at(j, at, head, sizeof head, &got));
        for (size_t i = 0; i + 4 <= got; i++) {
            if (memcmp(head + i, mark, 4) != 0) continue;
            TOL_TRY(read_record(j, at + i, &record, &sequence, &bytes));
            *found |= bytes > 0 && sequence >= j->sequence;
        }
    }
out:
    return status;
}

static tol_status guard_journal_read_all(struct guard_journal *j, uint64_t size,
                                         tol_status (*visit)(void *user,
                                                             const struct guard_record *record),
                                         void *user) {
    tol_status status = TOL_OK;
    struct guard_record record;
    uint64_t sequence = 0;
    size_t bytes = 0;
    bool is_followed = false;
    while (j->end < size) {
        TOL_TRY(read_record(j, j->end, &record, &sequence, &bytes));
        if (bytes == 0) break;
        TOL_CHECK(sequence == j->sequence, TOL_INVALID_FILE,
                  "the journal %s has record %llu at byte %llu, where record %llu must be", j->path,
                  (unsigned long long)sequence, (unsigned long long)j->end,
                  (unsigned long long)j->sequence);
        if (sequence == 0) {
            TOL_CHECK(record.kind == GUARD_HEAD && record.count == sizeof format - 1 &&
                          memcmp(record.bytes, format, record.count) == 0,
                      TOL_INVALID_FILE, "the journal %s has a format that this version lacks",
                      j->path);
        } else {
            TOL_TRY(visit(user, &record));
        }
        j->end += bytes;
        j->sequence++;
    }
    if (j->end == size) goto out;
    TOL_TRY(find_record(j, j->end + 1, size, &is_followed));
    TOL_CHECK(!is_followed, TOL_INVALID_FILE,
              "the journal %s is damaged at byte %llu, and whole records follow; which the death "
              "of a guard cannot cause",
              j->path, (unsigned long long)j->end);
    /* A record that a guard began before it died has the beginning of a valid one. */
    if (j->end == 0) {
        unsigned char begin[4];
        size_t got = 0;
        TOL_TRY(guard_journal_read_at(j, 0, begin, sizeof begin, &got));
        TOL_CHECK(memcmp(begin, mark, got) == 0 && size < HEAD_BYTES + sizeof format,
                  TOL_INVALID_FILE, "%s is not the journal of a guard", j->path);
    }
    TOL_CHECK(ftruncate(j->file, (off_t)j->end) == 0, TOL_UNWRITABLE,
              "the journal %s cannot be cut at byte %llu: %s", j->path, (unsigned long long)j->end,
              strerror(errno));
out:
    return status;
}

/* ---- the journal ---- */

/* A guard that was killed between fork and exec leaves a child that holds the lock for a moment. */
static bool guard_journal_lock(int file) {
    enum { TRIES = 25, PAUSE_US = 20000 };
    for (int i = 0; i < TRIES; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
        usleep(PAUSE_US);
    }
    return false;
}

static tol_status open_file(struct guard_journal *j, const char *path, uint64_t *size) {
    tol_status status = TOL_OK;
    struct stat about;
    j->path = strdup(path);
    TOL_CHECK(j->path != NULL, TOL_OUT_OF_HOST_MEMORY, "a journal");
    j->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    TOL_CHECK(j->file >= 0, TOL_UNREADABLE, "the journal %s cannot be opened: %s", path,
              strerror(errno));
    TOL_CHECK(guard_journal_lock(j->file), TOL_UNREADABLE,
              "the journal %s is in use by another guard", path);
    TOL_CHECK(fstat(j->file, &about) == 0 && S_ISREG(about.st_mode), TOL_UNREADABLE,
              "the journal %s is not a file", path);
    *size = (uint64_t)about.st_size;
out:
    return status;
}

tol_status guard_journal_open(const char *path, bool is_synced,
                              tol_status (*visit)(void *user, const struct guard_record *record),
                              void *user, struct guard_journal **journal) {
    tol_status status = TOL_OK;
    uint64_t size = 0;
    struct guard_journal *j = calloc(1, sizeof *j);
    TOL_CHECK(j != NULL, TOL_OUT_OF_HOST_MEMORY, "a journal");
    j->file = -1;
    j->is_synced = is_synced;
    TOL_TRY(open_file(j, path, &size));
    TOL_TRY(guard_journal_read_all(j, size, visit, user));
    if (j->sequence == 0) {
        TOL_TRY(
            guard_journal_add(j, &(struct guard_record){GUARD_HEAD, 0, format, sizeof format - 1}));
    }
    *journal = j;
    j = NULL;
out:
    guard_journal_close(j);
    return status;
}

void guard_journal_close(struct guard_journal *j) {
    if (j == NULL) return;
    if (j->file >= 0) close(j->file);
    free(j->buffer);
    free(j->path);
    free(j);
}

static bool guard_journal_write_all(int file, const unsigned char *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        const ssize_t part = write(file, bytes + done, count - done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        done += (size_t)part;
    }
    return true;
}

tol_status guard_journal_add(struct guard_journal *j, const struct guard_record *record) {
    tol_status status = TOL_OK;
    const size_t bytes = HEAD_BYTES + record->count;
    if (j->error != 0) goto full;
    TOL_TRY(guard_journal_make_room(j, bytes));
    memcpy(j->buffer, mark, 4);
    guard_journal_put(j->buffer + 4, record->count, 4);
    guard_journal_put(j->buffer + 8, j->sequence, 8);
    guard_journal_put(j->buffer + 16, record->job, 8);
    guard_journal_put(j->buffer + 24, record->kind, 4);
    if (record->count > 0) memcpy(j->buffer + HEAD_BYTES, record->bytes, record->count);
    guard_journal_put(j->buffer + SUM_AT,
                      guard_sum(guard_sum(0, j->buffer, SUM_AT), record->bytes, record->count), 4);
    if (!guard_journal_write_all(j->file, j->buffer, bytes) ||
        (j->is_synced && fdatasync(j->file) != 0)) {
        j->error = errno != 0 ? errno : EIO;
        /* If this fails too, the next opening cuts it. */
        if (ftruncate(j->file, (off_t)j->end) != 0) j->error = errno;
        goto full;
    }
    j->end += bytes;
    j->sequence++;
    return TOL_OK;
full:
    TOL_FAIL(TOL_UNWRITABLE,
             "the journal %s cannot grow beyond %llu bytes: %s. Free space and start again with "
             "the same journal; jobs that it has answers for are not run again",
             j->path, (unsigned long long)j->end, strerror(j->error));
out:
    return status;
}
