/*
 * Classes of code points, as the rules of pre-tokenizers have them: \p{L}, \p{M}, \p{N}, \p{P},
 * \p{S}, \s.
 */
#ifndef TOLLENS_UNICODE_CLASS_H
#define TOLLENS_UNICODE_CLASS_H

#include <stdint.h>

enum tol_unicode_class {
    TOL_UNICODE_OTHER,
    TOL_UNICODE_LETTER,
    TOL_UNICODE_NUMBER,
    TOL_UNICODE_PUNCTUATION,
    TOL_UNICODE_ACCENT, /* marks that combine with a letter */
    TOL_UNICODE_SYMBOL,
    TOL_UNICODE_SPACE /* the property White_Space; none of them is of another class here */
};

enum tol_unicode_class tol_unicode_class(uint32_t code);

#endif
