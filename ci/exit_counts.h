/*
 * Included in front of every source of the coverage build: _exit writes gcov's counts, which
 * otherwise only exit does. Without it a child process that ends by _exit seems to execute nothing.
 *
 * Each program and library has counts of its own, and a function of its own that writes them; they
 * form a list that all of them share. No header is included, as a source may define what changes
 * headers.
 */
#ifndef TOLLENS_EXIT_COUNTS_H
#define TOLLENS_EXIT_COUNTS_H

/* From here on a call of _exit is one of this function. */
extern void _exit(int status) __asm__("tol_counts_exit");

struct tol_counts {
    void (*write)(void);
    struct tol_counts *next;
    int known;
};

extern void __gcov_dump(void);
extern void tol_counts_exit_at_once(int status) __asm__("_exit");
/* Of the whole process. */
__attribute__((weak, visibility("default"))) struct tol_counts *tol_counts_all;
/* Of this program or library. */
__attribute__((weak, visibility("hidden"))) struct tol_counts tol_counts_own;

__attribute__((constructor)) static void tol_counts_begin(void) {
    if (tol_counts_own.known) return;
    tol_counts_own.known = 1;
    tol_counts_own.write = __gcov_dump;
    tol_counts_own.next = tol_counts_all;
    tol_counts_all = &tol_counts_own;
}

__attribute__((weak, visibility("hidden"), noreturn)) void tol_counts_exit(int status) {
    for (struct tol_counts *each = tol_counts_all; each; each = each->next) each->write();
    tol_counts_exit_at_once(status);
    __builtin_unreachable();
}

#endif
