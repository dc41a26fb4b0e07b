/*
 * The program: tries to falsify the claims, and reports the verdicts.
 */
#include "run/command.h"
#include "run/nearest.h"
#include "files/atomic_file.h"
#include "plugin/plugins.h"
#include "harness/session.h"
#include "run/worker.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tollens COMMAND [options]; tollens COMMAND --help describes one command\n"
    "\n"
    "  doctor [-- PROGRAM]  show the drivers and devices, or what soft would do for a program\n"
    "  list                list the claims, with their numbers of attacks and saboteurs\n"
    "  explain H3          explain a claim: prediction, method, controls, saboteurs\n"
    "  run [H1 H3 ...]     try to falsify the named claims; without names, all of them\n"
    "      --device D      auto (default), cuda, cuda:N or soft\n"
    "      --quick         small sizes; takes minutes (default)\n"
    "      --full          all sizes; takes longer and needs more memory\n"
    "      --sabotage      afterwards, repeat the attacks under each saboteur, which they must\n"
    "                      notice\n"
    "      --limits        afterwards, find the smallest fault of each kind that the attacks "
    "notice\n"
    "      --under NAME    run under one saboteur, to see how a claim is falsified\n"
    "      --only H3,H4    the same as naming the claims\n"
    "      --filter GLOB   run only the attacks with such names: 'copies_*', 'H4/*'; a claim of\n"
    "                      which attacks are left out is never reported as survived\n"
    "      --list          list the attacks that would run, and run none\n"
    "      --out DIR       write the evidence to DIR; default: evidence/TIME\n"
    "      --trace FILE    write a timeline of all driver calls and device work, for\n"
    "                      ui.perfetto.dev; claims about time are not traced, because tracing\n"
    "                      would change the times\n"
    "      --trace-every N measure the device times of every N-th operation; default 1, all\n"
    "      --trace-share N let up to N operations in quick succession share an event, and derive\n"
    "                      their times; 1 measures each operation; default 2\n"
    "      --jobs N        try up to N claims, saboteurs or ladders side by side. The default is "
    "the\n"
    "                      number of processors, limited to 8 and, on a GPU, to the number of "
    "jobs\n"
    "                      that can each have 8 GiB; with --trace it is 1. Claims about times or\n"
    "                      free memory always run alone, and so do plugins' that do not say that\n"
    "                      they share the device\n"
    "      --repeat N      run everything N times, and count the verdicts of each claim\n"
    "      --deadline S    limit each attack to S seconds; default 300, with --full 1800\n"
    "      --saboteur-deadline S   limit all attacks under a saboteur to S seconds; default 600,\n"
    "                      with --full 3600\n"
    "      --seed N        seed of the random choices; default 1; the only seed unless --seeds is\n"
    "                      given\n"
    "      --seeds N       attack claims without times with N seeds; default 2, with --full 8\n"
    "      --require-gpu   accept only a GPU, and fail if a claim is not tested\n"
    "      --allow-untested   succeed even if no attack checked anything\n"
    "      --inconclusive=fail|warn   whether an inconclusive verdict fails; default fail\n"
    "      --verbose       print a line on stderr for each attack and each saboteur\n"
    "  gate EVIDENCE --baseline EVIDENCE\n"
    "                      report what got worse since the baseline run\n"
    "      --across        compare even if the device, the mode or a threshold differs\n"
    "      --inconclusive=fail|warn   whether an undecided comparison fails; default fail\n"
    "  export EVIDENCE --format F\n"
    "                      print a run for another service: bmf, gab, gab-bigger, openmetrics,\n"
    "                      junit, github; with --json instead, the whole run as one object";

/* Several strings, because C guarantees no more than 4095 characters in one. Each command begins
 * with a line break, here and above, so that print_usage finds it. */
static const char usage_replay[] =
    "\n"
    "  replay TRACE        repeat what a program did with device memory. TRACE is the output of\n"
    "                      tol_pool_trace, an RMM log (CSV), or what _dump_snapshot of\n"
    "                      torch.cuda.memory writes (its pickle, or that as JSON); the content\n"
    "                      tells which, and nothing in it is executed\n"
    "      --profile P     the pool's profile: default (default), tight, latency, torch, lean,\n"
    "                      driver, which is the driver's own pool, or all, which compares them\n"
    "                      (driver: on a GPU)\n"
    "      --device D      auto (default), cuda, cuda:N or soft\n"
    "      --limit BYTES   the limit of the pool; if an allocation fails under it, replays find\n"
    "                      what would have fit and the least limit that serves all\n"
    "      --search S      for at most S seconds, search the options of the pool that hold the\n"
    "                      least on the first half of the trace, and judge them on the other half\n"
    "      --floor BYTES   look for the worst moment only while at least BYTES are live; default: "
    "a\n"
    "                      quarter of the peak\n"
    "      --out DIR       write map.svg (a picture of the addresses over time), replay.json,\n"
    "                      fragmentation.csv, snapshot.json, timeline.json (for Perfetto) and\n"
    "                      times.hlog; of all profiles, each in its own folder";

