/*
 * The file of a tuning: what is written is read again, and what is damaged or of others is refused.
 */
#include "choose/tuning.h"

#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/tollens-tuning-%d", (int)getpid());
}

static void end(void) {
    remove(path);
}

TestSuite(tuning, .init = begin, .fini = end);

static const struct kn_tuning_identity here = {"NVIDIA H100 80GB HBM3", 132, 13000,
                                               UINT64_C(0x123456789abcdef0), "9894c425"};

static struct kn_tuning_key key_of(int64_t number) {
    return (struct kn_tuning_key){"gemm", {3, 2, 0, 1, number, -1}};
}

/* The number of results. */
static void write_file(int count) {
    struct kn_tuning *tuning = NULL;
    MUST(kn_tuning_create(&here, &tuning));
    for (int i = 0; i < count; i++) {
        struct kn_tuned tuned = {"", 10.5 + i, 21.25, 4};
        const struct kn_tuning_key key = key_of(i);
        snprintf(tuned.variant, sizeof tuned.variant, "variant_%d", i % 7);
        MUST(kn_tuning_add(tuning, &key, &tuned));
    }
    MUST(kn_tuning_save(tuning, path));
    kn_tuning_destroy(tuning);
}

Test(tuning, what_is_written_is_read_again) {
    struct kn_tuning *tuning = NULL;
    write_file(100);
    MUST(kn_tuning_load(path, &here, &tuning));
    cr_assert(kn_tuning_count(tuning) == 100);
    cr_assert_str_eq(kn_tuning_identity(tuning)->commit, "9894c425");
    for (int i = 0; i < 100; i++) {
        char name[32];
        const struct kn_tuning_key key = key_of(i);
        const struct kn_tuned *tuned = kn_tuning_find(tuning, &key);
        snprintf(name, sizeof name, "variant_%d", i % 7);
        cr_assert(tuned != NULL && strcmp(tuned->variant, name) == 0, "%d", i);
        cr_assert(tuned->us == 10.5 + i && tuned->table_us == 21.25 && tuned->candidates == 4);
    }
    struct kn_tuning_key other = key_of(100);
    cr_assert(kn_tuning_find(tuning, &other) == NULL);
    other = key_of(5), other.operation = "softmax";
    cr_assert(kn_tuning_find(tuning, &other) == NULL);
    cr_assert(kn_tuning_find(NULL, &other) == NULL);
    kn_tuning_destroy(tuning);
}

Test(tuning, a_later_result_takes_the_place_of_an_earlier_one) {
    struct kn_tuning *tuning = NULL;
    const struct kn_tuning_key key = key_of(1);
    MUST(kn_tuning_create(&here, &tuning));
    cr_assert(kn_tuning_find(tuning, &key) == NULL);
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"first", 2, 2, 3}));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"second", 1, 2, 3}));
    cr_assert(kn_tuning_count(tuning) == 1);
    cr_assert_str_eq(kn_tuning_find(tuning, &key)->variant, "second");
    kn_tuning_destroy(tuning);
}

Test(tuning, what_no_file_can_say_is_refused) {
    struct kn_tuning *tuning = NULL;
    struct kn_tuning_key key = key_of(1);
    struct kn_tuning_identity odd = here;
    odd.device[0] = '\n';
    MUST_FAIL(kn_tuning_create(&odd, &tuning), TOL_INVALID_ARGUMENT, "a line each");
    odd = here, odd.commit[0] = 0;
    MUST_FAIL(kn_tuning_create(&odd, &tuning), TOL_INVALID_ARGUMENT, "a line each");
    MUST_FAIL(kn_tuning_create(NULL, &tuning), TOL_INVALID_ARGUMENT, "an identity");
    MUST(kn_tuning_create(&here, &tuning));
    MUST_FAIL(kn_tuning_add(tuning, &key, &(struct kn_tuned){"two words", 1, 1, 1}),
              TOL_INVALID_ARGUMENT, "letters, digits");
    MUST_FAIL(kn_tuning_add(tuning, &key, &(struct kn_tuned){"one", 0, 1, 1}), TOL_INVALID_ARGUMENT,
              "times of 0");
    key.operation = "";
    MUST_FAIL(kn_tuning_add(tuning, &key, &(struct kn_tuned){"one", 1, 1, 1}), TOL_INVALID_ARGUMENT,
              "letters, digits");
    MUST_FAIL(kn_tuning_save(tuning, "/nowhere/at/all"), TOL_UNWRITABLE, "/nowhere/at/all");
    MUST_FAIL(kn_tuning_load("/nowhere/at/all", &here, &tuning), TOL_UNREADABLE,
              "cannot be opened");
    kn_tuning_destroy(tuning);
}

