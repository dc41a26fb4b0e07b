/*
 * The soft device's answers to probe-driver, held line by line against those of an NVIDIA H200.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 400, LINE_BYTES = 200 };

struct answers {
    char lines[LINES_MAX][LINE_BYTES];
    int count;
};

/* Where this device answers something else on purpose. */
static struct {
    const char *before, *call, *why;
    int gpu, soft;
    int seen;
} exceptions[] = {
    {"cuCtxSynchronize_v2", "cuCtxSetCurrent(other)",
     "it takes a destroyed context there, and crashes at the next call", 0, 201, 0},
    {"attribute 5", "cuPointerGetAttribute(&value, (CUpointer_attribute)attribute, address + 1)",
     "there is no kernel module here that a token would be for", 0, 1, 0},
};

enum { EXCEPTIONS = sizeof exceptions / sizeof exceptions[0] };

/* The folder of this program, with a trailing "/". */
static void find_own(char *own, size_t bytes) {
    ssize_t length = readlink("/proc/self/exe", own, bytes - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    cr_assert(slash != NULL, "%s", own);
    slash[1] = '\0';
}

static void read_answers(FILE *file, struct answers *answers) {
    while (answers->count < LINES_MAX &&
           fgets(answers->lines[answers->count], LINE_BYTES, file) != NULL) {
        char *line = answers->lines[answers->count++];
        cr_assert(strchr(line, '\n') != NULL, "a long line: %s", line);
        line[strcspn(line, "\n")] = '\0';
    }
    cr_assert(answers->count < LINES_MAX, "there are more answers than fit");
}

static void read_recorded(const char *own, struct answers *answers) {
    static const char *const roots[] = {"", "../", "../../"};
    char path[4200];
    FILE *file = NULL;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0] && file == NULL; i++) {
        snprintf(path, sizeof path, "%s%sfixtures/driver/h200.txt", own, roots[i]);
        file = fopen(path, "r");
    }
    cr_assert(file != NULL, "the answers of an H200 are missing");
    read_answers(file, answers);
    fclose(file);
}

static void ask_soft(const char *own, struct answers *answers) {
    char command[8600];
    snprintf(command, sizeof command, "'%sprobe-driver' '%slibtollens-soft.so'", own, own);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): both are of this build */
    cr_assert(pipe != NULL, "%s", command);
    read_answers(pipe, answers);
    cr_assert_eq(pclose(pipe), 0, "%s", command);
}

static bool is_question(const char *line) {
    return line[0] != ' ';
}

/* Where the next question begins. */
static int next_question(const struct answers *answers, int at) {
    do at++;
    while (at < answers->count && !is_question(answers->lines[at]));
    return at;
}

/* Whether a line is the answer CODE to a call. */
static bool is_answer(const char *line, const char *call, int code) {
    char wanted[LINE_BYTES];
    snprintf(wanted, sizeof wanted, "    %s: %d CUDA_", call, code);
    return strncmp(line, wanted, strlen(wanted)) == 0;
}

static bool is_excepted(const char *before, const char *gpu, const char *soft) {
    for (int i = 0; i < EXCEPTIONS; i++) {
        if (strncmp(before + strspn(before, " "), exceptions[i].before,
                    strlen(exceptions[i].before)) == 0 &&
            is_answer(gpu, exceptions[i].call, exceptions[i].gpu) &&
            is_answer(soft, exceptions[i].call, exceptions[i].soft)) {
            exceptions[i].seen++;
            return true;
        }
    }
    return false;
}

Test(probe_driver, the_answers_are_those_of_a_gpu) {
    static struct answers gpu, soft;
    char own[4096];
    int held = 0, g = 0, s = 0;
    find_own(own, sizeof own);
    read_recorded(own, &gpu);
    ask_soft(own, &soft);
    while (g < gpu.count && s < soft.count) {
        /* Where the GPU's driver crashed, it has no more to say of the question. */
        if (strstr(gpu.lines[g], "ended by signal") != NULL) {
            g = next_question(&gpu, g);
            s = next_question(&soft, s - 1);
            continue;
        }
        bool same = strcmp(gpu.lines[g], soft.lines[s]) == 0;
        cr_assert(same || (g > 0 && is_excepted(gpu.lines[g - 1], gpu.lines[g], soft.lines[s])),
                  "line %d\n%s\nand not\n%s", g + 1, soft.lines[s], gpu.lines[g]);
        held++;
        g++;
        s++;
    }
    cr_assert(g == gpu.count && s == soft.count, "one of them says more than the other");
    cr_assert(held >= 240, "only %d lines were held against each other", held);
    for (int i = 0; i < EXCEPTIONS; i++) {
        cr_assert_eq(exceptions[i].seen, 1, "%s: %s", exceptions[i].call, exceptions[i].why);
    }
}
