/*
 * Collective socket: packets with file descriptors between processes of one machine, over Unix
 * sockets that keep packets whole (SOCK_SEQPACKET). Internal.
 *
 * Deadlines are times of tol_now_ns. A failure has made the thread's message.
 */
#ifndef KN_COLLECTIVE_SOCKET_H
#define KN_COLLECTIVE_SOCKET_H

#include "tollens.h"

enum { KN_SOCKET_FILES_MAX = 32 };

/* A socket at a path, which no other process listens at. What a process left there that is gone is
 * removed. TOL_INVALID_ARGUMENT: the path is too long, or in use. TOL_UNWRITABLE. */
tol_status kn_socket_listen(const char *path, int *listener);
/* TOL_TIMEOUT: nobody came by then, or nobody listens. */
tol_status kn_socket_accept(int listener, uint64_t until_ns, int *peer);
tol_status kn_socket_connect(const char *path, uint64_t until_ns, int *peer);

/* The user of the process at the other end. */
bool kn_socket_is_own_user(int peer);

/* false: the other end is gone. */
bool kn_socket_send(int peer, const void *message, size_t bytes, const int *files, unsigned count);

/* Receives a packet of up to `bytes` bytes; *got is its size, 0 where the other end is gone. Files
 * beyond `count` are closed; those that did not come are -1. The caller closes the others. */
tol_status kn_socket_receive(int peer, uint64_t until_ns, void *message, size_t bytes, size_t *got,
                             int *files, unsigned count);

#endif
