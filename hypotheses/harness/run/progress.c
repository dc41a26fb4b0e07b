/*
 * A line of text, and the terminal's control sequences for rewriting it.
 */
#include "progress.h"

#include "harness/clock.h"
#include "judge/verdict.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_terminal(FILE *stream) {
    const char *terminal = getenv("TERM");
    return isatty(fileno(stream)) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

bool hyp_progress_has_colour(FILE *stream) {
    const char *none = getenv("NO_COLOR");
    return is_terminal(stream) && (none == NULL || none[0] == '\0');
}

void hyp_progress_begin(struct hyp_progress *watch, FILE *stream, size_t steps, bool verbose) {
    struct winsize size;
    pthread_mutexattr_t attributes;
    memset(watch, 0, sizeof *watch);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&watch->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    watch->stream = stream;
    watch->verbose = verbose;
    watch->steps = steps;
    watch->begin_ns = watch->spoke_ns = hyp_clock_ns();
    watch->terminal = is_terminal(stream);
    watch->columns = 80;
    if (watch->terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) {
        watch->columns = size.ws_col;
    }
}

void hyp_progress_end(struct hyp_progress *watch) {
    hyp_progress_clear(watch);
    pthread_mutex_destroy(&watch->lock);
}

void hyp_progress_pause(struct hyp_progress *watch) {
    pthread_mutex_lock(&watch->lock);
    hyp_progress_clear(watch);
}

void hyp_progress_resume(struct hyp_progress *watch) {
    pthread_mutex_unlock(&watch->lock);
}

void hyp_progress_part(struct hyp_progress *watch, size_t steps) {
    pthread_mutex_lock(&watch->lock);
    watch->part_end = watch->done + steps;
    pthread_mutex_unlock(&watch->lock);
}

void hyp_progress_part_end(struct hyp_progress *watch) {
    hyp_progress_pause(watch);
    watch->done = watch->part_end;
    watch->spoke_ns = hyp_clock_ns();
    hyp_progress_resume(watch);
}

void hyp_progress_verdict(struct hyp_progress *watch, int was, int kind) {
    hyp_progress_pause(watch);
    watch->spoke_ns = hyp_clock_ns();
    if (was >= 0 && was < HYP_PROGRESS_VERDICTS) watch->verdicts[was]--;
    if (kind >= 0 && kind < HYP_PROGRESS_VERDICTS) watch->verdicts[kind]++;
    hyp_progress_resume(watch);
}

/* An attack that runs again to confirm a finding is not one of the steps. */
static void progress_step(struct hyp_progress *watch) {
    if (watch->done < watch->part_end) watch->done++;
}

/* "H3", or "H3 under copy_stale". */
static void put_claim(char *text, size_t bytes, const char *claim, const char *saboteur) {
    snprintf(text, bytes, "%s%s%s", claim, saboteur != NULL ? " under " : "",
             saboteur != NULL ? saboteur : "");
}

/* "about 1 min 40 s left": assumes that the remaining steps take as long as those that are done.
 * Early in a run it would be a guess, and is "". */
static void put_left(char *text, size_t bytes, double share, double seconds) {
    const double early_share = 0.05, early_s = 2;
    const double left = share > 0 ? seconds / share * (1 - share) : 0;
    text[0] = '\0';
    if (share < early_share || share >= 1 || seconds < early_s) return;
    if (left < 100) {
        snprintf(text, bytes, ", about %.0f s left", left);
    } else {
        snprintf(text, bytes, ", about %.0f min left", left / 60);
    }
}

/* ", 3 survived, 1 falsified": the verdicts that there are. */
static void progress_put_verdicts(const struct hyp_progress *watch, char *text, size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (int kind = 0; kind < HYP_PROGRESS_VERDICTS; kind++) {
        if (watch->verdicts[kind] == 0) continue;
        length +=
            (size_t)snprintf(text + length, bytes - length, "%s%zu %s", length > 0 ? ", " : "",
                             watch->verdicts[kind], hyp_verdict_words((enum hyp_verdict_kind)kind));
    }
}

/* "[####......]  38 %, about 40 s left  4 survived  ". */
static void progress_put_whole(const struct hyp_progress *watch, double now, char *text,
                               size_t bytes) {
    enum { CELLS = 10 };
    char cells[CELLS + 1], left[40], verdicts[120];
    const double steps = watch->steps > 0 ? (double)watch->steps : 1;
    double share = ((double)watch->done + now) / steps;
    if (share > 1) share = 1;
    for (int i = 0; i < CELLS; i++) cells[i] = i < share * CELLS ? '#' : '.';
    cells[CELLS] = '\0';
    put_left(left, sizeof left, share, (double)(hyp_clock_ns() - watch->begin_ns) * 1e-9);
    progress_put_verdicts(watch, verdicts, sizeof verdicts);
    snprintf(text, bytes, "[%s] %3.0f %%%s  %s%s", cells, share * 100, left, verdicts,
             verdicts[0] != '\0' ? "  " : "");
}

