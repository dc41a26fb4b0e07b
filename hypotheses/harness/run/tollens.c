/*
 * The program: tries to falsify the claims, and says what came of it.
 */
#include "command.h"
#include "files/atomic_file.h"
#include "plugin/plugins.h"
#include "harness/session.h"
#include "worker.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tollens COMMAND [options]; tollens COMMAND --help tells of one command\n"
    "\n"
    "  doctor              which driver and device there are, and what is missing\n"
    "  list                the claims, and how many attacks and saboteurs each has\n"
    "  explain H3          one claim: prediction, method, controls, saboteurs\n"
    "  run [H1 H3 ...]     try to falsify claims; without names, all of them\n"
    "      --device D      auto (default), cuda, cuda:N or soft\n"
    "      --quick         minutes (default)\n"
    "      --full          all sizes; longer, and more memory\n"
    "      --sabotage      then break each on purpose and see that the attack notices\n"
    "      --under NAME    under one saboteur alone: how the claim falls, kept as evidence\n"
    "      --only H3,H4    the same as naming them\n"
    "      --filter GLOB   only attacks of that name, as 'copies_*' or 'H4/*'; a claim of which\n"
    "                      not all attacks ran is never said to have survived\n"
    "      --list          which attacks would run, and no more\n"
    "      --out DIR       where the evidence goes; default: evidence/TIME\n"
    "      --trace FILE    a timeline of all driver calls and device work, for ui.perfetto.dev;\n"
    "                      claims about time are left out, which it would change\n"
    "      --trace-every N the device's times of every so many operations; default 1, all\n"
    "      --trace-share N up to so many that follow each other quickly share an event, and\n"
    "                      their times are derived; 1 measures each; default 2\n"
    "      --repeat N      all of it N times, and how often each verdict came\n"
    "      --deadline S    seconds that each attack may take; default 300, with --full 1800\n"
    "      --seed N        what the random choices begin with; default 1\n"
    "      --require-gpu   only a GPU will do, and a claim that is not tested fails\n"
    "      --inconclusive=fail|warn   whether an inconclusive verdict fails; default fail\n"
    "  gate EVIDENCE --baseline EVIDENCE\n"
    "                      what got worse from one run to another\n"
    "      --across        though the device, the mode or a threshold differ\n"
    "      --inconclusive=fail|warn   whether what cannot be told fails; default fail\n"
    "  export EVIDENCE --format F\n"
    "                      a run for other services: bmf, gab, gab-bigger, openmetrics, junit,\n"
    "                      github\n"
    "  replay TRACE        what a program did with a pool (tol_pool_trace), done again\n"
    "      --profile P     the pool's: default (default), tight, latency, or driver, which is the\n"
    "                      driver's own\n"
    "      --device D      auto (default), cuda, cuda:N or soft\n"
    "      --limit BYTES   what the pool may take of the device\n"
    "      --floor BYTES   the worst moment is looked for where so much is live; default: a\n"
    "                      quarter of the most that ever is\n"
    "      --out DIR       evidence: replay.json, fragmentation.csv, snapshot.json,\n"
    "                      timeline.json for Perfetto, times.hlog\n"
    "  crowd THREADS LAUNCHES\n"
    "                      threads that share a context (H13), in a process of their own, for\n"
    "                      tools that watch one: compute-sanitizer tollens crowd 4 1000\n"
    "  every command       --plugin PATH.so adds the claims of a library of your own "
    "(ci/GATE.md);\n"
    "                      then run without names tries those alone\n"
    "\n"
    "exit codes: 0 nothing was falsified or got worse, 1 something did, 2 usage or harness error\n"
    "or interrupted, 3 inconclusive\n"
    "environment: TOLLENS_DEVICE, TOLLENS_MODE, TOLLENS_SEED, TOLLENS_FILTER, TOLLENS_DEADLINE\n"
    "stand for --device, --quick or --full, --seed, --filter, --deadline; TOLLENS_PLUGIN for\n"
    "--plugin, with colons between several; TOLLENS_LIBCUDA names the driver's library\n";

/* All of it, or what it says of one command and of every one. */
static void tell_usage(const char *command) {
    char begin[40];
    snprintf(begin, sizeof begin, "\n  %.30s ", command);
    const char *every = strstr(usage, "\n  every command");
    const char *own = strstr(usage, begin);
    if (!isalpha((unsigned char)command[0]) || own == NULL || every == NULL || own >= every) {
        fputs(usage, stdout);
        return;
    }
    const char *end = own + 1;
    do {
        end = strstr(end + 1, "\n  ");
    } while (end[3] == ' ');
    printf("usage: tollens%.*s\n%s", (int)(end - own), own, every);
}

int hyp_command_complain(const char *format, ...) {
    va_list arguments;
    fputs("tollens: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return HYP_EXIT_ERROR;
}

/* A worker: started by `tollens run`, and not by people. */
static int attack(int count, char **words) {
    struct hyp_session session;
    const char *pipe = getenv("TOLLENS_ATTACK_PIPE");
    if (count != 1) return hyp_command_complain("attack takes the name of one suite");
    if (!hyp_session_read(&session)) return HYP_EXIT_ERROR;
    int out = pipe != NULL ? (int)strtol(pipe, NULL, 10) : -1;
    return hyp_worker_run(words[0], session.filter, out, hyp_session_deadline_s(&session));
}

static const struct {
    const char *name;
    int (*run)(int count, char **words);
} commands[] = {{"doctor", hyp_command_doctor},
                {"list", hyp_command_list},
                {"explain", hyp_command_explain},
                {"run", hyp_command_run},
                {"gate", hyp_command_gate},
                {"export", hyp_command_export},
                {"crowd", hyp_command_crowd},
                {"replay", hyp_command_replay},
                {"attack", attack}};

/* The exit code, unless what was said has not arrived: a pass that nobody can read is none. */
static int tell_all(int code) {
    if (fflush(stdout) == 0 && ferror(stdout) == 0) return code;
    hyp_command_complain("stdout cannot be written: %s", strerror(errno));
    return code == HYP_EXIT_OK ? HYP_EXIT_ERROR : code;
}

int main(int argc, char **argv) {
    /* A file that may not grow is an error of the write, with its sentence, and no silent death. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        fputs(usage, stderr);
        return HYP_EXIT_ERROR;
    }
    bool wants_help = strcmp(argv[1], "help") == 0;
    for (int i = 1; i < argc; i++) {
        wants_help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    }
    if (wants_help) {
        tell_usage(strcmp(argv[1], "help") == 0 && argc > 2 ? argv[2] : argv[1]);
        return tell_all(HYP_EXIT_OK);
    }
    int count = argc - 1;
    char **words = argv + 1;
    if (!hyp_plugins_take(&count, words) || !hyp_plugins_load()) {
        return hyp_command_complain("%s", hyp_error());
    }
    for (size_t i = 0; count > 0 && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(words[0], commands[i].name) == 0) {
            return tell_all(commands[i].run(count - 1, words + 1));
        }
    }
    if (count == 0) return hyp_command_complain("--plugin stands beside a command");
    return hyp_command_complain("there is no command '%s'; see tollens help", argv[1]);
}
