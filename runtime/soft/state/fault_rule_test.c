/*
 * The file of fault rules: valid rules, and refused ones with their place.
 */
#include "fault_rule.h"
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static struct soft_arena arena;
static struct soft_json_error error;
static struct soft_fault_rules rules;

static bool read(const char *text) {
    memset(&error, 0, sizeof error);
    return soft_fault_rules_read(&arena, text, strlen(text), &rules, &error);
}

static void end(void) {
    soft_arena_clear(&arena);
}

TestSuite(fault_rule, .fini = end);

Test(fault_rule, a_rule_says_what_it_wants) {
    cr_assert(
        read("{\"quiet\": true, \"rules\": [\n"
             " {\"function\": \"cuMemAlloc*\", \"nth\": 3, \"action\": \"return\", "
             "\"code\": \"CUDA_ERROR_OUT_OF_MEMORY\", \"times\": 2},\n"
             " {\"action\": \"delay\", \"us\": 20, \"function\": \"cuLaunchKernel\", "
             "\"percent\": 2.5, \"seed\": 7, \"thread\": \"each\"},\n"
             " {\"action\": \"budget\", \"bytes\": \"3M\"},\n"
             " {\"action\": \"later\", \"code\": 700, \"function\": \"cu*\", \"stream\": 4},\n"
             " {\"action\": \"flip\", \"function\": \"cuLaunchKernel\", \"every\": 2, "
             "\"bit\": 0}]}"),
        "%s", error.text);
    const struct soft_fault_rule *r = rules.items;
    cr_assert(rules.count == 5 && rules.quiet);
    cr_assert(r[0].action == SOFT_FAULT_RETURN && r[0].nth == 3 && r[0].times == 2);
    cr_assert(r[0].code == CUDA_ERROR_OUT_OF_MEMORY && r[0].number == 1 && r[0].line == 2);
    cr_assert(r[1].us == 20 && r[1].by_chance && r[1].percent == 2.5 && r[1].seed == 7);
    cr_assert(r[1].scope == SOFT_FAULT_OF_THREAD && r[1].only == 0);
    cr_assert(r[2].bytes == 3 << 20 && !r[2].says_device);
    cr_assert(r[3].code == 700 && r[3].scope == SOFT_FAULT_OF_STREAM && r[3].only == 4);
    cr_assert(r[4].every == 2 && r[4].says_bit && !r[4].says_byte && r[4].allocation == 0);
    cr_assert(read("{\"rules\": []}") && rules.count == 0 && !rules.quiet);
}

#define RULE(text) "{\"rules\": [\n{" text "}]}"
#define FAIL_WITH "\"action\": \"return\", \"code\": 2, "

