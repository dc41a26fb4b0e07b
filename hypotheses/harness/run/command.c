/*
 * What all commands share: complaints with their next step, and --json.
 */
#include "command.h"

#include "files/atomic_file.h"
#include "nearest.h"
#include "tollens/plain_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "tollens";
static bool is_json, has_answered;
static char complaint[1024], next[1024];

/* What the command and what every command has. */
static struct {
    const char *text;
    size_t bytes;
} helps[2];

static pid_t own_process;

/* The code of exit() is somebody else's, so it says nothing about the run. */
static void complain_at_exit(void) {
    if (getpid() != own_process) return; /* a child that was forked, such as a test's */
    static const char text[] = "tollens: a library ended the process before the command had "
                               "ended, so nothing is known\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(HYP_EXIT_ERROR);
}

void hyp_command_begin(const char *name) {
    if (name != NULL && name[0] != '\0') program = name;
    own_process = getpid();
    if (atexit(complain_at_exit) != 0) abort();
}

/* What tools do at exit(), if they are linked in: the counts of gcov, the leaks of ASan. */
void __gcov_dump(void) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void hyp_command_exit(int code) {
    fflush(NULL);
    if (__gcov_dump != NULL) __gcov_dump();
    if (__lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0 &&
        code == HYP_EXIT_OK) {
        code = HYP_EXIT_ERROR;
    }
    _exit(code);
}

const char *hyp_command_program(void) {
    return program;
}

int hyp_command_complain(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    vsnprintf(complaint, sizeof complaint, format, again);
    tol_plain_text(complaint);
    va_end(again);
    fputs("tollens: ", stderr);
    tol_plain_vprint(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return HYP_EXIT_ERROR;
}

void hyp_command_next(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(next, sizeof next, format, arguments);
    tol_plain_text(next);
    va_end(arguments);
}

void hyp_command_has_help(const char *text, size_t bytes) {
    helps[1] = helps[0];
    helps[0].text = text;
    helps[0].bytes = bytes;
}

const char *hyp_command_meant(const char *word) {
    static char sentence[HYP_OPTION_BYTES + 20];
    char option[HYP_OPTION_BYTES] = "";
    for (size_t i = 0; i < 2 && option[0] == '\0'; i++) {
        hyp_nearest_option(word, helps[i].text, helps[i].bytes, option);
    }
    if (option[0] == '\0' || strcmp(option, word) == 0) return "";
    snprintf(sentence, sizeof sentence, "; did you mean %s?", option);
    return sentence;
}

bool hyp_command_no_option(const char *command, const char *word) {
    return hyp_fail("%s has no option %s%s", command, word, hyp_command_meant(word));
}

void hyp_command_take_json(int *count, char **words) {
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const bool is_it = strcmp(words[i], "--json") == 0;
        is_json |= is_it;
        if (!is_it) words[kept++] = words[i];
    }
    *count = kept;
}

bool hyp_command_is_json(void) {
    return is_json;
}

void hyp_command_be_json(void) {
    is_json = true;
}

void hyp_command_has_answered(void) {
    has_answered = true;
}

void hyp_command_say(const char *format, ...) {
    va_list arguments;
    if (is_json) return;
    va_start(arguments, format);
    tol_plain_vprint(stdout, format, arguments);
    va_end(arguments);
}

int hyp_command_answer(const char *command, json_t *document, int code) {
    json_t *all = json_pack("{s:i, s:s}", "schema", 1, "command", command);
    const bool is_whole = document != NULL && all != NULL && json_object_update(all, document) == 0;
    char *text = is_whole ? json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(all);
    json_decref(document);
    if (text == NULL) return hyp_command_complain("out of memory for the JSON of %s", command);
    puts(text);
    free(text);
    has_answered = true;
    return code;
}

int hyp_command_end(const char *command, int code) {
    if (code != HYP_EXIT_ERROR || complaint[0] == '\0') return code;
    if (next[0] == '\0') hyp_command_next("%s %s --help", program, command);
    fprintf(stderr, "  next: %s\n", next);
    if (is_json && !has_answered) {
        json_t *error =
            json_pack("{s:s, s:s, s:i}", "error", complaint, "next", next, "exit_code", code);
        (void)hyp_command_answer(command, error, code);
    }
    return code;
}
