/*
 * Each: TOL_EACH(macro, a, b, ...) expands to macro(a), macro(b), ... for 1 to 16 arguments.
 * TOL_EACH_COUNT(a, b, ...) expands to their number: the arguments shift a descending list of
 * numbers, and the macro picks the one at a fixed position.
 */
#ifndef TOLLENS_EACH_H
#define TOLLENS_EACH_H

#define TOL_EACH_COUNT(...)                                                                        \
    TOL_EACH_TAIL(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TOL_EACH_TAIL(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define TOL_EACH(macro, ...) TOL_EACH_N(TOL_EACH_COUNT(__VA_ARGS__), macro, __VA_ARGS__)
#define TOL_EACH_N(n, ...) TOL_EACH_PASTE(n, __VA_ARGS__)
#define TOL_EACH_PASTE(n, ...) TOL_EACH_##n(__VA_ARGS__)
#define TOL_EACH_1(m, a) m(a)
#define TOL_EACH_2(m, a, ...) m(a), TOL_EACH_1(m, __VA_ARGS__)
#define TOL_EACH_3(m, a, ...) m(a), TOL_EACH_2(m, __VA_ARGS__)
#define TOL_EACH_4(m, a, ...) m(a), TOL_EACH_3(m, __VA_ARGS__)
#define TOL_EACH_5(m, a, ...) m(a), TOL_EACH_4(m, __VA_ARGS__)
#define TOL_EACH_6(m, a, ...) m(a), TOL_EACH_5(m, __VA_ARGS__)
#define TOL_EACH_7(m, a, ...) m(a), TOL_EACH_6(m, __VA_ARGS__)
#define TOL_EACH_8(m, a, ...) m(a), TOL_EACH_7(m, __VA_ARGS__)
#define TOL_EACH_9(m, a, ...) m(a), TOL_EACH_8(m, __VA_ARGS__)
#define TOL_EACH_10(m, a, ...) m(a), TOL_EACH_9(m, __VA_ARGS__)
#define TOL_EACH_11(m, a, ...) m(a), TOL_EACH_10(m, __VA_ARGS__)
#define TOL_EACH_12(m, a, ...) m(a), TOL_EACH_11(m, __VA_ARGS__)
#define TOL_EACH_13(m, a, ...) m(a), TOL_EACH_12(m, __VA_ARGS__)
#define TOL_EACH_14(m, a, ...) m(a), TOL_EACH_13(m, __VA_ARGS__)
#define TOL_EACH_15(m, a, ...) m(a), TOL_EACH_14(m, __VA_ARGS__)
#define TOL_EACH_16(m, a, ...) m(a), TOL_EACH_15(m, __VA_ARGS__)

#endif
