/*
 * The functions that an older driver lacks: those newer than CUDA 11.0, the oldest version that
 * TOLLENS_SOFT_DRIVER_VERSION may name.
 *
 * SOFT_SINCE_v(always, later) selects one of its arguments by the version v of a row of
 * functions.def. If the device reports an older version, later functions are hidden from dlsym:
 * their symbols are indirect functions, which are resolved, or not, when they are looked up.
 * Without glibc and ELF all names remain visible; cuGetProcAddress hides them everywhere.
 */
#ifndef SOFT_SINCE_H
#define SOFT_SINCE_H

#include <features.h>
#include <stdbool.h>

#if defined(__GLIBC__) && defined(__ELF__) && defined(__x86_64__)
#define SOFT_HIDES_NAMES 1
#else
#define SOFT_HIDES_NAMES 0
#endif

/* Whether the device reports a version below since. Reads the environment itself, because the
 * dynamic linker may call this before the options can be read. In a program that is linked with the
 * device, there may be no environment yet; then nothing is hidden. */
bool soft_lacks(int since);

#define SOFT_SINCE_2000(always, later) always
#define SOFT_SINCE_2010(always, later) always
#define SOFT_SINCE_2020(always, later) always
#define SOFT_SINCE_2030(always, later) always
#define SOFT_SINCE_3000(always, later) always
#define SOFT_SINCE_3010(always, later) always
#define SOFT_SINCE_3020(always, later) always
#define SOFT_SINCE_4000(always, later) always
#define SOFT_SINCE_4010(always, later) always
#define SOFT_SINCE_4020(always, later) always
#define SOFT_SINCE_5000(always, later) always
#define SOFT_SINCE_5050(always, later) always
#define SOFT_SINCE_6000(always, later) always
#define SOFT_SINCE_6050(always, later) always
#define SOFT_SINCE_7000(always, later) always
#define SOFT_SINCE_8000(always, later) always
#define SOFT_SINCE_9000(always, later) always
#define SOFT_SINCE_9020(always, later) always
#define SOFT_SINCE_10000(always, later) always
#define SOFT_SINCE_10010(always, later) always
#define SOFT_SINCE_10020(always, later) always
#define SOFT_SINCE_11000(always, later) always
#define SOFT_SINCE_11010(always, later) later
#define SOFT_SINCE_11020(always, later) later
#define SOFT_SINCE_11030(always, later) later
#define SOFT_SINCE_11040(always, later) later
#define SOFT_SINCE_11060(always, later) later
#define SOFT_SINCE_11070(always, later) later
#define SOFT_SINCE_12000(always, later) later
#define SOFT_SINCE_12010(always, later) later
#define SOFT_SINCE_12020(always, later) later
#define SOFT_SINCE_12030(always, later) later
#define SOFT_SINCE_12040(always, later) later
#define SOFT_SINCE_12050(always, later) later
#define SOFT_SINCE_12080(always, later) later
#define SOFT_SINCE_12090(always, later) later
#define SOFT_SINCE_13000(always, later) later

#endif
