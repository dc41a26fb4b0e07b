/*
 * tollens export: each form has the numbers, where its readers look for them.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <string.h>

static const char results[] =
    "{\"schema\": 1, \"device\": {\"kind\": \"soft\", \"name\": \"A \\\"device\\\"\"}, \"mode\": "
    "\"quick\", \"commit\": \"abc\", \"claims\": ["
    "{\"id\": \"H4\", \"verdict\": \"survived\", \"reason\": null, \"effect\": 0.5, \"unit\": "
    "\"us\", "
    "\"low\": 0.25, \"high\": 1.0, \"threshold\": 2.0, \"direction\": \"at_most\", \"samples\": "
    "50, "
    "\"severity\": {\"caught\": 1, \"of\": 2, \"untold\": 1}},"
    "{\"id\": \"H10\", \"verdict\": \"falsified\", \"reason\": \"why\", \"effect\": 1.25, "
    "\"unit\": "
    "\"speedup\", \"low\": null, \"high\": null, \"threshold\": 1.5, \"direction\": \"above\", "
    "\"samples\": 9, \"severity\": null},"
    "{\"id\": \"H11\", \"verdict\": \"not_tested\", \"reason\": \"no GPU\", \"effect\": null, "
    "\"unit\": \"ratio\", \"low\": null, \"high\": null, \"threshold\": 1.05, \"direction\": "
    "\"at_most\", \"samples\": 0, \"severity\": null}]}";

static void begin(void) {
    program_begin();
    program_write("out/results.json", results);
}
TestSuite(export, .init = begin, .fini = program_end);

static json_t *export_json(const char *command) {
    json_error_t error;
    cr_assert_eq(program_shell(command), 0, "%s", program_output);
    json_t *object = json_loads(program_output, 0, &error);
    cr_assert(object != NULL, "%s: %s", error.text, program_output);
    return object;
}

Test(export, bencher_reads_value_and_bounds) {
    json_t *all = export_json("\"$T\" export \"$D/out\" --format bmf");
    cr_assert_eq(json_object_size(all), 2, "what has no effect has no number");
    const json_t *h4 = json_object_get(
        json_object_get(all, "H4: The runtime adds at most 2 us to a launch"), "us");
    cr_assert(json_number_value(json_object_get(h4, "value")) == 0.5, "%s", program_output);
    cr_assert(json_number_value(json_object_get(h4, "lower_value")) == 0.25);
    cr_assert(json_number_value(json_object_get(h4, "upper_value")) == 1.0);
    json_decref(all);
}

Test(export, github_action_benchmark_has_its_directions_apart) {
    json_t *smaller = export_json("\"$T\" export --format=gab \"$D/out\"");
    cr_assert_eq(json_array_size(smaller), 1);
    const json_t *h4 = json_array_get(smaller, 0);
    cr_assert(json_number_value(json_object_get(h4, "value")) == 0.5);
    cr_assert_str_eq(json_string_value(json_object_get(h4, "unit")), "us");
    cr_assert_str_eq(json_string_value(json_object_get(h4, "range")), "± 0.5");
    json_decref(smaller);
    json_t *bigger = export_json("\"$T\" export --format gab-bigger \"$D/out\"");
    cr_assert_eq(json_array_size(bigger), 1);
    cr_assert(json_number_value(json_object_get(json_array_get(bigger, 0), "value")) == 1.25);
    json_decref(bigger);
}

/* What is too long is cut, and half a character is no text that JSON may have. */
Test(export, no_claim_is_lost_to_a_long_name) {
    char text[4096], name[600] = "";
    for (int i = 0; i < 150; i++) strcat(name, "é");
    for (int blank = 0; blank < 2; blank++) {
        snprintf(text, sizeof text, "%.*s%s%s%s", (int)(strstr(results, "A ") - results), results,
                 blank ? " " : "", name, strstr(results, "A ") + strlen("A \\\"device\\\""));
        program_write("out/results.json", text);
        json_t *smaller = export_json("\"$T\" export --format=gab \"$D/out\"");
        cr_assert_eq(json_array_size(smaller), 1, "%s", program_output);
        json_decref(smaller);
    }
}

