/*
 * Plugin file: checks that a file is complete before it is loaded. The loader does not check the
 * length of what it maps, and a truncated file would end the process with SIGBUS.
 */
#ifndef HYP_PLUGIN_FILE_H
#define HYP_PLUGIN_FILE_H

#include <stdbool.h>

/* Loads the library in a child process, which its constructors may end. false: they did, or
 * crashed; hyp_error(). A library that the loader refuses is true: loading it here says why. */
bool hyp_plugin_file_lets_load(const char *path);

/* false: it cannot be read, is not an ELF file, or ends before its segments; hyp_error(). */
bool hyp_plugin_file_is_whole(const char *path);

#endif
