/*
 * Rules are read, and what is wrong in them is refused with its line.
 */
#include "test/test_device.h"
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

Test(watch_rules, keys_are_read_and_the_others_have_their_defaults) {
    struct watch_rule *rules = NULL;
    size_t count = 0;
    MUST(watch_rules_read("# none\n\n [[rule]] # a rule\r\nname=\"a # b\" # c\n"
                          "\tkind =\t\"usual\"\nfalse_alarms = 0.001\nwindow_ms = 50\n"
                          "[[rule]]\nkind = \"copy_out_limit\"\nmb_per_s = 2.5\n"
                          "blocks = \"kv*\"\nname = \"b\"\nrefuse = true",
                          &rules, &count));
    cr_assert(count == 2);
    cr_assert(strcmp(rules[0].name, "a # b") == 0 && strcmp(rules[0].blocks, "*") == 0);
    cr_assert(rules[0].kind == TOL_WATCH_USUAL && !rules[0].refuse);
    cr_assert(rules[0].baseline.window_ns == 50000000 && rules[0].baseline.wanted == 3999);
    cr_assert(rules[1].kind == TOL_WATCH_COPY_OUT_LIMIT && rules[1].refuse);
    cr_assert(rules[1].mb_per_s == 2.5 && strcmp(rules[1].blocks, "kv*") == 0);
    free(rules);
    MUST(watch_rules_read(NULL, &rules, &count));
    cr_assert(count == 0 && rules == NULL);
}

Test(watch_rules, what_is_wrong_is_refused_with_its_line) {
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"name = \"a\"\n", "line 1 of the rules is before [[rule]]"},
        {"\n[rule]\n", "line 2 of the rules is neither"},
        {"[[rule]] x\n", "line 1 of the rules is neither"},
        {"[[rule]]\nnick = \"a\"\n", "line 2 of the rules: a rule has no key nick"},
        {"[[rule]]\nname = a\n", "line 2 of the rules: a string in quotes"},
        {"[[rule]]\nname = \"a\n", "line 2 of the rules: a string in quotes"},
        {"[[rule]]\nname = \"a\" b\n", "line 2 of the rules: a string in quotes"},
        {"[[rule]]\nname = \"a\\n\"\n", "no backslash"},
        {"[[rule]]\nname = \"a\"\nname = \"b\"\n", "line 3 of the rules: name is set already"},
        {"[[rule]]\nname = \"a\"\n", "the rule before line 3 of the rules has no kind"},
        {"[[rule]]\nkind = \"usual\"\n[[rule]]\n", "has no name"},
        {"[[rule]]\nname = \"a\"\nkind = \"never\"\n", "\"never\" is not a kind; there are"},
        {"[[rule]]\nrefuse = yes\n", "refuse is true or false, not yes"},
        {"[[rule]]\nrefuse = truely\n", "refuse is true or false"},
        {"[[rule]]\nmb_per_s = 0\n", "a number from 1e-06"},
        {"[[rule]]\nmb_per_s = nan\n", "a number from 1e-06"},
        {"[[rule]]\nmb_per_s = 1e\n", "a number from 1e-06"},
        {"[[rule]]\nfalse_alarms = 1.5\n", "a number from 1e-06 to 1 is expected"},
        {"[[rule]]\nname = \"a\"\nkind = \"copy_out_limit\"\n", "mb_per_s belongs to"},
        {"[[rule]]\nname = \"a\"\nkind = \"usual\"\nmb_per_s = 1\n", "mb_per_s belongs to"},
        {"[[rule]]\nname = \"a\"\nkind = \"no_read_back\"\nwindow_ms = 1\n", "belong to usual"},
        {"[[rule]]\nname = \"a\"\nkind = \"known_modules\"\nblocks = \"b\"\n", "has no blocks"},
    };
    struct watch_rule *rules = NULL;
    size_t count = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        MUST_FAIL(watch_rules_read(wrong[i].text, &rules, &count), TOL_INVALID_FILE, wrong[i].says);
    }
    char long_line[1024] = "";
    memset(long_line, '#', sizeof long_line - 1);
    MUST_FAIL(watch_rules_read(long_line, &rules, &count), TOL_INVALID_FILE, "1023 bytes");
    cr_assert(rules == NULL && count == 7);
    struct tol_watch *watch = NULL;
    MUST_FAIL(tol_watch_create(&(struct tol_watch_options){.rules = "x"}, &watch), TOL_INVALID_FILE,
              "line 1");
    cr_assert(watch == NULL);
}
