/*
 * Watch: the progress that people see while attacks run. On a terminal it is one line that changes;
 * otherwise one line per attack that ends, so that a log stays readable.
 */
#ifndef HYP_WATCH_H
#define HYP_WATCH_H

#include <stdbool.h>
#include <stdio.h>

struct hyp_watch {
    FILE *stream;
    bool terminal;
    unsigned columns;
    char line[512]; /* the current line on the terminal */
};

/* Begins to report progress on a stream, usually stderr. */
void hyp_watch_begin(struct hyp_watch *watch, FILE *stream);

/* Shows a running attack. share is its progress, negative if unknown; finding is the current
 * interval, or "". */
void hyp_watch_running(struct hyp_watch *watch, const char *claim, const char *saboteur,
                       const char *attack, double share, const char *finding, double seconds);

/* Shows that an attack has ended. */
void hyp_watch_ended(struct hyp_watch *watch, const char *claim, const char *attack,
                     const char *ending, double seconds);

/* Shows the verdict under a saboteur, instead of the endings of its attacks. */
/* A line for a step of a ladder: whether the attacks noticed it. */
void hyp_watch_limit(struct hyp_watch *watch, const char *claim, const char *saboteur, bool noticed,
                     double seconds);

void hyp_watch_sabotaged(struct hyp_watch *watch, const char *claim, const char *saboteur,
                         const char *verdict, bool right, double seconds);

/* Clears the line, so that other text can be printed. */
void hyp_watch_clear(struct hyp_watch *watch);

#endif
