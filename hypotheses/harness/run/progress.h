/*
 * Progress: what people see while attacks run. On a terminal it is one line that changes:
 * how much of all is done, how long the rest takes, the verdicts so far, and what runs. Elsewhere
 * it is silent, so that a log has a line for each claim, but for a line after half a minute without
 * one; with --verbose it prints a line for each attack that ends.
 *
 * Any thread may call any function between hyp_progress_begin and hyp_progress_end.
 */
#ifndef HYP_PROGRESS_H
#define HYP_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { HYP_PROGRESS_VERDICTS = 4 };

struct hyp_progress {
    pthread_mutex_t lock; /* of all below; recursive */
    FILE *stream;
    bool terminal, verbose;
    unsigned columns;
    char line[512];              /* the current line on the terminal */
    uint64_t begin_ns, spoke_ns; /* when the run began, and when a line was last printed */
    size_t steps, done;          /* attacks and saboteurs: in all, and finished */
    size_t part_end;             /* done, after those that now run */
    uint64_t turned_ns;          /* when the line began to show another attack */
    char shown[128];             /* whose it is: "H3 under copy_stale" */
    size_t verdicts[HYP_PROGRESS_VERDICTS]; /* so far, by kind */
};

/* Begins to report progress of this many steps on a stream, usually stderr. */
void hyp_progress_begin(struct hyp_progress *watch, FILE *stream, size_t steps, bool verbose);

/* The last call. */
void hyp_progress_end(struct hyp_progress *watch);

/* A part of this many steps begins: one claim, or several that run side by side. */
void hyp_progress_part(struct hyp_progress *watch, size_t steps);

/* The part's steps have ended; those that were not needed are done. */
void hyp_progress_part_end(struct hyp_progress *watch);

/* Clears the line and keeps others from drawing until hyp_progress_resume, by the same
 * thread, so that other text can be printed. */
void hyp_progress_pause(struct hyp_progress *watch);
void hyp_progress_resume(struct hyp_progress *watch);

/* Counts a claim's verdict, instead of the one that it had; was: -1 if it had none. */
void hyp_progress_verdict(struct hyp_progress *watch, int was, int kind);

/* Shows a running attack. share is its progress, negative if unknown; finding is the current
 * interval, or "". Of several that run, the line shows each for a second. */
void hyp_progress_running(struct hyp_progress *watch, const char *claim, const char *saboteur,
                          const char *attack, double share, const char *finding, double seconds);

/* Shows that an attack has ended. */
void hyp_progress_ended(struct hyp_progress *watch, const char *claim, const char *attack,
                        const char *ending, double seconds);

/* Shows whether the attacks noticed a step of a ladder. */
void hyp_progress_limit(struct hyp_progress *watch, const char *claim, const char *saboteur,
                        bool noticed, double seconds);

/* Shows the verdict under a saboteur, instead of the endings of its attacks. */
void hyp_progress_sabotaged(struct hyp_progress *watch, const char *claim, const char *saboteur,
                            const char *verdict, bool right, double seconds);

/* Clears the line, so that other text can be printed. */
void hyp_progress_clear(struct hyp_progress *watch);

/* Writes to text how long the steps that are left take, "  (about 40 s left)"; "" while that would
 * be a guess, or is not worth a word. */
void hyp_progress_left(struct hyp_progress *watch, char *text, size_t bytes);

/* Whether a stream may have colours: it is a terminal that has them, and NO_COLOR (no-color.org) is
 * not set, or empty. */
bool hyp_progress_has_colour(FILE *stream);

#endif
