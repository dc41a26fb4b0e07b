/*
 * Manifest: which files a run has written, so that one that is lost or changed later is noticed.
 *
 * FOLDER/manifest.json has for each file its size and its CRC-32, by its path below the folder. It
 * is written when all the others are but run.json, which comes last and says that there is a list.
 * Reports refuse a folder that is not as its manifest says, or has lost it. A checksum finds accidents; it is no signature.
 */
#ifndef HYP_MANIFEST_H
#define HYP_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

/* Lists what lies in the folder under the names, files or folders with all in them, and writes the
 * list. A name that is not there is left out. false: hyp_error(). */
bool hyp_manifest_write(const char *folder, const char *const *names, size_t count);

#endif
