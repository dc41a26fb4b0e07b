/*
 * tollens model run: the text of a tiny model, several sessions, and what is said if it cannot run.
 */
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(model_run, .init = program_begin, .fini = program_end);

#define RUN "TOLLENS_DEVICE=soft \"$T\" model run "
#define MODEL "fixtures/models/llama-f32.gguf "
#define BIASED "fixtures/models/qwen2-q8_0.gguf "  /* qwen2 */
#define WORDS "fixtures/models/llama-q4_k_m.gguf " /* writes letters */

static json_t *run_json(const char *command, const char *name) {
    cr_assert(program_shell(command) == 0, "%s", program_output);
    json_t *found = program_json(name);
    cr_assert(found != NULL);
    return found;
}

static const char *text_of(const json_t *line) {
    return json_string_value(json_object_get(line, "text"));
}

Test(model_run, text_is_streamed_and_the_same_as_in_json) {
    cr_assert(program_shell(RUN MODEL "-p 'The driver' -n 12 --temp 0 > \"$D/text\"") == 0, "%s",
              program_output);
    json_t *line =
        run_json(RUN MODEL "-p 'The driver' -n 12 --temp 0 --json > \"$D/a.json\"", "a.json");
    cr_assert(json_integer_value(json_object_get(line, "tokens")) == 12);
    cr_assert_str_eq(json_string_value(json_object_get(line, "end")), "length");
    cr_assert(strlen(text_of(line)) > 10);
    program_write("want", text_of(line));
    cr_assert(program_shell("printf '\\n' >> \"$D/want\"; cmp \"$D/want\" \"$D/text\"") == 0, "%s",
              program_output);
    json_decref(line);
}

/* The last weight is NaN or infinity, and so is a logit. */
Test(model_run, logits_that_are_no_numbers_are_a_failure_at_every_temperature) {
    static const char *const weights[] = {"\\000\\000\\300\\177", "\\000\\000\\200\\177"};
    char command[400];
    for (size_t i = 0; i < 4; i++) {
        snprintf(command, sizeof command,
                 "cp " MODEL "\"$D/bad.gguf\" && printf '%s' | dd of=\"$D/bad.gguf\" bs=1 "
                 "seek=$(($(stat -c %%s \"$D/bad.gguf\") - 4)) conv=notrunc status=none && " RUN
                 "\"$D/bad.gguf\" -p Hello -n 3 --temp %zu",
                 weights[i / 2], i % 2);
        cr_assert(program_shell(command) == 2, "%zu: %s", i, program_output);
        cr_assert(program_says("ended after 0 tokens: the logit of token ") &&
                      program_says(" is NaN or +infinity: at position ") &&
                      program_says(" it begins in the output norm or matrix"),
                  "%zu: %s", i, program_output);
    }
}

/* Copies a model to bad.gguf, and writes 4 bytes to the beginning of a tensor there. */
static void spoil(const char *model, const char *tensor, const char *bytes) {
    char command[400];
    size_t i = 0;
    long long offset = -1;
    const json_t *one = NULL;
    snprintf(command, sizeof command, "\"$T\" model info --json %s > \"$D/info.json\"", model);
    json_t *info = run_json(command, "info.json");
    json_array_foreach(json_object_get(info, "tensors"), i, one) {
        const bool is_it = strcmp(json_string_value(json_object_get(one, "name")), tensor) == 0;
        if (is_it) offset = json_integer_value(json_object_get(one, "offset"));
    }
    json_decref(info);
    snprintf(command, sizeof command,
             "cp %s \"$D/bad.gguf\" && printf '%s' | dd of=\"$D/bad.gguf\" bs=1 seek=%lld "
             "conv=notrunc status=none",
             model, bytes, offset);
    cr_assert(offset > 0 && program_shell(command) == 0, "%s", program_output);
}

