/*
 * The program with plugins: a saboteur that never ends does not keep the next from its turn, and
 * the saboteurs of P1 are caught on two devices, too.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(saboteur_program, .init = program_begin, .fini = program_end);

/* Goal: a saboteur that hangs is missed after its time, and the next one is caught. */
Test(saboteur_program, a_saboteur_that_hangs_takes_no_other_with_it) {
    const int code =
        program_shell("\"$T\" --plugin \"${T%/*}/hanging-claims.so\" run --sabotage --seeds 1 "
                      "--saboteur-deadline 2 --verbose --out \"$D/out\"");
    cr_assert(code != 0, "%s", program_output);
    cr_assert(program_says("HANGS was inconclusive under test_hangs, expected falsified"), "%s",
              program_output);
    cr_assert(program_says("severity 50 % (1 of 2)"), "%s", program_output);
    const char *line = strstr(program_output, "saboteur test_hangs");
    double seconds = 0;
    cr_assert(line != NULL &&
                  sscanf(line, "saboteur test_hangs inconclusive: WRONG %lf s", &seconds) == 1 &&
                  seconds >= 2,
              "%s", program_output);
    json_t *verdict = program_json("out/HANGS/sabotage/test_hangs/verdict.json");
    cr_assert_str_eq(json_string_value(json_object_get(verdict, "reason")),
                     "a_byte_is_allocated: it did not end before the saboteur's deadline");
    json_decref(verdict);
}

Test(saboteur_program, a_deadline_of_saboteurs_needs_saboteurs) {
    cr_assert(program_shell("\"$T\" run H3 --saboteur-deadline 5") == 2 &&
                  program_says("--saboteur-deadline limits the saboteurs of --sabotage, which is "
                               "missing"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run H3 --sabotage --saboteur-deadline soon") == 2 &&
                  program_says("--saboteur-deadline must be"),
              "%s", program_output);
}

/* Goal: two devices have one other device each, and a source can be another's all the same. */
Test(saboteur_program, a_pair_swapped_is_seen_on_two_devices) {
    cr_assert(program_shell("TOLLENS_SOFT_DEVICES=2 \"$T\" run P1 --under peer_pair_swapped "
                            "--filter 'all_pairs*' --out \"$D/out\"") != 0 &&
                  program_says("P1 falsified: all_pairs_at_once_return"),
              "%s", program_output);
}