Test(tuning, files_of_others_are_refused) {
    struct kn_tuning *tuning = NULL;
    struct kn_tuning_identity other = here;
    write_file(3);
    snprintf(other.device, sizeof other.device, "NVIDIA H200");
    MUST_FAIL(kn_tuning_load(path, &other, &tuning), TOL_MISMATCH,
              "is of a NVIDIA H100 80GB HBM3 with 132 multiprocessors, and this is a NVIDIA H200");
    other = here, other.multiprocessors = 114;
    MUST_FAIL(kn_tuning_load(path, &other, &tuning), TOL_MISMATCH, "with 114");
    other = here, other.driver = 12040;
    MUST_FAIL(kn_tuning_load(path, &other, &tuning), TOL_MISMATCH,
              "driver 13000, and this is 12040");
    other = here, other.kernels++;
    MUST_FAIL(kn_tuning_load(path, &other, &tuning), TOL_MISMATCH, "those of commit 9894c425");
    other = here, snprintf(other.commit, sizeof other.commit, "another"); /* does not decide */
    MUST(kn_tuning_load(path, &other, &tuning));
    kn_tuning_destroy(tuning);
}

static char *read_all(size_t *count) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    cr_assert(file != NULL && text != NULL);
    *count = fread(text, 1, (1 << 16) - 1, file);
    fclose(file);
    return text;
}

static void write_all(const char *text, size_t count) {
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(text, 1, count, file) == count && fclose(file) == 0);
}

/* Cut off anywhere, or any byte changed: refused with a sentence that names the file. */
Test(tuning, each_damage_is_noticed) {
    size_t count = 0;
    write_file(4);
    char *text = read_all(&count);
    for (size_t i = 0; i < 2 * count; i++) {
        struct kn_tuning *tuning = NULL;
        char *damaged = malloc(count);
        cr_assert(damaged != NULL);
        memcpy(damaged, text, count);
        if (i >= count) damaged[i - count] ^= i % 2 == 0 ? 1 : 4;
        write_all(damaged, i < count ? i : count);
        const tol_status status = kn_tuning_load(path, &here, &tuning);
        cr_assert(status == TOL_INVALID_FILE && tuning == NULL, "%zu of %zu: %s", i, count,
                  tol_status_name(status));
        cr_assert(strstr(tol_message(), path) != NULL, "%s", tol_message());
        free(damaged);
    }
    free(text);
}

/* Lines that fit the checksum and make no sense. */
Test(tuning, lines_that_make_no_sense_are_refused) {
    static const struct {
        const char *was, *is, *says;
    } all[] = {{"tollens tuning 1", "tollens tuning 2", "does not begin with"},
               {"device N", "gadget N", "\"device\" is expected"},
               {"driver 13000", "driver none!", "driver none!"},
               {"gemm 3", "gemm x", "line 7 is no result"},
               {" variant_0 ", " variant-0 ", "line 7 is no result"},
               {" 10.5 ", " -1.5 ", "line 7 is no result"},
               {" 10.5 ", " 1e99 ", "line 7 is no result"},
               {"end 4", "end 5", "is damaged: it ends with"}};
    size_t count = 0;
    write_file(4);
    char *text = read_all(&count);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct kn_tuning *tuning = NULL;
        char *changed = strdup(text), *at = strstr(changed, all[i].was);
        cr_assert(at != NULL && strlen(all[i].was) == strlen(all[i].is), "%s", all[i].was);
        memcpy(at, all[i].is, strlen(all[i].is));
        write_all(changed, count);
        MUST_FAIL(kn_tuning_load(path, &here, &tuning), TOL_INVALID_FILE, all[i].says);
        free(changed);
    }
    const size_t more = strlen(text);
    snprintf(text + more, 32, "gemm\n");
    write_all(text, more + 5);
    struct kn_tuning *tuning = NULL;
    MUST_FAIL(kn_tuning_load(path, &here, &tuning), TOL_INVALID_FILE, "goes on after its end");
    free(text);
}