/* NaN in a layer; and 70,000 in a bias of values, which fp16 does not have and bytes do. */
Test(model_run, the_layer_is_named_where_a_text_fails) {
    spoil(MODEL, "blk.1.ffn_down.weight", "\\000\\000\\300\\177");
    cr_assert(program_shell(RUN "\"$D/bad.gguf\" -p Hello -n 3") == 2, "%s", program_output);
    cr_assert(program_says("values stop being finite in layer 1 of 2 (blk.1), at position "), "%s",
              program_output);
    spoil(BIASED, "blk.0.attn_v.bias", "\\000\\270\\210\\107");
    cr_assert(program_shell(RUN "\"$D/bad.gguf\" -p Hello -n 3") == 2, "%s", program_output);
    cr_assert(program_says("a value of layer 0 at position 0 is 65520 or more in magnitude, which "
                           "the cache of f16 cannot hold; one of q8_0 holds 127 times as much"),
              "%s", program_output);
    cr_assert(program_shell(RUN "\"$D/bad.gguf\" -p Hello -n 3 --cache q8_0") == 0, "%s",
              program_output);
}

Test(model_run, a_session_writes_what_it_writes_alone) {
    static const char both[] =
        RUN MODEL "-p Hello -n 10 --temp 0.9 --top-k 50 --top-p 0.95 --min-p 0.01 "
                  "--repeat-penalty 1.1 --seed 7 --sessions 2 --ctx 64 --json | tail -n 1 > "
                  "\"$D/both.json\"";
    static const char alone[] =
        RUN MODEL "-p Hello -n 10 --temp 0.9 --top-k 50 --top-p 0.95 --min-p 0.01 "
                  "--repeat-penalty 1.1 --seed 8 --ctx 64 --json > \"$D/alone.json\"";
    json_t *second = run_json(both, "both.json"), *single = run_json(alone, "alone.json");
    cr_assert(json_integer_value(json_object_get(second, "session")) == 1);
    cr_assert_str_eq(text_of(second), text_of(single));
    json_decref(second);
    json_decref(single);
}

Test(model_run, a_stop_string_and_a_full_context_end_a_text) {
    json_t *line = run_json(RUN WORDS "-p 'one two' -n 20 --json > \"$D/a.json\"", "a.json");
    json_t *stopped = run_json(
        RUN WORDS "-p 'one two' -n 20 --stop nothing --stop gech --json > \"$D/b.json\"", "b.json");
    const char *stop = strstr(text_of(line), "gech");
    cr_assert(stop != NULL, "%s", text_of(line));
    cr_assert_str_eq(json_string_value(json_object_get(stopped, "end")), "stop");
    cr_assert(strlen(text_of(stopped)) == (size_t)(stop - text_of(line)));
    cr_assert(strncmp(text_of(stopped), text_of(line), strlen(text_of(stopped))) == 0);
    json_t *full = run_json(RUN MODEL "-p Hello -n 50 --ctx 16 --json > \"$D/c.json\"", "c.json");
    cr_assert_str_eq(json_string_value(json_object_get(full, "end")), "context");
    cr_assert(json_integer_value(json_object_get(full, "tokens")) +
                  json_integer_value(json_object_get(full, "prompt_tokens")) ==
              17);
    json_decref(line);
    json_decref(stopped);
    json_decref(full);
}

#define REFUSED(words, text)                                                                       \
    cr_assert(program_shell(RUN words) == 2 && program_says(text), "%s", program_output)

Test(model_run, what_is_wrong_is_said) {
    REFUSED("", "model run requires a file");
    REFUSED(MODEL "< /dev/null", "requires a prompt: -p");
    REFUSED(MODEL "-p a -f b", "-p and -f are two prompts");
    REFUSED(MODEL "-f \"$D/none\"", "none cannot be opened");
    REFUSED(MODEL "-p a --temp hot", "--temp must be a number, not 'hot'");
    REFUSED(MODEL "-p a --temp 3", "temperature is 3; it must be from 0 to 2");
    REFUSED(MODEL "-p a -n 0", "-n must be at least 1");
    REFUSED(MODEL "-p a --tmp 1", "no option --tmp");
    REFUSED(MODEL "b -p a", "b is a second one");
    REFUSED("\"$D/none\" -p a", "none");
    REFUSED("fixtures/models/vocabulary-spm.gguf -p a", "tollens: ");
    REFUSED(MODEL "-p a --ctx 1000000", "1000000 positions is wanted");
    REFUSED(MODEL "-p 'a b c d e f g h i j k l m n o p q r s t' --ctx 8",
            "the context 8 positions");
    REFUSED(MODEL "-p a --device soft:9", "tollens: ");
    cr_assert(program_shell("TOLLENS_LIBCUDA=/none \"$T\" model run " MODEL "-p a --device cuda") ==
                  2,
              "%s", program_output);
}

