/*
 * Command: what the program `tollens` can be asked to do. Each takes the words behind its name and
 * returns the exit code.
 */
#ifndef HYP_COMMAND_H
#define HYP_COMMAND_H

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
int hyp_command_threads(int count, char **words);
int hyp_command_replay(int count, char **words);
int hyp_command_model(int count, char **words);
int hyp_command_model_run(int count, char **words); /* model run */
int hyp_command_model_bench(int count, char **words);
int hyp_command_soft(int count, char **words);

/* A sentence on stderr, "tollens: ..."; returns HYP_EXIT_ERROR. */
int hyp_command_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
