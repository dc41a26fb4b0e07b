/*
 * Histogram logs: ours come back, another implementation's are read, damaged ones are named.
 */
#include "hlog.h"

#include "hdr_encode.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[256];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/tollens_hlog_%d.hlog", (int)getpid());
}
static void end(void) {
    unlink(path);
}
TestSuite(hlog, .init = begin, .fini = end);

struct seen {
    unsigned entries;
    int64_t totals[8], maxima[8];
    char tags[8][32];
};

static bool see(const struct hyp_hlog_entry *entry, void *user) {
    struct seen *seen = user;
    seen->totals[seen->entries] = entry->hdr->total;
    seen->maxima[seen->entries] = tol_hdr_max(entry->hdr);
    snprintf(seen->tags[seen->entries++], 32, "%.31s", entry->tag);
    return true;
}

Test(hlog, what_is_written_is_read) {
    struct hyp_hlog log;
    struct tol_hdr *hdr = NULL;
    struct seen seen = {0};
    cr_assert(tol_hdr_new_latency(&hdr) == TOL_HDR_OK);
    cr_assert(hyp_hlog_begin(&log, path, 1700000000.25), "%s", hyp_error());
    tol_hdr_record(hdr, 1000);
    cr_assert(hyp_hlog_add(&log, "first", 0, 1.5, hdr));
    tol_hdr_record(hdr, 2000000);
    cr_assert(hyp_hlog_add(&log, "second", 1.5, 1.5, hdr));
    cr_assert(!hyp_hlog_add(&log, "a comma, here", 0, 1, hdr));
    cr_assert(access(path, F_OK) != 0, "the file is there before it is whole");
    cr_assert(hyp_hlog_end(&log), "%s", hyp_error());
    cr_assert(hyp_hlog_read(path, see, &seen), "%s", hyp_error());
    cr_assert(seen.entries == 2 && seen.totals[0] == 1 && seen.totals[1] == 2);
    cr_assert_str_eq(seen.tags[1], "second");
    tol_hdr_free(hdr);

    char line[4096];
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL) {
        cr_assert(line[0] != '#' || strlen(line) < 128, "a header line is too long for C: %s",
                  line);
    }
    fclose(file);
}

/* fixtures/hdr/golden.hlog is HdrHistogram's own, by its Python implementation. */
Test(hlog, another_implementations_log_is_read) {
    char golden[5000];
    struct seen seen = {0};
    const char *root = hyp_session_root();
    cr_assert(root != NULL, "%s", hyp_error());
    snprintf(golden, sizeof golden, "%s/fixtures/hdr/golden.hlog", root);
    cr_assert(hyp_hlog_read(golden, see, &seen), "%s", hyp_error());
    cr_assert(seen.entries == 3);
    cr_assert(seen.totals[0] == 1 && seen.totals[1] == 1000 && seen.totals[2] == 40);
    cr_assert(seen.maxima[0] == 42 && seen.maxima[1] >= 999000 && seen.maxima[1] <= 999999);
    cr_assert(seen.maxima[2] >= (int64_t)1 << 39);
}

static double begins[8];
static unsigned begin_count;

static bool see_begin(const struct hyp_hlog_entry *entry, void *user) {
    (void)user;
    begins[begin_count++] = entry->begin_s;
    return true;
}

static void write_text(const char *text);

/* Goal: a histogram's time is the same whichever way its writer counted. */
Test(hlog, times_count_from_base_start_or_1970) {
    static const char line[] = "%s\nTag=a,%s,1.000,0.000,%s\n";
    static const struct {
        const char *header, *offset;
        double begin_s;
    } cases[] = {
        {"#[BaseTime: 1700000000.250 (seconds since epoch)]", "2.000", 1700000002.25},
        {"#[StartTime: 1600000000.000 (seconds since epoch), x]\n"
         "#[BaseTime: 1700000000.000 (seconds since epoch)]",
         "3.500", 1700000003.5},
        {"#[StartTime: 1700000000.000 (seconds since epoch), x]", "5.000", 1700000005},
        {"#[StartTime: 1700000000.000 (seconds since epoch), x]", "1700000007.000", 1700000007},
        {"#[Histogram log format version 1.3]", "1700000009.000", 1700000009},
    };
    struct tol_hdr *hdr = NULL;
    cr_assert(tol_hdr_new_latency(&hdr) == TOL_HDR_OK);
    char *text = hyp_hdr_encode(hdr), whole[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(whole, sizeof whole, line, cases[i].header, cases[i].offset, text);
        write_text(whole);
        begin_count = 0;
        cr_assert(hyp_hlog_read(path, see_begin, NULL), "%s", hyp_error());
        cr_assert(begin_count == 1 && begins[0] == cases[i].begin_s, "%zu: %.3f", i, begins[0]);
    }
    free(text);
    tol_hdr_free(hdr);
}

static void write_text(const char *text) {
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

Test(hlog, a_damaged_line_is_named) {
    struct seen seen = {0};
    write_text("#[Histogram log format version 1.3]\nTag=a,0.0,1.0,HISTFAAA\n");
    cr_assert(!hyp_hlog_read(path, see, &seen));
    cr_assert(strstr(hyp_error(), "line 2") != NULL, "%s", hyp_error());
    write_text("Tag=a,0.0,1.0,0.5,HISTFAAAbroken\n");
    cr_assert(!hyp_hlog_read(path, see, &seen));
    cr_assert(strstr(hyp_error(), "line 1") != NULL, "%s", hyp_error());
    FILE *file = fopen(path, "w");
    fwrite("#[BaseTime: 0]\n\0Tag=a,0.0,1.0,HISTFAAA\n", 1, 39, file);
    fclose(file);
    cr_assert(!hyp_hlog_read(path, see, &seen));
    cr_assert(strstr(hyp_error(), "a byte 0") != NULL, "%s", hyp_error());
    unlink(path);
    cr_assert(!hyp_hlog_read(path, see, &seen));
    cr_assert(strstr(hyp_error(), path) != NULL, "%s", hyp_error());
}
