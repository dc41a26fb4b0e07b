/*
 * A line of text, and the terminal's words for rewriting it.
 */
#include "watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void hyp_watch_begin(struct hyp_watch *watch, FILE *stream) {
    struct winsize size;
    const char *terminal = getenv("TERM");
    memset(watch, 0, sizeof *watch);
    watch->stream = stream;
    watch->terminal = isatty(fileno(stream)) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    watch->columns = 80;
    if (watch->terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) {
        watch->columns = size.ws_col;
    }
}

/* "H3", or "H3 under copy_stale". */
static void put_claim(char *text, size_t bytes, const char *claim, const char *saboteur) {
    snprintf(text, bytes, "%s%s%s", claim, saboteur != NULL ? " under " : "",
             saboteur != NULL ? saboteur : "");
}

/* "[#####.....]  50 %, about 12 s more": the rest is estimated from the time so far, once there is
 * enough of it to tell. */
static void put_bar(char *text, size_t bytes, double share, double seconds) {
    enum { CELLS = 20, EARLY_S = 2 };
    char cells[CELLS + 1];
    double bounded = share > 1 ? 1 : share;
    for (int i = 0; i < CELLS; i++) cells[i] = i < bounded * CELLS ? '#' : '.';
    cells[CELLS] = '\0';
    int length = snprintf(text, bytes, "[%s] %3.0f %%", cells, bounded * 100);
    if (bounded > 0.02 && bounded < 1 && seconds >= EARLY_S) {
        snprintf(text + length, bytes - (size_t)length, ", at most %.0f s more",
                 seconds / bounded * (1 - bounded));
    }
}

void hyp_watch_running(struct hyp_watch *watch, const char *claim, const char *saboteur,
                       const char *attack, double share, const char *finding, double seconds) {
    char whose[128], bar[96], line[sizeof watch->line];
    if (!watch->terminal) return;
    put_claim(whose, sizeof whose, claim, saboteur);
    if (share >= 0) {
        put_bar(bar, sizeof bar, share, seconds);
        snprintf(line, sizeof line, "%s %s %s%s%s", bar, whose, finding,
                 finding[0] != '\0' ? " " : "", attack);
    } else {
        snprintf(line, sizeof line, "%s: %s %.0f s", whose, attack, seconds);
    }
    if (strlen(line) >= watch->columns) line[watch->columns - 1] = '\0';
    if (strcmp(line, watch->line) == 0) return;
    memcpy(watch->line, line, sizeof line);
    fprintf(watch->stream, "\r\033[K%s", line);
    fflush(watch->stream);
}

void hyp_watch_clear(struct hyp_watch *watch) {
    if (watch->line[0] == '\0') return;
    watch->line[0] = '\0';
    fprintf(watch->stream, "\r\033[K");
    fflush(watch->stream);
}

void hyp_watch_ended(struct hyp_watch *watch, const char *claim, const char *attack,
                     const char *ending, double seconds) {
    if (watch->terminal) return;
    fprintf(watch->stream, "%-4s%-54s %-12s %6.1f s\n", claim, attack, ending, seconds);
    fflush(watch->stream);
}

void hyp_watch_limit(struct hyp_watch *watch, const char *claim, const char *saboteur, bool noticed,
                     double seconds) {
    char text[96];
    if (watch->terminal) return;
    snprintf(text, sizeof text, "limit %s", saboteur);
    fprintf(watch->stream, "%-4s%-54s %-12s %6.1f s\n", claim, text,
            noticed ? "noticed" : "not noticed", seconds);
    fflush(watch->stream);
}

void hyp_watch_sabotaged(struct hyp_watch *watch, const char *claim, const char *saboteur,
                         const char *verdict, bool right, double seconds) {
    char text[96], words[32];
    if (watch->terminal) return;
    snprintf(text, sizeof text, "saboteur %s", saboteur);
    snprintf(words, sizeof words, "%s%s", verdict, right ? "" : ": WRONG");
    fprintf(watch->stream, "%-4s%-54s %-12s %6.1f s\n", claim, text, words, seconds);
    fflush(watch->stream);
}