/* Whether the line may show this attack: another one's turn is a second long. */
static bool has_turn(struct hyp_progress *watch, const char *whose) {
    const uint64_t turn_ns = 1000000000, now_ns = hyp_clock_ns();
    if (strcmp(whose, watch->shown) == 0 && watch->line[0] != '\0') return true;
    if (watch->line[0] != '\0' && now_ns - watch->turned_ns < turn_ns) return false;
    snprintf(watch->shown, sizeof watch->shown, "%s", whose);
    watch->turned_ns = now_ns;
    return true;
}

static void show_running(struct hyp_progress *watch, const char *claim, const char *saboteur,
                         const char *attack, double share, const char *finding, double seconds) {
    const uint64_t silence_ns = 30000000000;
    char whose[128], whole[220], line[sizeof watch->line];
    if (!watch->terminal && hyp_clock_ns() - watch->spoke_ns < silence_ns) return;
    put_claim(whose, sizeof whose, claim, saboteur);
    if (!has_turn(watch, whose)) return;
    const bool counts = saboteur == NULL && share > 0;
    progress_put_whole(watch, counts ? (share > 1 ? 1 : share) : 0, whole, sizeof whole);
    int length = snprintf(line, sizeof line, "%s%s: %.90s", whole, whose, attack);
    if (share >= 0) {
        snprintf(line + length, sizeof line - (size_t)length, " %.0f %%%s%.100s", share * 100,
                 finding[0] != '\0' ? ", " : "", finding);
    } else {
        snprintf(line + length, sizeof line - (size_t)length, " %.0f s", seconds);
    }
    if (!watch->terminal) {
        watch->spoke_ns = hyp_clock_ns();
        fprintf(watch->stream, "%s\n", line);
        fflush(watch->stream);
        return;
    }
    if (strlen(line) >= watch->columns) line[watch->columns - 1] = '\0';
    if (strcmp(line, watch->line) == 0) return;
    memcpy(watch->line, line, sizeof line);
    fprintf(watch->stream, "\r\033[K%s", line);
    fflush(watch->stream);
}

void hyp_progress_left(struct hyp_progress *watch, char *text, size_t bytes) {
    const double worth_s = 10;
    char left[40];
    pthread_mutex_lock(&watch->lock);
    const double share = watch->steps > 0 ? (double)watch->done / (double)watch->steps : 1;
    const double seconds = (double)(hyp_clock_ns() - watch->begin_ns) * 1e-9;
    put_left(left, sizeof left, share, seconds);
    text[0] = '\0';
    if (left[0] != '\0' && seconds / share * (1 - share) >= worth_s) {
        snprintf(text, bytes, "  (%s)", left + strlen(", "));
    }
    pthread_mutex_unlock(&watch->lock);
}

void hyp_progress_running(struct hyp_progress *watch, const char *claim, const char *saboteur,
                          const char *attack, double share, const char *finding, double seconds) {
    pthread_mutex_lock(&watch->lock);
    show_running(watch, claim, saboteur, attack, share, finding, seconds);
    pthread_mutex_unlock(&watch->lock);
}

void hyp_progress_clear(struct hyp_progress *watch) {
    pthread_mutex_lock(&watch->lock);
    if (watch->line[0] != '\0') {
        watch->line[0] = '\0';
        fprintf(watch->stream, "\r\033[K");
        fflush(watch->stream);
    }
    pthread_mutex_unlock(&watch->lock);
}

/* A step is done, and has a line with --verbose. */
static void put_step(struct hyp_progress *watch, const char *claim, const char *what,
                     const char *ending, double seconds) {
    pthread_mutex_lock(&watch->lock);
    progress_step(watch);
    if (watch->verbose) {
        hyp_progress_clear(watch);
        watch->spoke_ns = hyp_clock_ns();
        fprintf(watch->stream, "%-4s%-54s %-12s %6.1f s\n", claim, what, ending, seconds);
        fflush(watch->stream);
    }
    pthread_mutex_unlock(&watch->lock);
}

void hyp_progress_ended(struct hyp_progress *watch, const char *claim, const char *attack,
                        const char *ending, double seconds) {
    put_step(watch, claim, attack, ending, seconds);
}

void hyp_progress_limit(struct hyp_progress *watch, const char *claim, const char *saboteur,
                        bool noticed, double seconds) {
    char text[96];
    snprintf(text, sizeof text, "limit %s", saboteur);
    put_step(watch, claim, text, noticed ? "noticed" : "not noticed", seconds);
}

void hyp_progress_sabotaged(struct hyp_progress *watch, const char *claim, const char *saboteur,
                            const char *verdict, bool right, double seconds) {
    char text[96], words[32];
    snprintf(text, sizeof text, "saboteur %s", saboteur);
    snprintf(words, sizeof words, "%s%s", verdict, right ? "" : ": WRONG");
    put_step(watch, claim, text, words, seconds);
}
