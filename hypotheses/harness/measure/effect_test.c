/*
 * Effects and conditions: what is written comes back, and what makes a machine unfit.
 */
#include "conditions.h"
#include "harness/effect.h"
#include "files/atomic_file.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hyp_effect example(void) {
    struct hyp_effect effect = {
        .name = "launch_4_arguments",
        .is_ratio = true,
        .rule = {.threshold = 1.05, .direction = HYP_AT_MOST, .family = 6},
        .blocks = 100,
        .calls = 50,
        .effect = {.median = 1.01, .low = 1.005, .high = 1.015, .spread = 0.02},
        .control = {.median = 1, .low = -INFINITY, .high = INFINITY, .spread = 0.01},
        .baseline_ns = 1800,
        .subject_ns = 1818,
        .discarded = {3, 4},
        .control_discarded = 5,
        .timing = {.by_call = true, .by_counter = true, .reading_ns = 25, .padding_bytes = 77},
        .decision = HYP_HOLDS,
        .code = "unfit_clock",
        .sentence = "the \"clock\" changed"};
    return effect;
}

static bool is_same(const struct hyp_interval *a, const struct hyp_interval *b) {
    return a->median == b->median && a->low == b->low && a->high == b->high &&
           a->spread == b->spread;
}

Test(effect, comes_back_as_it_was) {
    struct hyp_effect effect = example(), back;
    json_t *object = hyp_effect_pack(&effect);
    cr_assert(object != NULL);
    char *text = json_dumps(object, 0);
    json_decref(object);
    object = json_loads(text, 0, NULL);
    cr_assert(object != NULL, "no JSON: %s", text);
    cr_assert(hyp_effect_unpack(object, &back), "%s", text);
    cr_assert(is_same(&back.effect, &effect.effect) && is_same(&back.control, &effect.control));
    cr_assert_str_eq(back.name, effect.name);
    cr_assert_str_eq(back.code, effect.code);
    cr_assert_str_eq(back.sentence, effect.sentence);
    cr_assert(back.is_ratio && !back.recorded_only && back.blocks == 100 && back.calls == 50);
    cr_assert(back.rule.threshold == 1.05 && back.rule.direction == HYP_AT_MOST &&
              back.rule.family == 6 && back.decision == HYP_HOLDS);
    cr_assert(back.baseline_ns == 1800 && back.subject_ns == 1818);
    cr_assert(back.discarded[0] == 3 && back.discarded[1] == 4 && back.control_discarded == 5);
    cr_assert(strstr(text, "\"counter\"") != NULL && strstr(text, "\"padding_bytes\": 77") != NULL,
              "%s", text);
    json_decref(object);
    free(text);
}

Test(effect, a_count_of_discarded_calls_that_is_none_is_zero) {
    struct hyp_effect effect = example(), back;
    json_t *object = hyp_effect_pack(&effect);
    json_object_set_new(
        object, "discarded",
        json_pack("{s:f, s:i, s:s}", "baseline", 1e300, "subject", -5, "control", 4e9));
    cr_assert(hyp_effect_unpack(object, &back));
    cr_assert(back.discarded[0] == 0 && back.discarded[1] == 0 && back.control_discarded == 0);
    json_decref(object);
}

