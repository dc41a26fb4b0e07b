/*
 * Manifest: the list of a run's files, to detect a file that is lost or changed later.
 *
 * FOLDER/manifest.json has the size and CRC-32 of each file, by its path below the folder. It is
 * written after all other files except run.json, which comes last and has the CRC of the list.
 * Reports reject a folder that does not match its manifest, or whose manifest is lost or changed. A
 * checksum detects accidents; it is not a signature.
 */
#ifndef HYP_MANIFEST_H
#define HYP_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

/* Lists the named files, and the contents of named folders, and writes the list. Names that do
 * not exist are left out. crc is set to the CRC-32 of the list, as eight digits. false:
 * hyp_error(). */
bool hyp_manifest_write(const char *folder, const char *const *names, size_t count, char crc[9]);

/* Whether a file of the run has the contents that the manifest lists. Also true for a folder
 * without manifest.json, unless its run.json says that the run wrote one: older and hand-made
 * evidence has none. false: hyp_error(). */
bool hyp_manifest_holds(const char *folder, const char *name, const char *data, size_t bytes);

#endif
