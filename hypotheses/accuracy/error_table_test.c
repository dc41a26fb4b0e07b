/*
 * Error tables: what they write, and how they record a trial that fails.
 */
#include "error_table.h"

#include "record/record.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kn_deviation deviation_of(const float *values, const double *oracle, size_t count) {
    return kn_deviation_of(KN_F32, values, oracle, count, (struct kn_tolerance){1, 0}, NULL);
}

static void expect_line(const char *folder, const char *name, const char *line) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = hyp_file_read(path, 65536, NULL);
    cr_assert(text != NULL, "%s", hyp_error());
    cr_assert(strstr(text, line) != NULL, "%s lacks \"%s\": %s", name, line, text);
    free(text);
}

Test(error_table, trials_and_octaves_are_written) {
    char folder[] = "/tmp/tollens_errors_XXXXXX";
    static struct hyp_record record = {.name = "made_up"};
    static struct hyp_error_table table;
    cr_assert(mkdtemp(folder) != NULL);
    struct hyp_attack attack = {.session = {.out = folder}, .record = &record};
    const double oracle[] = {0, 0, 0, 0};
    struct kn_deviation good = deviation_of((const float[]){0.75f, 0.5f, 0.25f, 0}, oracle, 4);
    struct kn_deviation more = deviation_of((const float[]){0.6f}, oracle, 1);
    struct kn_deviation other = deviation_of((const float[]){2}, oracle, 1);
    hyp_error_table_begin(&table, &attack, "m,seed");
    hyp_error_table_add(&table, "one way", &good, "%d,%d", 4, 17);
    hyp_error_table_add(&table, "other way", &other, "%d,%d", 1, 18);
    hyp_error_table_add(&table, "one way", &more, "%d,%d", 1, 19);
    cr_assert(table.count == 2 && table.paths[0].all.count == 5);
    hyp_error_table_end(&table);
    expect_line(folder, "made_up.errors.csv", "path,m,seed,count,failed,");
    expect_line(folder, "made_up.errors.csv", "\none way,4,17,4,0,0,0,1,0.75,");
    expect_line(folder, "made_up.errors.csv", "\nother way,1,18,1,1,0,0,0,2,");
    expect_line(folder, "made_up.octaves.csv", "\none way,0.5,1,2\none way,0.25,0.5,1\n");
    expect_line(folder, "made_up.octaves.csv", "\nother way,1,inf,1\n");
    hyp_directory_remove(folder);
}
