/*
 * tollens guard: lines and frames, failures of workers, a file of answers that is gone on with, a
 * language model whose device is lost in the middle of its texts, and what is said to mistakes.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(void) {
    program_begin();
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
}
TestSuite(guard_program, .init = begin, .fini = program_end);

#define CLIENT "\"$(dirname \"$T\")/guard-client\""
#define SUCCEEDS(command) cr_assert(program_shell(command) == 0, "%s", program_output)
#define SAYS(text) cr_assert(program_says(text), "%s", program_output)
#define REFUSED(words, text)                                                                       \
    cr_assert(program_shell("\"$T\" guard " words " < /dev/null") == 2 && program_says(text),      \
              "%s", program_output)

Test(guard_program, lines_are_answered_in_their_order_by_any_program) {
    SUCCEEDS("seq 1 300 | \"$T\" guard --devices a,b,c --lines -- sed -u 's/$/ answered/' > "
             "\"$D/out\"; seq 1 300 | sed 's/$/ answered/' | cmp - \"$D/out\"");
}

Test(guard_program, a_kernel_that_faults_takes_its_process_and_no_job) {
    SUCCEEDS("seq 1 60 | \"$T\" guard --json -- " CLIENT
             " --device --how fault --every 10 --on soft:1 > \"$D/out\" 2> \"$D/err\"; "
             "grep '^{' \"$D/err\" > \"$D/a.json\"; "
             "test $(grep -c '^done' \"$D/out\") = 60 && "
             "test $(grep '^done' \"$D/out\" | sort -u | wc -l) = 60");
    json_t *summary = program_json("a.json");
    const json_int_t faults = json_integer_value(json_object_get(summary, "faults"));
    cr_assert(json_integer_value(json_object_get(summary, "answered")) == 60);
    cr_assert(json_integer_value(json_object_get(summary, "begun")) == 60 + faults);
    cr_assert(json_integer_value(json_object_get(json_object_get(summary, "handovers"), "count")) ==
              faults);
    cr_assert(json_array_size(json_object_get(summary, "devices")) == 2);
    json_decref(summary);
}

Test(guard_program, answers_are_gone_on_with_and_a_torn_one_is_given_again) {
#define GUARD "\"$T\" guard --devices a,b --journal \"$D/j\" --results \"$D/r\" -- " CLIENT
    SUCCEEDS("seq 1 30 | " GUARD);
    SUCCEEDS("cp \"$D/r\" \"$D/whole\"; truncate -s -3 \"$D/r\"; seq 1 30 | " GUARD
             " && cmp \"$D/r\" \"$D/whole\"");
    SAYS("30 by an earlier guard");
    SUCCEEDS("seq 1 33 | " GUARD " && test $(grep -c ^done \"$D/r\") = 33");
    cr_assert(program_shell("seq 2 9 | " GUARD) == 2);
    SAYS("job 1 is not the journal's job 1");
    cr_assert(program_shell("echo a text > \"$D/r\"; seq 1 33 | " GUARD) == 2);
    SAYS("has more than the answers of a guard, at byte 0; it was not changed");
    SUCCEEDS("grep -x 'a text' \"$D/r\"");
    cr_assert(program_shell("echo a text > \"$D/j\"; rm \"$D/r\"; seq 1 33 | " GUARD) == 2);
    SAYS("is no journal of a guard");
}

Test(guard_program, a_full_disk_is_a_sentence_and_room_lets_it_go_on) {
    cr_assert(program_shell("(ulimit -f 8; seq 1 400 | " GUARD ")") == 2, "%s", program_output);
    SAYS("cannot grow beyond");
    SAYS("File too large. Make room and start again with the same journal");
    SUCCEEDS("seq 1 400 | " GUARD " && test $(grep '^done' \"$D/r\" | sort -u | wc -l) = 400 && "
             "test $(grep -c '^done' \"$D/r\") = 400");
}

Test(guard_program, a_job_that_fails_is_exit_code_1_and_a_fenced_device_has_its_reason) {
    cr_assert(program_shell("seq 1 5 | \"$T\" guard --devices a --failures 9 -- " CLIENT
                            " --how exit --every 3 --on a") == 1);
    SAYS("fail 3 ");
    SAYS("it ended 3 workers; the latest: it ended with exit code 0, during job 3");
    cr_assert(program_shell("seq 1 5 | \"$T\" guard --devices a,b --probe 'echo no power; exit 1' "
                            "-- " CLIENT) == 2);
    SAYS("every device is fenced, and 5 of 5 jobs have no answer; a: the probe failed, it ended "
         "with exit code 1: no power; b: the probe failed");
    SAYS("b is fenced: the probe failed");
}

Test(guard_program, a_device_that_does_not_exist_is_fenced_by_its_probe) {
    SUCCEEDS("seq 1 40 | \"$T\" guard --devices soft:0,soft:9 -- sh -c 'sleep .3; exec " CLIENT
             "' > \"$D/out\"; test $(grep -c ^done \"$D/out\") = 40");
    SAYS("soft:9 is fenced: the probe failed, it ended with exit code 1");
    SAYS("device 9");
}

/* Device soft:0 is lost in the middle of a text each time; what it has drawn is not drawn again. */
Test(guard_program, texts_go_on_elsewhere_from_their_last_token) {
#define MODEL "\"$T\" model run fixtures/models/llama-f32.gguf --guarded -n 6 --temp 0.9 --seed 3"
    program_write("faults",
                  "{\"rules\": [{\"function\": \"cuGraphLaunch\", \"nth\": 3, \"action\": "
                  "\"lose_context\", \"code\": 700}]}");
    program_write("worker", "test $TOLLENS_GUARD_DEVICE != soft:0 || export "
                            "TOLLENS_SOFT_FAULTS=\"$D/faults\"\nexec \"$@\"\n");
    SUCCEEDS("cd \"$R\"; printf 'A\\nB\\n' > \"$D/prompts\"; "
             "\"$T\" guard --order --devices soft:0 -- " MODEL " < \"$D/prompts\" > \"$D/alone\"");
    SUCCEEDS("cd \"$R\"; \"$T\" guard --order -- sh \"$D/worker\" " MODEL
             " < \"$D/prompts\" > \"$D/moved\" && cmp \"$D/alone\" \"$D/moved\"");
    SAYS("busy -- fault --> ending");
    SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
    SUCCEEDS("cd \"$R\"; \"$T\" guard --order -- sh \"$D/worker\" " MODEL
             " --json < \"$D/prompts\" 2> /dev/null");
    cr_assert(strstr(program_output, "\"replayed\": 0") != NULL, "%s", program_output);
    cr_assert(strstr(program_output, "\"replayed\": 3") != NULL ||
                  strstr(program_output, "\"replayed\": 4") != NULL ||
                  strstr(program_output, "\"replayed\": 2") != NULL,
              "%s", program_output);
}

