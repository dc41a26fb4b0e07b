/*
 * Plugin file: whether a file is whole enough to be given to the loader, which takes the length of
 * what it maps on trust, and ends the process by SIGBUS where a file was cut off.
 */
#ifndef HYP_PLUGIN_FILE_H
#define HYP_PLUGIN_FILE_H

#include <stdbool.h>

/* false: it cannot be read, is no ELF file, or ends before its segments do; hyp_error(). */
bool hyp_plugin_file_is_whole(const char *path);

#endif
