/*
 * Soft report: what processes on the soft device reported, read from their two files: the findings
 * (TOLLENS_SOFT_REPORT) and what they did (TOLLENS_SOFT_SUMMARY), one JSON object per line.
 */
#ifndef HYP_SOFT_REPORT_H
#define HYP_SOFT_REPORT_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { HYP_SOFT_KINDS = 24 };

struct hyp_soft_report {
    uint64_t findings, notes; /* errors and warnings; what may be intended is a note */
    struct hyp_soft_kind {
        char name[48]; /* "data race"; the last one is "other" if there are too many */
        uint64_t count;
    } kinds[HYP_SOFT_KINDS];
    size_t kind_count;
    uint64_t place_count;  /* findings of one kind at one instruction or source line count once */
    struct json_t *places; /* those, while a file is read */
    char first[1600];      /* the first finding in a line; "" if there is none */
    uint64_t begun;        /* processes that used the device */
    uint64_t processes, kernels, launches; /* of those that ended by themselves */
    uint64_t suppressed;                   /* that TOLLENS_SOFT_SUPPRESSIONS names */
    uint64_t refused;                      /* driver functions that were refused */
    char first_refused[512];
    uint64_t unreadable; /* lines that are no JSON object, of either file */
};

/* Adds the lines of a file after its first skip bytes. A file that does not exist has none. */
void hyp_soft_report_findings(struct hyp_soft_report *report, const char *path, long skip);
void hyp_soft_report_summaries(struct hyp_soft_report *report, const char *path);

/* Appends a suppression to the file for each place with findings among the lines of a report after
 * its first skip bytes; errors end a launch and cannot be suppressed. false, with errno: the file
 * cannot be written. */
bool hyp_soft_report_suppress(const char *path, long skip, const char *file);

/* The same counts as one JSON object on a line. code is the program's exit code. */
void hyp_soft_report_json(const struct hyp_soft_report *report, const char *checks, int code,
                          FILE *out);

/* A few lines for people. checks is what was looked for. */
void hyp_soft_report_print(const struct hyp_soft_report *report, const char *checks, FILE *out);

#endif
