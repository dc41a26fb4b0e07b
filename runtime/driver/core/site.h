/*
 * Site: a code address as text. Any thread.
 */
#ifndef TOLLENS_SITE_H
#define TOLLENS_SITE_H

enum { TOL_SITE_BYTES = 200 };

/* Writes "function+0x2a (program+0x11ce)", as far as it is known, and returns text. addr2line reads
 * the second part. The function is known if the program exports it. */
const char *tol_site_text(const void *site, char text[TOL_SITE_BYTES]);

#endif
