/*
 * hlog: files of histograms in HdrHistogram log format 1.3, one tagged line per histogram.
 *
 * All comments are in the header, with lines of under 128 characters, and times are plain decimals,
 * so that readers in C, Java, JavaScript and Python agree (MEASURING.md section 3).
 */
#ifndef HYP_HLOG_H
#define HYP_HLOG_H

#include "atomic_file.h"
#include "tollens.h"

struct hyp_hlog {
    struct hyp_file file;
    double start_s; /* seconds since 1970, UTC: the base of all times in the file */
};

/* Begins a log; hyp_hlog_end keeps it. start_s is the start of the recording. */
bool hyp_hlog_begin(struct hyp_hlog *log, const char *path, double start_s);

/* Adds the histogram of an interval that began offset_s after the start and lasted length_s. The
 * tag must not contain a comma, blank or line end. */
bool hyp_hlog_add(struct hyp_hlog *log, const char *tag, double offset_s, double length_s,
                  const struct tol_hdr *hdr);

bool hyp_hlog_end(struct hyp_hlog *log);

/* Reads a log line by line; visit does not own the histogram it receives. false: an error with
 * the line number, or visit returned false. */
struct hyp_hlog_entry {
    char tag[128];   /* "" if there is none */
    double begin_s;  /* since 1970, UTC; relative if the log has neither start nor base */
    double length_s; /* of the interval */
    const struct tol_hdr *hdr;
};
bool hyp_hlog_read(const char *path, bool (*visit)(const struct hyp_hlog_entry *entry, void *user),
                   void *user);

#endif
