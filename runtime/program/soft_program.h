/*
 * Soft program: what `tollens soft` would do for a program, read from its file, and the environment
 * in which the loader uses the audit library (runtime/soft/audit).
 */
#ifndef HYP_SOFT_PROGRAM_H
#define HYP_SOFT_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct hyp_soft_program {
    char path[PATH_MAX];   /* the file that is executed; "" if there is none */
    char script[PATH_MAX]; /* the script that names it as its interpreter; "" if it is no script */
    unsigned long tls_bytes; /* that its libraries may need besides, with an audit library */
    /* Why the soft device cannot be put below it, a sentence; "" if it can. */
    char refusal[PATH_MAX + 300];
};

/* Finds a program as execvp does. A program that does not exist is not refused: starting it says
 * why. */
void hyp_soft_program_read(const char *word, struct hyp_soft_program *program);

/* Sets LD_AUDIT, LD_PRELOAD and what they need for the children of this process. soft is the real
 * path of the soft device. "": done; otherwise a sentence that says why it is not. Not for two
 * threads at a time. */
const char *hyp_soft_program_audit(const struct hyp_soft_program *program, const char *soft);

/* The command `doctor -- PROGRAM`: prints it for people, and returns the exit code. */
int hyp_soft_program_doctor(const char *word, const char *soft);

#endif
