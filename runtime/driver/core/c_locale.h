/*
 * Numbers as files and machines have them, whatever locale the program has set: in many a comma is
 * the decimal point. ci/tidy.py refuses a bare strtod in the libraries.
 */
#ifndef TOL_C_LOCALE_H
#define TOL_C_LOCALE_H

#include <locale.h>
#include <stdlib.h>

/* The C locale of all threads; made once, and kept. Thread-safe: two threads make two. */
static inline locale_t tol_c_locale(void) {
    static _Atomic(locale_t) kept;
    if (kept == (locale_t)0) kept = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return kept;
}

/* As strtod. */
static inline double tol_c_number(const char *text, char **end) {
    return strtod_l(text, end, tol_c_locale());
}

/* From here to tol_c_locale_end(), which takes the result, printf of this thread writes numbers so.
 * Nothing between them may return. */
static inline locale_t tol_c_locale_begin(void) {
    return uselocale(tol_c_locale());
}
static inline void tol_c_locale_end(locale_t before) {
    uselocale(before);
}

#endif
