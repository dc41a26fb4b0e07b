/*
 * hlog: histograms in a file, as HdrHistogram log format 1.3, a line each with a tag.
 *
 * Every comment stands in the header, each line of it under 128 characters, and times are plain
 * decimals: readers in C, Java, JavaScript and Python then agree (MEASURING.md section 3).
 */
#ifndef HYP_HLOG_H
#define HYP_HLOG_H

#include "atomic_file.h"
#include "tollens.h"

struct hyp_hlog {
    struct hyp_file file;
    double start_s; /* seconds since 1970, UTC: the base of all times in the file */
};

/* Begins a log; end keeps it. start_s is when the recording began. */
bool hyp_hlog_begin(struct hyp_hlog *log, const char *path, double start_s);

/* Adds a histogram of an interval that began offset_s after the start and lasted length_s. The tag
 * must have no comma, blank or line end. */
bool hyp_hlog_add(struct hyp_hlog *log, const char *tag, double offset_s, double length_s,
                  const struct tol_hdr *hdr);

bool hyp_hlog_end(struct hyp_hlog *log);

/* Reads a log line by line; visit gets a histogram it does not own. false: an error, with the
 * line's number, or visit said stop. */
struct hyp_hlog_entry {
    char tag[128];   /* "" where there is none */
    double begin_s;  /* since 1970, UTC; what the log has, where it says neither start nor base */
    double length_s; /* of the interval */
    const struct tol_hdr *hdr;
};
bool hyp_hlog_read(const char *path, bool (*visit)(const struct hyp_hlog_entry *entry, void *user),
                   void *user);

#endif
