/*
 * What tests of saboteurs share: a context of the soft device under one, and launches that count.
 */
#ifndef HYP_SABOTAGE_SCENE_H
#define HYP_SABOTAGE_SCENE_H

#include "tollens.h"

extern struct tol_driver *scene_driver;
extern struct tol_context *scene_context;

/* Opens both under a saboteur, and closes them; a test's .fini. */
void scene_open(const char *saboteur);
void scene_close(void);

/* Launches a kernel so often whose only parameter is the address of a counter, and returns what it
 * has counted. */
unsigned scene_count(const char *ptx, const char *kernel, unsigned launches,
                     struct tol_launch_shape shape);

#endif