Test(model_run, a_bench_has_a_row_for_the_prompt_and_for_each_batch) {
    cr_assert(program_shell("TOLLENS_DEVICE=soft \"$T\" model bench " MODEL
                            "-p 8 -n 2 -r 1 --json > \"$D/rows\"; "
                            "[ $(wc -l < \"$D/rows\") = 7 ] && grep -q '\"test\": \"pp8\"' "
                            "\"$D/rows\" && grep -q '\"test\": \"tg2 @ 32\"' \"$D/rows\"") == 0,
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model bench") == 2 && program_says("bench requires a file"));
    cr_assert(program_shell("\"$T\" model bench a -n 0") == 2 && program_says("from 1 to 100000"));
}

Test(model_run, ctrl_c_ends_it_cleanly) {
    cr_assert(program_shell(RUN MODEL "-p a -n 1000000 --ctx 2000 > \"$D/out\" & "
                                      "while ! [ -s \"$D/out\" ]; do sleep 0.05; done; "
                                      "kill -TERM $!; wait $!") == 130,
              "%s", program_output);
}

/* A folder with every time, that readers of such logs understand; and the kernels of a token. */
Test(model_run, a_bench_leaves_its_times_and_counts_kernels) {
    cr_assert(program_shell("TOLLENS_DEVICE=soft \"$T\" model bench " MODEL
                            " -p 20 -n 3 -r 2 --out \"$D/bench\"") == 0,
              "%s", program_output);
    cr_assert(program_says("19 kernels of a token take"), "%s", program_output);
    json_t *rows = program_json("bench/bench.json");
    cr_assert(json_array_size(rows) == 7);
    const json_t *first = json_array_get(rows, 2), *one = json_array_get(rows, 3);
    const json_t *gaps = json_array_get(rows, 6);
    cr_assert_str_eq(json_string_value(json_object_get(first, "test")), "first20");
    cr_assert(json_number_value(json_object_get(first, "p50_ns")) > 1000);
    /* The weights without the embedding, and the keys and values of two positions and a half. */
    cr_assert(json_number_value(json_object_get(one, "read_bytes")) <
              json_number_value(json_object_get(one, "weight_bytes")));
    cr_assert(json_integer_value(json_object_get(gaps, "kernels")) == 19);
    cr_assert(json_number_value(json_object_get(gaps, "kernels_ns")) > 1000);
    json_decref(rows);
    cr_assert(program_shell("grep -c '^Tag=first20,\\|^Tag=tg3@1,\\|^Tag=tg3@8,\\|^Tag=tg3@32,' "
                            "\"$D/bench/times.hlog\"") == 0);
    cr_assert(program_says("4"), "%s", program_output);
    cr_assert(program_shell("\"$T\" model bench " MODEL " --device soft -p 2 -n 1 -r 1 --out "
                            "/dev/null/there") == 2);
    cr_assert(program_says("/dev/null/there"), "%s", program_output);
}

/* Rows of steps that draw, on the device and on the host. */
Test(model_run, a_bench_draws_where_it_is_told_to) {
    char command[300];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "\"$T\" model bench " MODEL "--device soft -p 4 -n 2 -r 1 --temp 1.5 --top-k 20 "
                 "--top-p 0.9 %s --json > \"$D/rows\"; [ $(wc -l < \"$D/rows\") = 7 ]",
                 i == 0 ? "" : "--host-draws");
        cr_assert(program_shell(command) == 0, "%s", program_output);
    }
    cr_assert(program_shell("\"$T\" model bench " MODEL "--temp 3 --device soft -p 4 -n 1 -r 1") ==
                      2 &&
                  program_says("the temperature is 3"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model bench " MODEL "--top-k many") == 2 &&
                  program_says("--top-k must be a number of 0 or more, not 'many'"),
              "%s", program_output);
}

