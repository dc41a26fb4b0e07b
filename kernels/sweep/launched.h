/*
 * Launched: counts the launches of each kernel that the driver accepted. It watches the driver's
 * calls and does not use the runtime's own counters. One thread. Internal: not installed.
 */
#ifndef KN_LAUNCHED_H
#define KN_LAUNCHED_H

#include "tollens.h"

/* Watches contexts created after this call. Fails as tol_interpose_install does. */
tol_status launched_watch(struct tol_driver *driver);

/* Launches of one entry; NULL: of all entries. */
size_t launched_count(const char *entry);

/* Calls use(entry, launches, user) for each launched entry. */
void launched_each(void (*use)(const char *entry, size_t launches, void *user), void *user);

/* launched_each_since_mark calls use as launched_each does, with the launches after the last
 * launched_mark, and leaves out those of functions that nobody looked up. */
void launched_mark(void);
void launched_each_since_mark(void (*use)(const char *entry, size_t launches, void *user),
                              void *user);

#endif