Test(fault_rule, what_is_not_understood_is_refused_where_it_is) {
    static const struct {
        const char *text;
        unsigned line, column;
        const char *why;
    } rows[] = {
        {"{", 1, 2, "expected a string, not the end of the file"},
        {"[]", 1, 1, "the file must be an object with \"rules\""},
        {"{}", 1, 1, "the file needs \"rules\""},
        {"{\"rules\": {}}", 1, 11, "\"rules\" must be an array"},
        {"{\"quiet\": 1}", 1, 11, "\"quiet\" must be true or false"},
        {"{\"rule\": []}", 1, 2, "unknown key \"rule\": the file can have \"rules\" and \"quiet\""},
        {"{\"rules\": [7]}", 1, 12, "a rule must be an object"},
        {RULE(""), 2, 1, "a rule needs an \"action\""},
        {RULE("\"action\": \"explode\""), 2, 12,
         "\"action\" must be return, delay, lose_context, lose_device, later, flip, truncate, "
         "timeout or budget"},
        {RULE("\"action\": 1"), 2, 12,
         "\"action\" must be return, delay, lose_context, lose_device, later, flip, truncate, "
         "timeout or budget"},
        {RULE("\"action\": \"flip\""), 2, 1, "the action \"flip\" needs a \"function\""},
        {RULE("\"action\": \"return\", \"function\": \"cuInit\""), 2, 1,
         "the action \"return\" needs a \"code\""},
        {RULE("\"action\": \"later\", \"function\": \"cuInit\""), 2, 1,
         "the action \"later\" needs a \"code\""},
        {RULE("\"action\": \"delay\", \"function\": \"cuInit\""), 2, 1,
         "the action \"delay\" needs a \"us\""},
        {RULE("\"action\": \"truncate\", \"function\": \"cuMemcpy*\""), 2, 1,
         "the action \"truncate\" needs a \"bytes\""},
        {RULE("\"action\": \"budget\", \"bytes\": 1, \"nth\": 1"), 2, 34,
         "the action \"budget\" has no key \"nth\""},
        {RULE("\"action\": \"delay\", \"code\": 1"), 2, 21,
         "the action \"delay\" has no key \"code\""},
        {RULE(FAIL_WITH "\"procent\": 1"), 2, 33, "unknown key \"procent\" in a rule"},
        {RULE(FAIL_WITH "\"function\": \"cuMemAllok\""), 2, 45,
         "no driver function matches \"cuMemAllok\""},
        {RULE(FAIL_WITH "\"function\": 3"), 2, 45,
         "\"function\" must be a function name, with * and ? as wildcards"},
        {RULE(FAIL_WITH "\"nth\": 0"), 2, 40, "\"nth\" must be an integer of at least 1"},
        {RULE(FAIL_WITH "\"nth\": -1"), 2, 40, "\"nth\" must be an integer of at least 1"},
        {RULE(FAIL_WITH "\"every\": 1.5"), 2, 42, "\"every\" must be an integer of at least 1"},
        {RULE(FAIL_WITH "\"times\": \"2\""), 2, 42, "\"times\" must be an integer of at least 1"},
        {RULE(FAIL_WITH "\"percent\": 101"), 2, 44, "\"percent\" must be a number from 0 to 100"},
        {RULE(FAIL_WITH "\"percent\": true"), 2, 44, "\"percent\" must be a number from 0 to 100"},
        {RULE(FAIL_WITH "\"function\": \"*\", \"nth\": 1,\n\"every\": 2"), 3, 1,
         "\"nth\" and \"every\" cannot be used together"},
        {RULE(FAIL_WITH "\"function\": \"*\", \"stream\": 1,\n\"thread\": 2"), 2, 50,
         "\"thread\" and \"stream\" cannot be used together"},
        {RULE(FAIL_WITH "\"stream\": \"all\""), 2, 43,
         "\"stream\" must be \"each\" or an integer of at least 1"},
        {RULE("\"action\": \"return\", \"code\": \"CUDA_ERROR\""), 2, 30,
         "\"code\" must be the name or number of a CUresult"},
        {RULE("\"action\": \"return\", \"code\": 1000"), 2, 30,
         "\"code\" must be the name or number of a CUresult"},
        {RULE("\"action\": \"return\", \"code\": \"CUDA_SUCCESS\""), 2, 30,
         "\"code\" must be an error, not CUDA_SUCCESS"},
        {RULE("\"action\": \"budget\", \"bytes\": \"3 M\""), 2, 31,
         "\"bytes\" must be an integer or a size with K, M or G, such as \"256M\""},
        {RULE("\"action\": \"budget\", \"bytes\": \"99999999999999999999K\""), 2, 31,
         "\"bytes\" must be an integer or a size with K, M or G, such as \"256M\""},
        {RULE("\"action\": \"budget\", \"bytes\": 1, \"device\": 8"), 2, 44,
         "\"device\" must be an integer from 0 to 7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(!read(rows[i].text), "%s is taken", rows[i].text);
        cr_assert(error.place.line == rows[i].line && error.place.column == rows[i].column &&
                      strcmp(error.text, rows[i].why) == 0,
                  "%s: %u:%u: %s", rows[i].text, error.place.line, error.place.column, error.text);
    }
}

Test(fault_rule, patterns_widen_names) {
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {{"cuInit", "cuInit", true},   {"cuInit", "cuInitX", false},
                {"cuIni", "cuInit", false},   {"*", "", true},
                {"cu*", "cuInit", true},      {"cu*t", "cuInit", true},
                {"cu*x", "cuInit", false},    {"*Mem*v2", "cuMemAlloc_v2", true},
                {"cu????", "cuInit", true},   {"cu?????", "cuInit", false},
                {"**Init**", "cuInit", true}, {"", "cuInit", false},
                {"*a*b", "cacab", true},      {"*a*b*", "cba", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(soft_fault_matches(rows[i].pattern, rows[i].name), rows[i].matches, "%s, %s",
                     rows[i].pattern, rows[i].name);
    }
}

/* Every call checks every rule. Trying each star at each place again would take hours here. */
Test(fault_rule, many_stars_take_no_longer_than_one) {
    char pattern[202], name[101];
    for (size_t i = 0; i < 200; i++) pattern[i] = i % 2 == 0 ? '*' : 'a';
    strcpy(pattern + 200, "b");
    memset(name, 'a', 100);
    name[100] = '\0';
    cr_assert(!soft_fault_matches(pattern, name));
    pattern[200] = '\0';
    cr_assert(soft_fault_matches(pattern, name), "a hundred letters are needed, and are there");
    cr_assert(!soft_fault_matches(pattern, name + 1));
}

Test(fault_rule, the_example_of_its_page_is_valid) {
    /* Between the line that has the fence and the next one. */
    char *text = test_fixture("../../runtime/soft/driver", "FAULTS.md");
    char *begin = strstr(text, "```json\n");
    cr_assert(begin != NULL);
    begin += strlen("```json\n");
    char *close = strstr(begin, "```");
    cr_assert(close != NULL);
    *close = '\0';
    cr_assert(read(begin), "%u:%u: %s", error.place.line, error.place.column, error.text);
    cr_assert_eq(rules.count, (unsigned)SOFT_FAULT_ACTIONS, "one of each action");
    free(text);
}

Test(fault_rule, a_wish_that_cannot_be_read_stops_the_driver) {
    static const char path[] = "/nonexistent/faults.json";
    test_capture(stderr);
    setenv("TOLLENS_SOFT_FAULTS", path, 1);
    REFUSED(cuInit(0), CUDA_ERROR_FILE_NOT_FOUND);
    REFUSED(cuInit(0), CUDA_ERROR_FILE_NOT_FOUND);
    int count = 0;
    REFUSED(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_str_eq(test_captured(stderr),
                     "tollens-soft: TOLLENS_SOFT_FAULTS: cannot read the file "
                     "/nonexistent/faults.json\n");
}

Test(fault_rule, a_wish_that_is_not_understood_stops_the_driver) {
    char wanted[256];
    const char *path = api_faults("{\"rules\": [\n  {\"action\": \"returns\"}]}");
    test_capture(stderr);
    REFUSED(cuInit(0), CUDA_ERROR_INVALID_SOURCE);
    REFUSED(cuInit(0), CUDA_ERROR_INVALID_SOURCE);
    snprintf(wanted, sizeof wanted, "tollens-soft: %s:2:14: \"action\" must be return, ", path);
    cr_assert(strstr(test_captured(stderr), wanted) == test_captured(stderr), "%s",
              test_captured(stderr));
}
