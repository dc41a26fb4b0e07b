/*
 * Call site: where the program called, for reports about what the host did.
 *
 * It is the address that an exported function returns to. The CUDA runtime above this device says
 * whose call it makes (tollens_soft_call_site), because its own address would say nothing.
 */
#ifndef SOFT_CALL_SITE_H
#define SOFT_CALL_SITE_H

#include <stddef.h>

/* Of the runtime's call that the thread is in; NULL: the program called the driver. */
extern _Thread_local const void *soft_call_site;

/* The site itself, or that of the caller of a wrapper in CUDA's headers, in which it is. Is to be
 * called on the calling thread, below the call. Remembers what it has found out. */
const void *soft_call_site_of(const void *site);

/* Writes where a call returns to: "file:line", or "program+0x12a4" where its file has no lines; ""
 * for NULL, and where it is not known. Reads the program's file. */
void soft_call_site_text(const void *site, char *text, size_t bytes);

#endif
