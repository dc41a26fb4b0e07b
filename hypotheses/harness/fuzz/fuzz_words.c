/*
 * Fuzz target: the words of `tollens run` and the variables that it reads, one per line; a line
 * TOLLENS_...=VALUE is a variable. They are accepted or rejected with a sentence. The command that
 * the evidence records for accepted words chooses the same run.
 */
#include "fuzz_input.h"

#include "files/atomic_file.h"
#include "harness/sabotage.h"
#include "run/run_options.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 24 };

static const char *const variables[] = {"TOLLENS_MODE",    "TOLLENS_SEED",   "TOLLENS_DEADLINE",
                                        "TOLLENS_PROCESS", "TOLLENS_DEVICE", "TOLLENS_FILTER"};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

/* Sets the variable, and says whether the line is one. */
static bool set_variable(const char *line) {
    for (int i = 0; i < VARIABLES; i++) {
        size_t length = strlen(variables[i]);
        if (strncmp(line, variables[i], length) != 0 || line[length] != '=') continue;
        setenv(variables[i], line + length + 1, 1);
        return true;
    }
    return false;
}

static int words_split(char *text, char **words) {
    int count = 0;
    for (char *line; count < WORDS_MAX && (line = strsep(&text, "\n")) != NULL;) {
        if (!set_variable(line)) words[count++] = line;
    }
    return count;
}

static void words_check_sense(const struct hyp_run *run, const struct hyp_run_options *options) {
    FUZZ_HOLDS(run->session.seed <= HYP_SEED_MAX && run->seeds >= 1);
    FUZZ_HOLDS(run->session.seed + (run->seeds - 1) <= HYP_SEED_MAX);
    FUZZ_HOLDS(run->session.deadline_s <= HYP_DEADLINE_S_MAX && run->session.ordinal >= 0);
    FUZZ_HOLDS(options->repeats <= HYP_REPEATS_MAX && options->seeds <= HYP_SEEDS_MAX);
    FUZZ_HOLDS(run->under == NULL || hyp_sabotage_find(run->under, NULL));
    bool any = false;
    for (size_t i = 0; i < HYP_CLAIMS_MAX; i++) any |= run->chosen[i];
    FUZZ_HOLDS(any);
}

static void read_command(char *command, const struct hyp_run *run,
                         const struct hyp_run_options *options) {
    static struct hyp_run again;
    struct hyp_run_options second = {0};
    char *words[2 * WORDS_MAX];
    int count = 0;
    memset(&again, 0, sizeof again);
    command += strlen("tollens run");
    if (*command == ' ') command++;
    while (*command != '\0' && count < 2 * WORDS_MAX) {
        words[count++] = strsep(&command, " ");
        if (command == NULL) break;
    }
    FUZZ_HOLDS(hyp_run_options_read(count, words, &again, &second));
    FUZZ_HOLDS(memcmp(again.chosen, run->chosen, sizeof again.chosen) == 0);
    FUZZ_HOLDS(again.session.seed == run->session.seed && again.seeds == run->seeds);
    FUZZ_HOLDS(again.session.full == run->session.full && again.sabotage == run->sabotage);
    FUZZ_HOLDS(again.session.deadline_s == run->session.deadline_s);
    FUZZ_HOLDS(second.repeats == options->repeats && second.list == options->list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hyp_run run;
    struct hyp_run_options options = {0};
    char *words[WORDS_MAX] = {NULL};
    for (int i = 0; i < VARIABLES; i++) unsetenv(variables[i]);
    memset(&run, 0, sizeof run);
    char *text = fuzz_text(data, size);
    int count = words_split(text, words);
    if (hyp_run_options_read(count, words, &run, &options)) {
        words_check_sense(&run, &options);
        char *command = hyp_run_options_command(count, words);
        FUZZ_HOLDS(command != NULL);
        /* It does not quote words with blanks, and empty ones are invisible in it. */
        bool is_plain = true;
        for (int i = 0; i < count; i++) {
            is_plain &= words[i][0] != '\0' && strchr(words[i], ' ') == NULL;
        }
        if (is_plain && options.trace == NULL) read_command(command, &run, &options);
        free(command);
    } else {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
    }
    free(text);
    return 0;
}