Test(export, what_contradicts_itself_is_refused) {
    static const char *const severities[] = {
        "{\"caught\": 1, \"of\": 2, \"untold\": 2}",
        "{\"caught\": 2147483647, \"of\": 2147483647, \"untold\": 2147483647}",
        "{\"caught\": -1, \"of\": 2}"};
    const char *severity = strstr(results, "{\"caught\"");
    for (size_t i = 0; i < sizeof severities / sizeof severities[0]; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%.*s%s%s", (int)(severity - results), results, severities[i],
                 strchr(severity, '}') + 1);
        program_write("out/results.json", text);
        cr_assert_eq(program_shell("\"$T\" export --format=gab \"$D/out\""), 2);
        cr_assert(program_says("the severity of H4 is invalid"), "%s", program_output);
    }
    program_write("out/results.json", results);
    int code = program_shell("printf '\\000{' >>\"$D/out/results.json\"; "
                             "\"$T\" export --format=gab \"$D/out\"");
    cr_assert(code == 2 && program_says("not valid JSON"), "what follows a byte 0 counts: %s",
              program_output);
}

Test(export, openmetrics_has_each_verdict_and_ends) {
    cr_assert_eq(program_shell("\"$T\" export \"$D/out\" --format openmetrics"), 0);
    static const char *const lines[] = {
        "# TYPE tollens_verdict stateset\n",
        ("tollens_run_info{device=\"A \\\"device\\\"\",kind=\"soft\",mode=\"quick\","
         "commit=\"abc\"} 1\n"),
        "tollens_verdict{claim=\"H4\",tollens_verdict=\"survived\"} 1\n",
        "tollens_verdict{claim=\"H11\",tollens_verdict=\"survived\"} 0\n",
        "tollens_verdict{claim=\"H11\",tollens_verdict=\"not_tested\"} 1\n",
        "tollens_effect{claim=\"H4\",unit=\"us\"} 0.5\n",
        "tollens_effect_high{claim=\"H4\",unit=\"us\"} 1\n",
        "tollens_severity{claim=\"H4\",unit=\"us\"} 0.5\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cr_assert(program_says(lines[i]), "%s is missing: %s", lines[i], program_output);
    }
    cr_assert(!program_says("tollens_effect{claim=\"H11\""), "%s", program_output);
    const char *end = program_output + strlen(program_output) - strlen("# EOF\n");
    cr_assert_str_eq(end, "# EOF\n");
}

/* A line break would end the command, and the rest would be another one. */
Test(export, github_is_told_of_what_did_not_survive) {
    program_write("now/results.json",
                  "{\"schema\": 1, \"device\": {\"kind\": \"soft\", \"name\": \"s\"}, \"mode\": "
                  "\"quick\", \"claims\": [{\"id\": \"H1\", \"verdict\": \"survived\", "
                  "\"effect\": 0, \"unit\": \"violations\", \"threshold\": 0, \"direction\": "
                  "\"at_most\"}, {\"id\": \"H3\", \"verdict\": \"falsified\", \"reason\": "
                  "\"7 %\\n::stop-commands::x\", \"effect\": 1, \"unit\": \"violations\", "
                  "\"threshold\": 0, \"direction\": \"at_most\"}]}");
    cr_assert_eq(program_shell("\"$T\" export \"$D/now\" --format github"), 0, "%s",
                 program_output);
    cr_assert_str_eq(program_output,
                     "::error title=H3 falsified::Memory transfers return the bytes "
                     "that were sent: 7 %25%0A::stop-commands::x\n");
}

Test(export, junit_is_the_runs_own) {
    program_write("out/junit.xml", "<testsuites/>\n");
    cr_assert_eq(program_shell("\"$T\" export \"$D/out\" --format junit"), 0);
    cr_assert_str_eq(program_output, "<testsuites/>\n");
}

Test(export, wrong_words_and_full_disks_are_errors) {
    static const char *const commands[] = {"\"$T\" export",
                                           "\"$T\" export \"$D/out\"",
                                           "\"$T\" export \"$D/out\" --format",
                                           "\"$T\" export \"$D/out\" --format xls",
                                           "\"$T\" export \"$D/none\" --format bmf",
                                           "\"$T\" export \"$D/out\" --format junit",
                                           "\"$T\" export \"$D/out\" --format bmf >/dev/full"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int code = program_shell(commands[i]);
        cr_assert(code == 2 && program_says("tollens: "), "%s: %d: %s", commands[i], code,
                  program_output);
    }
}
