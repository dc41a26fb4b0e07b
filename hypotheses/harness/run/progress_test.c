/*
 * Progress: what is on the line, and when there is none.
 */
#include "progress.h"

#include "judge/verdict.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct hyp_progress watch;
static char *written;
static size_t written_bytes;

static void begin(size_t steps, bool verbose) {
    FILE *stream = open_memstream(&written, &written_bytes);
    cr_assert_not_null(stream);
    hyp_progress_begin(&watch, stream, steps, verbose);
}

static void end(void) {
    if (watch.stream != NULL) fclose(watch.stream);
    free(written);
    watch.stream = NULL;
    written = NULL;
}

TestSuite(progress, .fini = end);

/* The run began this many seconds ago. */
static void began_before(double seconds) {
    watch.begin_ns -= (uint64_t)(seconds * 1e9);
}

Test(progress, the_line_has_the_share_the_time_left_the_verdicts_and_what_runs) {
    begin(40, false);
    watch.terminal = true;
    watch.columns = 200;
    hyp_progress_part(&watch, 9);
    for (int i = 0; i < 4; i++) hyp_progress_ended(&watch, "H1", "attack", "passed", 1);
    /* Five of nine were not needed. */
    hyp_progress_verdict(&watch, -1, HYP_INCONCLUSIVE);
    hyp_progress_verdict(&watch, HYP_INCONCLUSIVE, HYP_FALSIFIED);
    hyp_progress_part_end(&watch);
    hyp_progress_part(&watch, 20);
    hyp_progress_sabotaged(&watch, "H2", "launch_drop", "falsified", true, 1);
    began_before(30);
    hyp_progress_running(&watch, "H2", "launch_short", "wide_grids", -1, "", 3);
    cr_assert(strstr(watch.line, "[###.......]  25 %, about 90 s left  1 falsified  "
                                 "H2 under launch_short: wide_grids 3 s") != NULL,
              "%s", watch.line);
    hyp_progress_clear(&watch);
    hyp_progress_running(&watch, "H2", NULL, "wide_grids", 0.5, "1.02 to 1.04", 3);
    cr_assert(strstr(watch.line, "[###.......]  26 %") != NULL &&
                  strstr(watch.line, "H2: wide_grids 50 %, 1.02 to 1.04") != NULL,
              "half an attack is half a step: %s", watch.line);
    char left[48];
    hyp_progress_left(&watch, left, sizeof left);
    cr_assert_str_eq(left, "  (about 90 s left)");
    began_before(970);
    hyp_progress_running(&watch, "H2", NULL, "wide_grids", 0, "", 3);
    cr_assert(strstr(watch.line, "about 50 min left") != NULL, "%s", watch.line);
}

Test(progress, of_several_that_run_each_is_shown_for_a_second) {
    begin(40, false);
    watch.terminal = true;
    watch.columns = 200;
    hyp_progress_part(&watch, 40);
    hyp_progress_running(&watch, "H2", "launch_drop", "wide_grids", -1, "", 3);
    hyp_progress_running(&watch, "H3", "copy_stale", "copies", -1, "", 3);
    cr_assert(strstr(watch.line, "H2 under launch_drop: wide_grids 3 s") != NULL, "%s", watch.line);
    hyp_progress_running(&watch, "H2", "launch_drop", "wide_grids", -1, "", 4);
    cr_assert(strstr(watch.line, "wide_grids 4 s") != NULL, "%s", watch.line);
    watch.turned_ns -= 1000000000;
    hyp_progress_running(&watch, "H3", "copy_stale", "copies", -1, "", 4);
    hyp_progress_running(&watch, "H2", "launch_drop", "wide_grids", -1, "", 5);
    cr_assert(strstr(watch.line, "H3 under copy_stale: copies 4 s") != NULL, "%s", watch.line);
    /* Nothing is drawn into other text. */
    hyp_progress_pause(&watch);
    cr_assert_eq(watch.line[0], '\0');
    hyp_progress_resume(&watch);
}

Test(progress, the_time_left_is_not_guessed_early) {
    begin(100, false);
    watch.terminal = true;
    hyp_progress_part(&watch, 100);
    began_before(10);
    hyp_progress_running(&watch, "H1", NULL, "attack", -1, "", 1);
    cr_assert(strstr(watch.line, "left") == NULL, "%s", watch.line);
    for (int i = 0; i < 10; i++) hyp_progress_ended(&watch, "H1", "attack", "passed", 1);
    hyp_progress_running(&watch, "H1", NULL, "attack", -1, "", 1);
    cr_assert(strstr(watch.line, "10 %, about 90 s left") != NULL, "%s", watch.line);
}

Test(progress, a_line_fits_the_terminal) {
    begin(10, false);
    watch.terminal = true;
    watch.columns = 40;
    hyp_progress_part(&watch, 10);
    hyp_progress_running(&watch, "H1", NULL, "an_attack_of_a_very_long_name", -1, "", 1);
    cr_assert_eq(strlen(watch.line), 39, "%s", watch.line);
}

Test(progress, a_log_stays_silent_for_half_a_minute) {
    begin(10, false);
    hyp_progress_part(&watch, 10);
    hyp_progress_ended(&watch, "H1", "first", "passed", 1);
    hyp_progress_sabotaged(&watch, "H1", "launch_drop", "falsified", true, 1);
    hyp_progress_running(&watch, "H1", NULL, "second", -1, "", 29);
    fflush(watch.stream);
    cr_assert_eq(written_bytes, 0, "%s", written);
    watch.spoke_ns -= 31000000000u;
    watch.begin_ns -= 31000000000u;
    hyp_progress_running(&watch, "H1", NULL, "second", -1, "", 31);
    hyp_progress_running(&watch, "H1", NULL, "second", -1, "", 31);
    fflush(watch.stream);
    cr_assert(strstr(written, "20 %, about 124 s left") != NULL ||
                  strstr(written, "20 %, about 2 min left") != NULL,
              "%s", written);
    cr_assert(strstr(written, "H1: second 31 s\n") != NULL &&
                  strchr(written, '\n') == written + written_bytes - 1,
              "one line: %s", written);
    cr_assert_null(strchr(written, '\033'), "a log has no terminal's words");
}

Test(progress, verbose_names_each_attack) {
    begin(10, true);
    hyp_progress_part(&watch, 10);
    hyp_progress_ended(&watch, "H1", "first", "passed", 1);
    hyp_progress_sabotaged(&watch, "H1", "launch_drop", "survived", false, 1);
    hyp_progress_limit(&watch, "H1", "launch_drop=2", true, 1);
    fflush(watch.stream);
    cr_assert(strstr(written, "H1  first") != NULL && strstr(written, "passed") != NULL &&
                  strstr(written, "saboteur launch_drop") != NULL &&
                  strstr(written, "survived: WRONG") != NULL &&
                  strstr(written, "limit launch_drop=2") != NULL,
              "%s", written);
}
