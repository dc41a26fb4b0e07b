/*
 * The program in a test: run by the shell, in a folder of the test's own.
 */
#ifndef HYP_SHELL_SCENE_H
#define HYP_SHELL_SCENE_H

#include <jansson.h>
#include <stdbool.h>

/* The sanitizers slow the runtime down, so that times are not what they claim to be. What such a
 * claim runs through, it runs through once, in ci/check's own run of all claims. */
#if defined(__SANITIZE_ADDRESS__)
#define PROGRAM_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PROGRAM_IS_SANITIZED
#endif
#endif

/* A suite's .init and .fini: make the folder, remove it. */
void program_begin(void);
void program_end(void);

/* What the last command printed, on both streams. */
extern char program_output[65536];
bool program_says(const char *text);

/* Runs a shell command in which $T is the program, $D the folder, and $R the folder that contains
 * fixtures/; returns its exit code. */
int program_shell(const char *command);

/* Writes a text as a file of the folder, "now/results.json". */
void program_write(const char *name, const char *text);

/* Reads a file of the folder; json_decref it. */
json_t *program_json(const char *name);

#endif
