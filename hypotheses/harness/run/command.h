/*
 * Command: the commands of the program `tollens`. Each takes the words after its name and returns
 * the exit code.
 */
#ifndef HYP_COMMAND_H
#define HYP_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The version, as in ci/CHANGELOG.md. */
#define HYP_VERSION "0.1.0"

/* The exit codes, which CI relies on. */
enum {
    HYP_EXIT_OK = 0,
    HYP_EXIT_FALSIFIED = 1, /* or not tested, where --require-gpu was given */
    HYP_EXIT_ERROR = 2,     /* usage, or the harness failed: nothing can be concluded */
    HYP_EXIT_INCONCLUSIVE = 3
};

int hyp_command_doctor(int count, char **words);
int hyp_command_list(int count, char **words);
int hyp_command_explain(int count, char **words);
int hyp_command_run(int count, char **words);
int hyp_command_gate(int count, char **words);
int hyp_command_export(int count, char **words);
int hyp_command_report(int count, char **words);
int hyp_command_compare(int count, char **words);
int hyp_command_merge(int count, char **words);
int hyp_command_threads(int count, char **words);
int hyp_command_replay(int count, char **words);
int hyp_command_model(int count, char **words);
int hyp_command_model_run(int count, char **words); /* model run */
int hyp_command_model_bench(int count, char **words);
int hyp_command_model_tokenize(int count, char **words);
int hyp_command_soft(int count, char **words);
int hyp_command_guard(int count, char **words);

/* The program as a compiler of `tollens soft`, if words[0], what it was called by, is one's name:
 * its exit code, or -1. */
int hyp_command_soft_tool(int count, char **words);

/* A sentence on stderr, "tollens: ..."; returns HYP_EXIT_ERROR. */
int hyp_command_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The command's help, of `bytes` bytes, which stays valid. */
void hyp_command_has_help(const char *help, size_t bytes);

/* For a word that is no option of the command: "; did you mean --temp?", which the help mentions,
 * or "" if none is near. Valid until the next call. */
const char *hyp_command_meant(const char *word);

/* Refuses such a word. Returns false: hyp_error(). */
bool hyp_command_no_option(const char *command, const char *word);

/* What the user can do about a complaint, "tollens doctor". It is printed when the program ends
 * with HYP_EXIT_ERROR. The last one counts; without any, it is the help of the command. */
void hyp_command_next(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the process with a code, without the destructors and exit handlers of plugins, which could
 * change it. Any other way of exiting after hyp_command_begin, such as exit() in a plugin, ends
 * with HYP_EXIT_ERROR and a sentence. */
_Noreturn void hyp_command_exit(int code);

/* Keeps how the program was called, argv[0], for commands that a reader can copy. */
void hyp_command_begin(const char *program);
const char *hyp_command_program(void);

/* --json: removes the word from words[0..*count) and remembers it. */
void hyp_command_take_json(int *count, char **words);
bool hyp_command_is_json(void);

/* For a command that reads --json itself: an error will be printed as an object too. And that an
 * object which has the error was printed already. */
void hyp_command_be_json(void);
void hyp_command_has_answered(void);

/* printf, silent under --json. */
void hyp_command_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the document of --json, with "schema" and "command", on stdout and releases it. Returns
 * code, or HYP_EXIT_ERROR after a complaint if memory ran out. */
int hyp_command_answer(const char *command, json_t *document, int code);

/* The end of a command: prints the next step of a complaint, and under --json a document with the
 * complaint if there is no other. Returns code. */
int hyp_command_end(const char *command, int code);

#endif