/* llama-q4_k_m has heads of 64 elements, and llama-f32 of 16, which are no block of Q8_0. */
Test(model_run, the_cache_may_be_of_bytes) {
    const char *const model = "\"$R/fixtures/models/llama-q4_k_m.gguf\" ";
    char command[400];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "TOLLENS_DEVICE=soft \"$T\" model run %s -p abc -n 8 --temp 1 --cache %s > "
                 "\"$D/%d\" && [ -s \"$D/%d\" ]",
                 model, i == 0 ? "f16" : "q8_0", i, i);
        cr_assert(program_shell(command) == 0, "%s", program_output);
    }
    REFUSED(MODEL "-p a --cache q8_0", "the model's have 16");
    REFUSED(MODEL "-p a --cache q4_0", "--cache must be f16 or q8_0, not 'q4_0'");
    cr_assert(program_shell("\"$T\" model bench " MODEL "--cache bf16") == 2 &&
              program_says("--cache must be f16 or q8_0"));
}

/* The text of one device, drawn by chance; and a bench without the kernels of one device. */
Test(model_run, several_devices_write_the_text_of_one) {
    static const char *const lists[] = {"0", "1,0"};
    char *texts[2];
    char command[400];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "TOLLENS_SOFT_DEVICES=2 " RUN MODEL "-p abc -n 6 --temp 1 --devices %s --json "
                 "> \"$D/%d\"",
                 lists[i], i);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        json_t *line = program_json(i == 0 ? "0" : "1");
        texts[i] = strdup(text_of(line));
        const char *device = json_string_value(json_object_get(line, "device"));
        cr_assert((strncmp(device, "2 of ", 5) == 0) == (i == 1), "%s", device);
        json_decref(line);
    }
    cr_assert(texts[0][0] != '\0' && strcmp(texts[0], texts[1]) == 0, "%s, %s", texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    cr_assert(program_shell("TOLLENS_SOFT_DEVICES=2 TOLLENS_DEVICE=soft \"$T\" model bench " MODEL
                            "-p 2 -n 1 -r 1 --devices 0,1 --exchange direct --json > \"$D/rows\"; "
                            "[ $(wc -l < \"$D/rows\") = 6 ] && grep -q '2 of ' \"$D/rows\"") == 0,
              "%s", program_output);
    REFUSED(MODEL "-p a --devices 0,0", "--devices must be numbers of different devices");
    REFUSED(MODEL "-p a --devices 0,", "not '0,'");
    cr_assert(program_shell("\"$T\" model bench " MODEL "--exchange ring") == 2 &&
              program_says("--exchange must be auto, direct or flags, not 'ring'"));
}

/* 0 is no penalty, and -1 the whole text, which is longer than the 64 of the default. */
Test(model_run, the_window_of_the_penalty_is_llama_cpps) {
    static const char *const pairs[][2] = {
        {"--repeat-penalty 1.5 --repeat-last-n 0", "--repeat-penalty 1"},
        {"--repeat-penalty 1.5 --repeat-last-n=64", "--repeat-penalty 1.5"},
        {"--repeat-penalty 1.5 --repeat-last-n -1", "--repeat-penalty 1.5 --repeat-last-n 200"}};
    char command[400];
    for (int i = 0; i < 6; i++) {
        snprintf(command, sizeof command, RUN MODEL "-p 'a a a a' -n 100 %s > \"$D/%d\"",
                 pairs[i / 2][i % 2], i);
        cr_assert(program_shell(command) == 0, "%s", program_output);
    }
    cr_assert(program_shell("cd \"$D\"; cmp 0 1 && cmp 2 3 && cmp 4 5") == 0, "%s", program_output);
    cr_assert(program_shell("cd \"$D\"; cmp -s 0 2 || cmp -s 2 4 || cmp -s 0 4") == 1);
    REFUSED(MODEL "-p a --repeat-last-n -2", "--repeat-last-n must be a number from -1 to ");
}