Test(effect, what_is_none_is_refused) {
    static const struct {
        const char *key;
        const char *value;
    } changes[] = {{"decision", "\"perhaps\""},
                   {"direction", "\"up\""},
                   {"family", "0"},
                   {"blocks", "-1"},
                   {"effect", "7"},
                   {"threshold", "\"2\""},
                   {"name", "7"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct hyp_effect effect = example(), back;
        json_t *object = hyp_effect_pack(&effect);
        json_object_set_new(object, changes[i].key,
                            json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
        cr_assert(!hyp_effect_unpack(object, &back), "%s", changes[i].key);
        json_decref(object);
    }
}

Test(effect, blocks_are_written_a_line_each) {
    char folder[] = "/tmp/tollens_effect_XXXXXX", path[256];
    static struct hyp_sample sample = {.count = 2};
    const struct hyp_pair pair = {
        .name = "made_up", .scale = 1e-3, .calls = 10, .rule = {.threshold = 2, .family = 1}};
    cr_assert(mkdtemp(folder) != NULL);
    for (int i = 0; i < 2; i++) {
        sample.blocks[i].swapped = i == 1;
        for (int k = 0; k < 4; k++) {
            sample.blocks[i].ns[k] = 1000 * (k + 1);
            sample.blocks[i].control_ns[k] = 500;
        }
    }
    sample.blocks[0].ns[1] = 22000;
    sample.blocks[1].waited_ns[3] = 7;
    sample.blocks[1].discarded[HYP_BASELINE] = 2;
    sample.blocks[1].discarded[HYP_SUBJECT] = 3;
    sample.blocks[1].control_discarded = 5;
    cr_assert(hyp_effect_write_blocks(folder, "attack", &pair, &sample), "%s", hyp_error());
    snprintf(path, sizeof path, "%s/attack.made_up.csv", folder);
    char *text = hyp_file_read(path, 65536, NULL);
    cr_assert(text != NULL, "%s", hyp_error());
    cr_assert(
        strstr(text, "\n1,BSSB,10,1000,22000,3000,4000,500,500,500,500,1,0,0,0,0,0,0,0,0\n") !=
            NULL,
        "%s", text);
    cr_assert(strstr(text, "\n2,SBBS,10,1000,2000,3000,4000,500,500,500,500,0,0,0,0,0,7,2,3,5\n") !=
                  NULL,
              "%s", text);
    free(text);
    cr_assert(hyp_directory_remove(folder));
}

static const struct hyp_conditions fine = {
    .timer_step_ns = 20, .pace_ns = 1000, .sm_mhz = 1980, .gpu_processes = 1, .throttle = 0};

static const char *judge(struct hyp_conditions after, double batch_ns_min) {
    static char sentence[256];
    const char *code = hyp_conditions_judge(&fine, &after, batch_ns_min, sentence, sizeof sentence);
    cr_assert(code == NULL || strlen(sentence) > 10, "%s without a sentence", code);
    return code != NULL ? code : "";
}

Test(conditions, each_that_is_unfit_has_a_code) {
    struct hyp_conditions after = fine;
    cr_assert_str_eq(judge(after, 5000), "");
    cr_assert_str_eq(judge(after, 1999), "unfit_timer");
    cr_assert_str_eq(judge(after, NAN), "unfit_timer");
    after.pace_ns = 1101;
    cr_assert_str_eq(judge(after, 5000), "unfit_clock");
    after.pace_ns = 899;
    cr_assert_str_eq(judge(after, 5000), "unfit_clock");
    after = fine;
    after.sm_mhz = 1600;
    cr_assert_str_eq(judge(after, 5000), "unfit_clock");
    after = fine;
    after.gpu_processes = 2;
    cr_assert_str_eq(judge(after, 5000), "unfit_shared");
    after = fine;
    after.throttle = 0x8;
    cr_assert_str_eq(judge(after, 5000), "unfit_throttle");
    after.throttle = 0x1 | 0x2 | 0x100; /* idle, a clock that was set, a display */
    cr_assert_str_eq(judge(after, 5000), "");
}

/* Unknown conditions neither allow nor forbid a verdict. */
Test(conditions, what_is_not_known_is_left_out) {
    struct hyp_conditions after = fine;
    after.sm_mhz = 0;
    after.gpu_processes = -1;
    after.throttle = -1;
    cr_assert_str_eq(judge(after, 5000), "");
}

Test(conditions, are_read_here) {
    struct hyp_conditions conditions;
    hyp_conditions_read(NULL, &conditions);
    cr_assert(conditions.timer_step_ns > 0 && conditions.timer_step_ns < 1e6);
    cr_assert(conditions.pace_ns > 1000, "%g", conditions.pace_ns);
    cr_assert(conditions.gpu_processes == -1 && conditions.throttle == -1);
    json_t *object = hyp_conditions_pack(&conditions);
    cr_assert(object != NULL);
    json_decref(object);
}

/* NVML's stand-in beside this program; without a buffer, it returns the number of processes. */
Test(conditions, processes_on_the_device_are_counted) {
    static const char *const words[] = {"others=0", "others=2 process=1000"};
    char path[4096] = "";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    cr_assert(slash != NULL);
    strcpy(slash, "/libnvml-stand-in.so");
    if (access(path, R_OK) != 0) cr_skip_test("there is no stand-in for NVML beside the tests");
    setenv("TOLLENS_LIBNVML", path, 1);
    for (int i = 0; i < 2; i++) {
        struct hyp_conditions conditions;
        setenv("TOLLENS_TEST_NVML", words[i], 1);
        hyp_conditions_read("0000:01:00.0", &conditions);
        cr_assert_eq(conditions.gpu_processes, i == 0 ? 0 : 3, "%d", conditions.gpu_processes);
    }
}
