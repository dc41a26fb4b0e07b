/*
 * Sockets with deadlines.
 */
#include "collective/collective_socket.h"

#include "core/check.h"
#include "core/monotonic.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(KN_SOCKET_FILES_MAX * sizeof(int))];
};

static int left_ms(uint64_t until_ns) {
    const uint64_t now_ns = tol_now_ns();
    return now_ns >= until_ns ? 0 : (int)((until_ns - now_ns) / 1000000 + 1);
}

static tol_status collective_socket_address_of(const char *path, struct sockaddr_un *address) {
    tol_status status = TOL_OK;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    TOL_CHECK(path[0] != '\0' && strlen(path) < sizeof address->sun_path, TOL_INVALID_ARGUMENT,
              "the path of a socket has 1 to %zu bytes, and %s has %zu",
              sizeof address->sun_path - 1, path, strlen(path));
    memcpy(address->sun_path, path, strlen(path));
out:
    return status;
}

static int try_connect(const struct sockaddr_un *address) {
    const int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (peer < 0) return -1;
    if (connect(peer, (const struct sockaddr *)address, sizeof *address) == 0) return peer;
    const int error = errno;
    close(peer);
    errno = error;
    return -1;
}

/* Removes a socket that nobody listens at. */
static tol_status remove_stale(const char *path, const struct sockaddr_un *address) {
    tol_status status = TOL_OK;
    struct stat what;
    const int peer = try_connect(address);
    const bool is_refused = peer < 0 && errno == ECONNREFUSED;
    if (peer >= 0) close(peer);
    TOL_CHECK(is_refused && lstat(path, &what) == 0 && S_ISSOCK(what.st_mode), TOL_INVALID_ARGUMENT,
              "%s is in use: give each collective a path of its own", path);
    TOL_CHECK(unlink(path) == 0, TOL_UNWRITABLE, "%s cannot be removed: %s", path, strerror(errno));
out:
    return status;
}

tol_status kn_socket_listen(const char *path, int *listener) {
    tol_status status = TOL_OK;
    struct sockaddr_un address;
    int made = -1;
    TOL_TRY(collective_socket_address_of(path, &address));
    made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    TOL_CHECK(made >= 0, TOL_UNWRITABLE, "no socket: %s", strerror(errno));
    const struct sockaddr *place = (const struct sockaddr *)&address;
    int result = bind(made, place, sizeof address);
    if (result != 0 && errno == EADDRINUSE) {
        TOL_TRY(remove_stale(path, &address));
        result = bind(made, place, sizeof address);
    }
    TOL_CHECK(result == 0, TOL_UNWRITABLE, "a socket at %s cannot be made: %s", path,
              strerror(errno));
    (void)chmod(path, S_IRUSR | S_IWUSR);
    TOL_CHECK(listen(made, KN_SOCKET_FILES_MAX) == 0, TOL_UNWRITABLE, "%s: %s", path,
              strerror(errno));
    *listener = made;
    made = -1;
out:
    if (made >= 0) close(made);
    return status;
}

tol_status kn_socket_accept(int listener, uint64_t until_ns, int *peer) {
    tol_status status = TOL_OK;
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    const bool has_come = poll(&ready, 1, left_ms(until_ns)) == 1;
    *peer = has_come ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    TOL_CHECK(*peer >= 0, TOL_TIMEOUT, "nobody came in time");
out:
    return status;
}

tol_status kn_socket_connect(const char *path, uint64_t until_ns, int *peer) {
    const struct timespec pause = {.tv_nsec = 5000000};
    tol_status status = TOL_OK;
    struct sockaddr_un address;
    TOL_TRY(collective_socket_address_of(path, &address));
    while ((*peer = try_connect(&address)) < 0) {
        TOL_CHECK(tol_now_ns() < until_ns, TOL_TIMEOUT, "nobody listens at %s: %s", path,
                  strerror(errno));
        nanosleep(&pause, NULL);
    }
out:
    return status;
}

bool kn_socket_is_own_user(int peer) {
    struct ucred user = {.uid = 0};
    socklen_t bytes = sizeof user;
    return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &user, &bytes) == 0 && user.uid == geteuid();
}

bool kn_socket_send(int peer, const void *message, size_t bytes, const int *files, unsigned count) {
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof *files);
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof *files),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), files, count * sizeof *files);
    }
    return sendmsg(peer, &header, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static void take_files(struct msghdr *header, int *files, unsigned count) {
    const struct cmsghdr *first = CMSG_FIRSTHDR(header);
    if (first == NULL || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS) return;
    const size_t came = (first->cmsg_len - CMSG_LEN(0)) / sizeof *files;
    for (size_t i = 0; i < came; i++) {
        int file = -1;
        memcpy(&file, CMSG_DATA(first) + i * sizeof file, sizeof file);
        if (i < count) {
            files[i] = file;
        } else {
            close(file);
        }
    }
}

tol_status kn_socket_receive(int peer, uint64_t until_ns, void *message, size_t bytes, size_t *got,
                             int *files, unsigned count) {
    tol_status status = TOL_OK;
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct pollfd ready = {.fd = peer, .events = POLLIN};
    for (unsigned i = 0; i < count; i++) files[i] = -1;
    *got = 0;
    TOL_CHECK(poll(&ready, 1, left_ms(until_ns)) == 1, TOL_TIMEOUT, "no answer came in time");
    const ssize_t came = recvmsg(peer, &header, MSG_CMSG_CLOEXEC);
    if (came > 0) {
        *got = (size_t)came;
        take_files(&header, files, count);
    }
out:
    return status;
}