/* The names that llama.cpp has for the same options. */
Test(model_run, options_have_llama_cpps_names_too) {
    static const char *const calls[] = {
        MODEL "-p 'The driver' -n 9 --temp 0.8 --seed 5 --ctx 64 --stop q --ignore-end",
        "-m " MODEL "--prompt 'The driver' --n-predict 9 --temperature 0.8 -s 5 -c 64 -r q "
        "--ignore-eos",
        "--model=" MODEL "--prompt='The driver' --predict=9 --temperature=0.8 --ctx-size=64 "
        "--seed=5 --reverse-prompt=q --ignore-eos"};
    char command[400];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, RUN "%s > \"$D/%d\" && cmp \"$D/0\" \"$D/%d\"", calls[i],
                 i, i);
        cr_assert(program_shell(command) == 0, "%s", program_output);
    }
    cr_assert(program_shell("[ $(wc -c < \"$D/0\") -gt 8 ]") == 0);
    REFUSED("-m " MODEL "b -p a", "b is a second one");
    REFUSED(MODEL "-p a --temperature hot", "--temperature must be a number, not 'hot'");
    REFUSED(MODEL "-p a --n-predict=x", "--n-predict must be a number from 0 to 2147483647");
}

/* One argument of a program has at most 128 KiB; and a prompt that does not fit is refused. */
Test(model_run, a_prompt_comes_from_a_file_or_from_standard_input) {
    static const char *const ways[] = {"-p 'The driver' -n 6", "--file \"$D/prompt\" --n-predict 6",
                                       "-n 6 < \"$D/prompt\""};
    char command[300];
    program_write("prompt", "The driver\n");
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, RUN MODEL "%s > \"$D/%d\" && cmp \"$D/0\" \"$D/%d\"",
                 ways[i], i, i);
        cr_assert(program_shell(command) == 0, "%s", program_output);
    }
    cr_assert(program_shell("yes 'word 12345' | head -c 400000 > \"$D/long\"") == 0);
    REFUSED(MODEL "-n 1 -f \"$D/long\"", "more than 2048 tokens, and the context 2048 positions");
    cr_assert(program_says("give --ctx N"), "%s", program_output);
}

Test(model_run, an_error_is_an_object_too) {
    static const char *const calls[] = {"model run \"$D/none\" -p a --json",
                                        "model run a --tmp 1 --json",
                                        "model bench \"$D/none\" --json"};
    char command[300];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command,
                 "TOLLENS_DEVICE=soft \"$T\" %s > \"$D/error.json\"; [ $? = 2 ]", calls[i]);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        json_t *error = program_json("error.json");
        cr_assert(json_integer_value(json_object_get(error, "exit_code")) == 2);
        cr_assert(strlen(json_string_value(json_object_get(error, "error"))) > 10);
        json_decref(error);
    }
}

/* A text that failed says why, in its own object; there is no second one. */
Test(model_run, a_text_that_failed_says_why_as_json) {
    cr_assert(program_shell("cp " MODEL "\"$D/bad.gguf\" && printf '\\000\\000\\300\\177' | dd "
                            "of=\"$D/bad.gguf\" bs=1 seek=$(($(stat -c %s \"$D/bad.gguf\") - 4)) "
                            "conv=notrunc status=none; " RUN
                            "\"$D/bad.gguf\" -p Hello -n 3 --json > \"$D/bad.json\"; [ $? = 2 ]") ==
                  0,
              "%s", program_output);
    json_t *line = program_json("bad.json");
    cr_assert(line != NULL);
    cr_assert_str_eq(json_string_value(json_object_get(line, "end")), "failed");
    const char *error = json_string_value(json_object_get(line, "error"));
    cr_assert(error != NULL && strncmp(error, "the logit of token ", 19) == 0, "%s", error);
    json_decref(line);
}

#define NULS "fixtures/models/qwen3-bf16.gguf -p Hello -n 40 --temp 0.9 " /* seed 6 writes a NUL */

Test(model_run, texts_of_several_sessions_are_whole) {
    cr_assert(program_shell(RUN NULS "--seed 6 > \"$D/one\"; " RUN NULS
                                     "--seed 5 --sessions 2 > \"$D/two\"; tail -c "
                                     "$(stat -c %s \"$D/one\") \"$D/two\" | cmp - \"$D/one\"") == 0,
              "%s", program_output);
    cr_assert(program_shell("tr -d '\\000' < \"$D/one\" | cmp -s - \"$D/one\"") == 1);
}
