/*
 * Manifest: which files a run has written, so that one that is lost or changed later is noticed.
 *
 * FOLDER/manifest.json has for each file its size and its CRC-32, by its path below the folder. It
 * is written when all the others are but run.json, which comes last and has the list's own CRC.
 * Reports refuse a folder that is not as its manifest says, or whose manifest is lost or changed. A
 * checksum finds accidents; it is no signature.
 */
#ifndef HYP_MANIFEST_H
#define HYP_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

/* Lists what lies in the folder under the names, files or folders with all in them, and writes the
 * list. A name that is not there is left out. crc gets the list's own CRC-32, as eight digits.
 * false: hyp_error(). */
bool hyp_manifest_write(const char *folder, const char *const *names, size_t count, char crc[9]);

#endif
