/*
 * The journal: what a guard that dies leaves is read back, and what it cannot leave is refused.
 */
#include "guard/guard_journal.h"
#include "test/test_device.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static void begin(void) {
    strcpy(path, "/tmp/tollens_journal_XXXXXX");
    const int file = mkstemp(path);
    cr_assert(file >= 0 && close(file) == 0);
}

static void end(void) {
    unlink(path);
}
TestSuite(guard_journal, .init = begin, .fini = end);

/* What was read back. */
struct heard {
    size_t records;
    uint64_t last_job;
    char text[256]; /* kind, job and bytes of each, as far as they fit */
};

static tol_status hear(void *user, const struct guard_record *record) {
    struct heard *heard = user;
    heard->records++;
    heard->last_job = record->job;
    const size_t at = strlen(heard->text);
    if (at + record->count + 16 < sizeof heard->text) {
        sprintf(heard->text + at, "%d.%llu=%.*s;", record->kind, (unsigned long long)record->job,
                (int)record->count, (const char *)record->bytes);
    }
    return TOL_OK;
}

static struct heard read_back(void) {
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL;
    MUST(guard_journal_open(path, false, hear, &heard, &journal));
    guard_journal_close(journal);
    return heard;
}

static void add(struct guard_journal *journal, enum guard_kind kind, uint64_t job,
                const char *text) {
    MUST(guard_journal_add(journal, &(struct guard_record){kind, job, text, strlen(text)}));
}

static void write_three(void) {
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL;
    MUST(guard_journal_open(path, true, hear, &heard, &journal));
    cr_assert(heard.records == 0);
    add(journal, GUARD_TAKEN, 1, "compute");
    add(journal, GUARD_PART, 1, "");
    add(journal, GUARD_ANSWERED, 1, "42");
    guard_journal_close(journal);
}

static off_t size_of(void) {
    struct stat about;
    cr_assert(stat(path, &about) == 0);
    return about.st_size;
}

Test(guard_journal, the_sum_is_castagnolis) {
    cr_assert(guard_sum(0, "123456789", 9) == 0xe3069283u, "RFC 3720's check value");
    cr_assert(guard_sum(guard_sum(0, "1234", 4), "56789", 5) == 0xe3069283u);
    unsigned char zeros[32] = {0};
    cr_assert(guard_sum(0, zeros, sizeof zeros) == 0x8a9136aau, "RFC 3720, B.4: 32 zeros");
}

Test(guard_journal, records_are_read_back_and_more_are_added) {
    write_three();
    cr_assert_str_eq(read_back().text, "1.1=compute;2.1=;4.1=42;");
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL;
    MUST(guard_journal_open(path, false, hear, &heard, &journal));
    add(journal, GUARD_TAKEN, 2, "more");
    guard_journal_close(journal);
    cr_assert_str_eq(read_back().text, "1.1=compute;2.1=;4.1=42;1.2=more;");
}

Test(guard_journal, a_second_guard_is_refused) {
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL, *second = NULL;
    MUST(guard_journal_open(path, false, hear, &heard, &journal));
    MUST_FAIL(guard_journal_open(path, false, hear, &heard, &second), TOL_UNREADABLE,
              "in use by another guard");
    guard_journal_close(journal);
    MUST(guard_journal_open(path, false, hear, &heard, &second));
    guard_journal_close(second);
}

/* Cut anywhere, as a death in the middle of a write leaves it: whole records are there, and the
 * next one goes after them. */
Test(guard_journal, it_may_end_at_any_byte) {
    write_three();
    const off_t whole = size_of();
    size_t before = 0;
    for (off_t size = 0; size <= whole; size++) {
        unlink(path);
        write_three();
        cr_assert(truncate(path, size) == 0);
        const struct heard heard = read_back();
        cr_assert(heard.records >= before && heard.records <= 3, "%ld bytes", (long)size);
        before = heard.records;
        struct heard again = {.records = 0};
        struct guard_journal *journal = NULL;
        MUST(guard_journal_open(path, false, hear, &again, &journal));
        add(journal, GUARD_TAKEN, 9, "x");
        guard_journal_close(journal);
        again = read_back();
        cr_assert(again.records == heard.records + 1 && again.last_job == 9);
    }
    cr_assert(before == 3);
}

