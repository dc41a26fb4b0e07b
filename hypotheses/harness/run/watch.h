/*
 * Watch: the progress that people see while attacks run. On a terminal it is one line that changes:
 * how much of all is done, how long the rest takes, the verdicts so far, and what runs. Elsewhere
 * it is silent, so that a log has a line for each claim, but for a line after half a minute without
 * one; with --verbose it prints a line for each attack that ends.
 */
#ifndef HYP_WATCH_H
#define HYP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { HYP_WATCH_VERDICTS = 4 };

struct hyp_watch {
    FILE *stream;
    bool terminal, verbose;
    unsigned columns;
    char line[512];                      /* the current line on the terminal */
    uint64_t begin_ns, spoke_ns;         /* when the run began, and when a line was last printed */
    size_t steps, done;                  /* attacks and saboteurs: in all, and behind us */
    size_t claim_end;                    /* done, once the running claim has ended */
    size_t verdicts[HYP_WATCH_VERDICTS]; /* so far, by kind */
};

/* Begins to report progress of so many steps on a stream, usually stderr. */
void hyp_watch_begin(struct hyp_watch *watch, FILE *stream, size_t steps, bool verbose);

/* A claim of so many steps begins. */
void hyp_watch_claim(struct hyp_watch *watch, size_t steps);

/* The claim's steps have ended; those that were not needed are done. */
void hyp_watch_claim_end(struct hyp_watch *watch);

/* The same, and counts the claim's verdict. */
void hyp_watch_verdict(struct hyp_watch *watch, int kind);

/* Shows a running attack. share is its progress, negative if unknown; finding is the current
 * interval, or "". */
void hyp_watch_running(struct hyp_watch *watch, const char *claim, const char *saboteur,
                       const char *attack, double share, const char *finding, double seconds);

/* Shows that an attack has ended. */
void hyp_watch_ended(struct hyp_watch *watch, const char *claim, const char *attack,
                     const char *ending, double seconds);

/* Shows whether the attacks noticed a step of a ladder. */
void hyp_watch_limit(struct hyp_watch *watch, const char *claim, const char *saboteur, bool noticed,
                     double seconds);

/* Shows the verdict under a saboteur, instead of the endings of its attacks. */
void hyp_watch_sabotaged(struct hyp_watch *watch, const char *claim, const char *saboteur,
                         const char *verdict, bool right, double seconds);

/* Clears the line, so that other text can be printed. */
void hyp_watch_clear(struct hyp_watch *watch);

/* Whether a stream may have colours: it is a terminal that has them, and NO_COLOR (no-color.org) is
 * not set, or empty. */
bool hyp_watch_has_colour(FILE *stream);

#endif
