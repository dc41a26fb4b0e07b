/*
 * The program in a test: run by the shell, in a folder of the test's own.
 */
#ifndef HYP_PROGRAM_SHELL_H
#define HYP_PROGRAM_SHELL_H

#include <jansson.h>
#include <stdbool.h>

/* A suite's .init and .fini: make the folder, remove it. */
void program_begin(void);
void program_end(void);

/* What the last command printed, on both streams. */
extern char program_output[65536];
bool program_says(const char *text);

/* Runs a shell command in which $T is the program and $D the folder; returns its exit code. */
int program_shell(const char *command);

/* Writes a text as a file of the folder, "now/results.json". */
void program_write(const char *name, const char *text);

/* Reads a file of the folder; json_decref it. */
json_t *program_json(const char *name);

#endif