/* A changed byte is never believed: either its record and later ones are refused, or, in the last
 * record, it is as if that had not been written. */
Test(guard_journal, a_changed_byte_is_noticed_wherever_it_is) {
    write_three();
    const off_t whole = size_of();
    for (off_t at = 0; at < whole; at++) {
        struct heard heard = {.records = 0};
        struct guard_journal *journal = NULL;
        unsigned char byte = 0;
        unlink(path);
        write_three();
        const int file = open(path, O_RDWR);
        cr_assert(pread(file, &byte, 1, at) == 1);
        byte ^= 0x10;
        cr_assert(pwrite(file, &byte, 1, at) == 1 && close(file) == 0);
        const tol_status status = guard_journal_open(path, false, hear, &heard, &journal);
        guard_journal_close(journal);
        const bool is_last = at >= whole - 34; /* a head and two bytes */
        cr_assert(status == (is_last ? TOL_OK : TOL_INVALID_FILE), "byte %ld: %s", (long)at,
                  tol_message());
        cr_assert(heard.records < 3);
    }
}

Test(guard_journal, another_file_is_left_as_it_is) {
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL;
    FILE *file = fopen(path, "w");
    fputs("A text that somebody needs.\n", file);
    fclose(file);
    MUST_FAIL(guard_journal_open(path, false, hear, &heard, &journal), TOL_INVALID_FILE,
              "is not the journal of a guard");
    cr_assert(size_of() == 28);
    MUST_FAIL(guard_journal_open("/tmp", false, hear, &heard, &journal), TOL_UNREADABLE, "/tmp");
    MUST_FAIL(guard_journal_open("/tmp/tollens/none/journal", false, hear, &heard, &journal),
              TOL_UNREADABLE, "cannot be opened");
}

/* The limit of a file's size simulates a full disk: the same short writes, the same errors. */
Test(guard_journal, a_full_disk_is_a_sentence_and_leaves_whole_records) {
    struct heard heard = {.records = 0};
    struct guard_journal *journal = NULL;
    signal(SIGXFSZ, SIG_IGN);
    write_three();
    const rlim_t room = (rlim_t)size_of() + 50;
    MUST(guard_journal_open(path, false, hear, &heard, &journal));
    cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, RLIM_INFINITY}) == 0);
    const struct guard_record small = {GUARD_TAKEN, 2, "a", 1};
    const struct guard_record large = {GUARD_TAKEN, 3, "more than there is room for, by far", 35};
    MUST(guard_journal_add(journal, &small));
    MUST_FAIL(guard_journal_add(journal, &large), TOL_UNWRITABLE, "cannot grow beyond");
    cr_assert(strstr(tol_message(), "File too large") != NULL, "%s", tol_message());
    cr_assert(size_of() == (off_t)room - 50 + 33, "what did not fit is not there in part");
    cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0);
    /* It does not go on as if nothing had been: a record between would be missing. */
    MUST_FAIL(guard_journal_add(journal, &small), TOL_UNWRITABLE, "cannot grow");
    guard_journal_close(journal);
    cr_assert(read_back().records == 4);
}

/* Killed while it writes as fast as it can: what is there is whole, and in order. */
Test(guard_journal, sigkill_leaves_whole_records) {
    for (int round = 0; round < 5; round++) {
        unlink(path);
        const pid_t writer = fork();
        if (writer == 0) {
            struct heard heard = {.records = 0};
            struct guard_journal *journal = NULL;
            if (guard_journal_open(path, false, hear, &heard, &journal) != TOL_OK) _exit(1);
            for (uint64_t job = 1;; job++) add(journal, GUARD_TAKEN, job, "some bytes of a job");
        }
        usleep(3000 + 2000 * (unsigned)round);
        kill(writer, SIGKILL);
        cr_assert(waitpid(writer, NULL, 0) == writer);
        const struct heard heard = read_back();
        cr_assert(heard.last_job == heard.records, "a record is missing");
    }
}
