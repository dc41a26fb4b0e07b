/*
 * Site: a place in the program as people can read it. Internal: not installed. Any thread.
 */
#ifndef TOLLENS_SITE_H
#define TOLLENS_SITE_H

enum { TOL_SITE_BYTES = 200 };

/* Writes "function+0x2a (program+0x11ce)", as far as is known, and gives text back; addr2line takes
 * the latter. The function is known where the program exports it. */
const char *tol_site_text(const void *site, char text[TOL_SITE_BYTES]);

#endif
