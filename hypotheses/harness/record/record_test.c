/*
 * Records and the folder they go to: whole files or none, whatever the disk does.
 */
#include "files/atomic_file.h"
#include "record.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[64];

static void begin(void) {
    snprintf(folder, sizeof folder, "/tmp/tollens_record_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}
static void end(void) {
    cr_assert(hyp_directory_remove(folder), "%s", hyp_error());
}
TestSuite(record, .init = begin, .fini = end);

static struct hyp_record sample(void) {
    struct hyp_record record = {.suite = "h03",
                                .name = "every_size",
                                .samples = 12,
                                .violations = 2,
                                .example_count = 2,
                                .begin_s = 1700000000.5,
                                .duration_s = 0.25,
                                .seed = 7};
    snprintf(record.examples[0], HYP_EXAMPLE_BYTES, "a \"quote\", a\nline and a byte \xff");
    snprintf(record.examples[1], HYP_EXAMPLE_BYTES, "second");
    return record;
}

/* Another program may have written what is longer than ours would be. */
Test(record, a_text_that_is_cut_is_a_text) {
    char path[128], text[4096], name[1100] = "";
    static struct hyp_record record, again;
    for (int i = 0; i < 520; i++) strcat(name, "\u00e9");
    snprintf(path, sizeof path, "%s/attacks/long.json", folder);
    snprintf(
        text, sizeof text,
        "{\"suite\": \"h03\", \"name\": \"long\", \"samples\": 1, \"violations\": 1, "
        "\"counterexamples\": [\"%s\", \"x%s\"], \"not_tested\": false, \"code\": \"\", "
        "\"reason\": \"\", \"begin_s\": 1.0, \"duration_s\": 1.0, \"seed\": 1, \"effects\": [], "
        "\"measures\": [], \"label\": \"\"}",
        name, name);
    cr_assert(hyp_record_write(&(struct hyp_record){.name = "long"}, folder), "%s", hyp_error());
    cr_assert(hyp_file_write(path, text), "%s", hyp_error());
    cr_assert(hyp_record_read(folder, "long", &record), "%s", hyp_error());
    cr_assert(hyp_record_write(&record, folder), "%s", hyp_error());
    cr_assert(hyp_record_read(folder, "long", &again), "%s", hyp_error());
    for (int i = 0; i < 2; i++) cr_assert_str_eq(again.examples[i], record.examples[i]);
    cr_assert(strncmp(record.examples[0], name, HYP_EXAMPLE_BYTES - 2) == 0);
}

Test(record, comes_back_as_it_was) {
    struct hyp_record record = sample(), back;
    cr_assert(tol_hdr_new_latency(&record.series[0].hdr) == TOL_HDR_OK);
    snprintf(record.series[0].name, sizeof record.series[0].name, "copy");
    record.series_count = 1;
    tol_hdr_record(record.series[0].hdr, 1234);
    record.measures[0] = (struct hyp_measure){.name = "worst", .value = 1.0625};
    record.measures[1] = (struct hyp_measure){.name = "no number", .value = NAN};
    record.measures[2] = (struct hyp_measure){.name = "beside", .recorded_only = true};
    record.measure_count = 3;
    snprintf(record.label, sizeof record.label, "scaled");
    cr_assert(hyp_record_write(&record, folder), "%s", hyp_error());
    cr_assert(hyp_record_read(folder, "every_size", &back), "%s", hyp_error());
    cr_assert(back.samples == 12 && back.violations == 2 && back.seed == 7 && !back.not_tested);
    cr_assert_str_eq(back.examples[0], "a \"quote\", a\nline and a byte ?");
    cr_assert_str_eq(back.examples[1], "second");
    cr_assert(back.measure_count == 3 && back.measures[0].value == 1.0625 &&
              isnan(back.measures[1].value) && !back.measures[1].recorded_only &&
              back.measures[2].recorded_only);
    cr_assert_str_eq(back.measures[0].name, "worst");
    cr_assert_str_eq(back.label, "scaled");
    char log[128];
    snprintf(log, sizeof log, "%s/every_size.hlog", folder);
    cr_assert(access(log, R_OK) == 0);
    hyp_record_end(&record);
}

Test(record, what_is_no_record_is_named) {
    char path[128];
    struct hyp_record back;
    cr_assert(!hyp_record_read(folder, "none", &back));
    cr_assert(strstr(hyp_error(), "none.json") != NULL, "%s", hyp_error());
    snprintf(path, sizeof path, "%s/attacks", folder);
    cr_assert(hyp_directory_make(path));
    static const char *const texts[] = {"", "{", "[]", "{\"samples\": \"many\"}", "null"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snprintf(path, sizeof path, "%s/attacks/bad.json", folder);
        cr_assert(hyp_file_write(path, texts[i]));
        cr_assert(!hyp_record_read(folder, "bad", &back), "%s", texts[i]);
        cr_assert(strstr(hyp_error(), "bad.json") != NULL, "%s", hyp_error());
    }
}

/* Goal: a full disk leaves the old file. Method: a limit on the size of files, which fails writes
 * in the same way. */
Test(record, a_full_disk_leaves_the_old_file) {
    char path[128];
    size_t bytes = 0;
    const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    snprintf(path, sizeof path, "%s/file", folder);
    cr_assert(hyp_file_write(path, "old"));
    char *large = malloc(100001);
    memset(large, 'x', 100000);
    large[100000] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_assert(!hyp_file_write(path, large));
    cr_assert(strstr(hyp_error(), path) != NULL, "%s", hyp_error());
    char *text = hyp_file_read(path, 1000, &bytes);
    cr_assert_str_eq(text, "old");
    free(text);
    free(large);
    cr_assert(hyp_file_write(path, "new"), "%s", hyp_error());
}

Test(record, a_folder_that_cannot_be_is_named) {
    char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    cr_assert(hyp_file_write(path, "text"));
    snprintf(path, sizeof path, "%s/file/inner", folder);
    cr_assert(!hyp_directory_make(path));
    cr_assert(strstr(hyp_error(), "file") != NULL, "%s", hyp_error());
    cr_assert(!hyp_directory_make(""));
    snprintf(path, sizeof path, "%s/absent/file", folder);
    cr_assert(!hyp_file_write(path, "text"));
}

Test(record, a_file_larger_than_allowed_is_refused) {
    char path[128];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/file", folder);
    char *large = malloc(70001);
    memset(large, 'x', 70000);
    large[70000] = '\0';
    cr_assert(hyp_file_write(path, large));
    cr_assert(hyp_file_read(path, 65536, &bytes) == NULL);
    cr_assert(strstr(hyp_error(), "too large") != NULL, "%s", hyp_error());
    /* It leaves nothing; a sanitizer's heap counts nothing, and finds that itself. */
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 20; i++) cr_assert(hyp_file_read(path, 65536, &bytes) == NULL);
    cr_assert(mallinfo2().uordblks < before + 65536, "%zu more", mallinfo2().uordblks - before);
    char *text = hyp_file_read(path, 1 << 20, &bytes);
    cr_assert(text != NULL && bytes == 70000 && strcmp(text, large) == 0);
    free(text);
    free(large);
}
