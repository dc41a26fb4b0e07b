/*
 * Launched: which kernels a driver was asked to launch, and took, as its calls show it: the
 * runtime's own books are not asked. One thread. Internal: not installed.
 */
#ifndef KN_LAUNCHED_H
#define KN_LAUNCHED_H

#include "tollens.h"

/* Watches contexts that are opened from now on. As tol_interpose_install. */
tol_status launched_watch(struct tol_driver *driver);

/* How often an entry was launched; of all entries for NULL. */
size_t launched_count(const char *entry);

/* Calls use(entry, launches, user) for all that were. */
void launched_each(void (*use)(const char *entry, size_t launches, void *user), void *user);

#endif
