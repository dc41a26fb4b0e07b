/*
 * Call site: the place of the program's call, for reports about the host.
 *
 * It is the address that an exported function returns to. The CUDA runtime above this device passes
 * on its caller (tollens_soft_call_site), because its own address would be useless.
 */
#ifndef SOFT_CALL_SITE_H
#define SOFT_CALL_SITE_H

#include <stddef.h>

/* Of the thread's current runtime call; NULL: the program called the driver. */
extern _Thread_local const void *soft_call_site;

/* The site itself or, if it is in a wrapper of CUDA's headers, that of the wrapper's caller. Must
 * be called on the calling thread, below the call. Caches its results. */
const void *soft_call_site_of(const void *site);

/* Writes the return address of a call: "file:line", or "program+0x12a4" if its file has no lines;
 * "" for NULL and if unknown. Reads the program's file. */
void soft_call_site_text(const void *site, char *text, size_t bytes);

/* Writes the path of the object that called this library, that of the nearest frame outside it; ""
 * if it is unknown. Walks the stack, so it is not for calls that are frequent. */
void soft_call_site_object(char *text, size_t bytes);

#endif
