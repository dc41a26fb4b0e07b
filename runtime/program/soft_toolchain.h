/*
 * Toolchain: the compilers that programs call under `tollens soft`, which hand PTX on
 * (runtime/soft/toolchain/README.md).
 *
 * `tollens` itself is ptxas and nvcc, by the name that it is called by. Not thread-safe: all of it
 * is called before threads begin.
 */
#ifndef HYP_SOFT_TOOLCHAIN_H
#define HYP_SOFT_TOOLCHAIN_H

#include <stdbool.h>
#include <stddef.h>

/* Makes links named ptxas and nvcc in FOLDER/bin, puts that folder in front of PATH, and sets the
 * variables by which programs find ptxas and keep what they compiled. Without a real nvcc there is
 * no link of that name. false: a sentence was printed. */
bool hyp_soft_toolchain_open(const char *folder);

/* Removes what that made. */
void hyp_soft_toolchain_close(const char *folder);

/* What a program would find, a line for each compiler, as hyp_command_say. */
void hyp_soft_toolchain_say(void);

#endif
