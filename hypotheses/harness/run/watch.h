/*
 * Watch: what people see while attacks run. On a terminal one line that changes; elsewhere a line
 * for each attack that ends, so that a log stays readable.
 */
#ifndef HYP_WATCH_H
#define HYP_WATCH_H

#include <stdbool.h>
#include <stdio.h>

struct hyp_watch {
    FILE *stream;
    bool terminal;
    unsigned columns;
    char line[512]; /* what the terminal shows now */
};

/* Begins to watch on a stream, stderr by custom. */
void hyp_watch_begin(struct hyp_watch *watch, FILE *stream);

/* An attack is running; share is how far it is, or below 0 where it does not say, and finding the
 * current interval, or "". */
void hyp_watch_running(struct hyp_watch *watch, const char *claim, const char *saboteur,
                       const char *attack, double share, const char *finding, double seconds);

/* An attack has ended. */
void hyp_watch_ended(struct hyp_watch *watch, const char *claim, const char *attack,
                     const char *ending, double seconds);

/* The attacks under a saboteur have ended: their own ends are no news, what they came to is. */
void hyp_watch_sabotaged(struct hyp_watch *watch, const char *claim, const char *saboteur,
                         const char *verdict, bool right, double seconds);

/* Clears the line, so that other text can be printed. */
void hyp_watch_clear(struct hyp_watch *watch);

#endif