static const char usage_pages[] =
    "\n"
    "  threads THREADS LAUNCHES\n"
    "                      run H13's threads, which share a context, in one process, for tools "
    "that\n"
    "                      observe a process: compute-sanitizer tollens threads 4 1000\n"
    "  model info FILE     show the contents of a language model's file (GGUF): keys, tensors,\n"
    "                      tokenizer\n"
    "  model run FILE -p TEXT [options]\n"
    "                      continue a text with a language model; see tollens model run --help\n"
    "  model tokenize FILE -p TEXT\n"
    "                      print the tokens of a text; see tollens model tokenize --help\n"
    "  model bench FILE    time prompts and tokens; see tollens model bench --help\n"
    "  soft [options] -- PROGRAM ARGUMENTS\n"
    "                      run a CUDA program on the soft device; see tollens soft --help\n"
    "  guard [options] -- PROGRAM ARGUMENTS\n"
    "                      run jobs on several devices, and answer each exactly once even if\n"
    "                      devices fail; see tollens guard --help\n"
    "  report EVIDENCE...  write a page about runs: report.html, report.md, plots\n"
    "      --baseline RUN  show what changed since an earlier run\n"
    "      --history DIR   draw each effect over the runs in DIR; the last one is the baseline\n"
    "      --unpack        write the files of archives beside the page, which links to them\n"
    "      --no-png        write no PNG files, which need matplotlib\n"
    "      --open          open the page in a browser\n"
    "      --out DIR       where the page goes; default: report in EVIDENCE\n"
    "  compare OLD NEW...  show what changed between runs; two runs appear side by side\n"
    "      --across        compare even if the device, the mode or a threshold differs\n"
    "      --no-png        write no PNG files\n"
    "      --open          open the page in a browser\n"
    "      --out DIR       where the page goes; default: comparison\n"
    "  merge EVIDENCE... --out DIR\n"
    "                      combine the runs of many machines into one verdict and one page, which\n"
    "                      lists the machines that are out of line and the missing evidence\n"
    "      --partial       merge the rest if some evidence is missing or refused\n"
    "      --mixed         merge runs of several commits, modes or thresholds too\n"
    "      --inconclusive fail|warn   whether an inconclusive verdict fails; default fail\n"
    "      --no-png        write no PNG files\n"
    "      --open          open the page in a browser\n"
    "      --out DIR       where merge.json, the histograms and the page go";

static const char usage_every[] =
    "  every command       --plugin PATH.so adds the claims of your own library (ci/GATE.md); run\n"
    "                      without names then tries only those\n"
    "  every command       --json prints the answer, or the error, as one JSON object, which\n"
    "                      hypotheses/JSON.md describes\n";

static const char usage_end[] =
    "\n"
    "tollens --version prints the version\n"
    "exit codes: 0 nothing was falsified or got worse, 1 something was, or an allocation of a "
    "replay\n"
    "failed, 2 usage or harness error, or interrupted, 3 inconclusive\n"
    "environment: TOLLENS_NODE names the machine in its fleet, and is recorded in the evidence;\n"
    "TOLLENS_DEVICE, TOLLENS_MODE, TOLLENS_SEED, TOLLENS_FILTER and TOLLENS_DEADLINE "
    "set\n"
    "the defaults of --device, --quick or --full, --seed, --filter and --deadline; TOLLENS_PLUGIN "
    "is a\n"
    "list for --plugin, separated by colons; TOLLENS_LIBCUDA is the path of the driver's library;\n"
    "NO_COLOR turns off the colours that a terminal gets\n";

/* The part of the usage that describes a command, which may be several ones that share their first
 * word. NULL: the command is unknown. */
static const char *usage_of(const char *command, size_t *bytes) {
    char begin[40];
    if (strcmp(command, "crowd") == 0) command = "threads"; /* its old name */
    snprintf(begin, sizeof begin, "\n  %.30s ", command);
    const char *own = strstr(usage, begin);
    if (own == NULL) own = strstr(usage_replay, begin);
    if (own == NULL) own = strstr(usage_pages, begin);
    if (!isalpha((unsigned char)command[0]) || own == NULL) return NULL;
    const char *end = own + 1;
    do {
        end = strstr(end + 1, "\n  ");
    } while (end != NULL && (end[3] == ' ' || strncmp(end, begin, strlen(begin)) == 0));
    *bytes = end != NULL ? (size_t)(end - own) : strlen(own);
    return own;
}

/* Prints the usage of one command and what holds for every command, or all of it if the command is
 * unknown. */
static void print_usage(const char *command) {
    size_t bytes = 0;
    const char *own = usage_of(command, &bytes);
    if (own == NULL) {
        printf("%s%s%s\n%s%s", usage, usage_replay, usage_pages, usage_every, usage_end);
    } else {
        printf("usage: tollens%.*s\n%s%s", (int)bytes, own, usage_every, usage_end);
    }
}

/* For hyp_command_no_option. */
static void set_help(const char *command) {
    size_t bytes = 0;
    const char *own = usage_of(command, &bytes);
    hyp_command_has_help(usage_every, strlen(usage_every));
    if (own != NULL) hyp_command_has_help(own, bytes);
}

