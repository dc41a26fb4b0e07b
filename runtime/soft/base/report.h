/*
 * Report: one error or finding, with kernel, instruction, source line, block, thread, address and
 * the nearest allocation.
 *
 * A report is written to the driver's log (cuLogsDumpToMemory), to stderr, and as a line of JSON to
 * the file that TOLLENS_SOFT_REPORT names.
 */
#ifndef SOFT_REPORT_H
#define SOFT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_report_place {
    char function[128];    /* that the kernel called; "" in the kernel itself */
    char instruction[128]; /* as written */
    char source[160];      /* file:line, "" if the PTX has none */
    char inlined_at[320];  /* "", or the calls that it was inlined into: "file:line, file:line" */
    uint32_t ptx_line;
    uint32_t block[3], thread[3];
};

struct soft_report {
    int result;            /* a CUresult; 0: a finding that does not fail the launch */
    bool minor;            /* a finding that can be meant so */
    const char *kind;      /* "illegal address", "uninitialised read", ... */
    char kernel[128];      /* "": not about a single kernel; the detail has everything */
    char function[128];    /* that the kernel called; "" in the kernel itself */
    char instruction[128]; /* as written */
    char source[160];      /* file:line, "" if the PTX has none */
    char inlined_at[320];  /* "", or the calls that it was inlined into: "file:line, file:line" */
    uint32_t ptx_line;
    uint32_t block[3], thread[3];
    uint32_t lanes; /* the number of lanes of the warp */
    uint64_t address;
    char detail[768];
    bool has_other;
    struct soft_report_place other; /* the other access of a data race */
};

/* The name of a fatal result: "illegal address". Static. */
const char *soft_report_kind(int result);

/* Writes a report to all three places, or to the file alone if it is suppressed. Thread-safe. */
void soft_report_print(const struct soft_report *report);

/* Writes the report as one line of text; always terminated. */
void soft_report_text(const struct soft_report *report, char *text, size_t bytes);

/* The log that cuLogsCurrent and cuLogsDumpToMemory read: numbered lines, of which the oldest are
 * dropped when it is full. */
uint32_t soft_log_end(void);
void soft_log_add(const char *text);

/* The same for lines that end with \n, and on stderr as well. */
void soft_log_print(const char *text);

/* ---- requests that this driver refuses and a GPU's may grant ---- */

enum soft_refusal { SOFT_REFUSED_IMAGE, SOFT_REFUSED_CALL, SOFT_REFUSED_TABLE, SOFT_REFUSALS };

/* Counts a refusal and keeps the first text of its kind. Thread-safe. */
void soft_refusal_add(enum soft_refusal kind, const char *text);

/* Forgets the refusals of a kind: whoever was refused went on without. Thread-safe, and a load if
 * there are none. */
void soft_refusal_forgive(enum soft_refusal kind);

/* The number of refusals of a kind. first: the text of the first one without its line break; ""
 * if there is none. */
uint64_t soft_refusal_count(enum soft_refusal kind, char *first, size_t bytes);

/* ---- the log, continued ---- */

/* Copies the lines from *position on, each with a newline, NUL at the end; older ones that do not
 * fit are left out, with a note at the head. Returns the bytes written, NUL not counted. *position
 * moves to the end. */
size_t soft_log_dump(uint32_t *position, char *text, size_t bytes);

#endif