Test(guard_program, a_text_of_other_settings_is_not_gone_on_with) {
    /* What a worker of another seed has kept, given to it as a guard does. */
    cr_assert(program_shell("cd \"$R\"; printf 'part 1 9\\nseed=8\\n7\\n\\njob 1 1\\nA\\n' | "
                            "TOLLENS_GUARD_BEAT_MS=0 " MODEL) == 0,
              "%s", program_output);
    SAYS("job 1 was begun with other settings");
    SAYS("fail 1 ");
}

Test(guard_program, the_worker_of_the_readme_works) {
    if (program_shell("command -v python3 && test -e \"$R/runtime/guard/README.md\"") != 0) {
        cr_skip_test("no python3, or no sources");
    }
    SUCCEEDS("sed -n '/^```python/,/^```/{/^```/d;p;}' \"$R/runtime/guard/README.md\" > "
             "\"$D/worker.py\"; seq 1 50 | \"$T\" guard --order --devices a,b -- python3 "
             "\"$D/worker.py\" > \"$D/out\"; "
             "seq 1 50 | while read -r n; do a=$((n * n)); "
             "printf 'done %s %s\\n%s\\n' $n ${#a} $a; done | cmp - \"$D/out\"");
}

Test(guard_program, mistakes_are_said) {
    REFUSED("", "guard requires a program");
    REFUSED("--devices a --", "guard requires a program");
    REFUSED("--lnes -- true", "--lnes is not an option");
    REFUSED("--job-time 0 -- true", "--job-time must be a number from 0.001");
    REFUSED("--failures none -- true", "--failures must be a number from 1");
    REFUSED("--journal j -- true", "--journal requires --results FILE");
    REFUSED("--devices a --jobs /none/such -- true", "/none/such: No such file");
    REFUSED("--devices a,,b -- true", "device 1 needs a name");
    REFUSED("--devices= -- true", "requires a value");
    SUCCEEDS("\"$T\" guard --help | grep -q 'answered exactly once' && \"$T\" guard --states | "
             "grep -q 'closing *late *ending'");
}