/* A worker process: `tollens run` starts it, not people. */
static int tollens_attack(int count, char **words) {
    struct hyp_session session;
    const char *pipe = getenv("TOLLENS_ATTACK_PIPE");
    if (count != 1) {
        hyp_command_next("%s run, which starts it", hyp_command_program());
        return hyp_command_complain("attack requires the name of one suite");
    }
    if (!hyp_session_read(&session)) return HYP_EXIT_ERROR;
    int out = pipe != NULL ? (int)strtol(pipe, NULL, 10) : -1;
    return hyp_worker_run(words[0], session.filter, out, hyp_session_deadline_s(&session));
}

static const struct command {
    const char *name;
    int (*run)(int count, char **words);
} commands[] = {{"doctor", hyp_command_doctor},   {"list", hyp_command_list},
                {"explain", hyp_command_explain}, {"run", hyp_command_run},
                {"gate", hyp_command_gate},       {"export", hyp_command_export},
                {"report", hyp_command_report},   {"compare", hyp_command_compare},
                {"merge", hyp_command_merge},     {"threads", hyp_command_threads},
                {"crowd", hyp_command_threads}, /* its old name */
                {"replay", hyp_command_replay},   {"model", hyp_command_model},
                {"attack", tollens_attack}};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int complain_of_unknown(const char *word) {
    const char *names[COMMANDS + 3] = {"soft", "guard", "help"};
    for (size_t i = 0; i < COMMANDS; i++) names[i + 3] = commands[i].name;
    const char *near = hyp_nearest(word, names, COMMANDS + 3);
    hyp_command_next("%s %s", hyp_command_program(), near != NULL ? near : "help");
    if (near == NULL) return hyp_command_complain("unknown command '%s'", word);
    return hyp_command_complain("unknown command '%s'; did you mean %s?", word, near);
}

/* Returns the exit code, or an error if the output could not be written: then nobody can read a
 * success. */
static int flush_output(const char *command, int code) {
    code = hyp_command_end(command, code);
    if (fflush(stdout) == 0 && ferror(stdout) == 0) return code;
    hyp_command_complain("stdout cannot be written: %s", strerror(errno));
    return code == HYP_EXIT_OK ? HYP_EXIT_ERROR : code;
}

/* What a parent process left ignored or blocked must not decide what this one can tell. Without
 * SIGCHLD nobody learns how a child ended. A file size limit or a reader that has gone must be a
 * reported write error, not a silent death in the middle of a run. */
static void set_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

static int run_words(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "%s%s%s\n%s%s", usage, usage_replay, usage_pages, usage_every, usage_end);
        return HYP_EXIT_ERROR;
    }
    /* Words after -- are another program's, even --help and --plugin. */
    if (strcmp(argv[1], "--version") == 0 && argc == 2) {
        puts("tollens " HYP_VERSION);
        return flush_output("--version", HYP_EXIT_OK);
    }
    if (strcmp(argv[1], "soft") == 0) {
        return flush_output("soft", hyp_command_soft(argc - 2, argv + 2));
    }
    if (strcmp(argv[1], "guard") == 0) {
        return flush_output("guard", hyp_command_guard(argc - 2, argv + 2));
    }
    /* A prompt may be any words, even --help. */
    if (argc > 2 && strcmp(argv[1], "model") == 0) {
        static const char *const own[] = {"model run", "model bench", "model tokenize"};
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
            if (strcmp(argv[2], own[i] + strlen("model ")) != 0) continue;
            return flush_output(own[i], hyp_command_model(argc - 2, argv + 2));
        }
    }
    bool wants_help = strcmp(argv[1], "help") == 0;
    for (int i = 1; i < argc; i++) {
        wants_help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    }
    if (wants_help) {
        const char *command = strcmp(argv[1], "help") == 0 && argc > 2 ? argv[2] : argv[1];
        char option[] = "--help", *only[] = {option};
        if (strcmp(command, "soft") == 0) return flush_output(command, hyp_command_soft(1, only));
        if (strcmp(command, "guard") == 0) return flush_output(command, hyp_command_guard(1, only));
        print_usage(command);
        return flush_output(command, HYP_EXIT_OK);
    }
    int count = argc - 1;
    char **words = argv + 1;
    hyp_command_take_json(&count, words);
    if (!hyp_plugins_take(&count, words) || !hyp_plugins_load()) {
        hyp_command_next("%s help", hyp_command_program());
        return flush_output("help", hyp_command_complain("%s", hyp_error()));
    }
    for (size_t i = 0; count > 0 && i < COMMANDS; i++) {
        if (strcmp(words[0], commands[i].name) == 0) {
            set_help(words[0]);
            return flush_output(words[0], commands[i].run(count - 1, words + 1));
        }
    }
    if (count == 0) {
        return flush_output("help", hyp_command_complain("--plugin and --json require a command"));
    }
    return flush_output("help", complain_of_unknown(words[0]));
}

int main(int argc, char **argv) {
    set_signals();
    hyp_command_begin(argv[0]);
    const int tool = hyp_command_soft_tool(argc, argv);
    const int code = tool >= 0 ? tool : run_words(argc, argv);
    hyp_command_exit(code);
}
