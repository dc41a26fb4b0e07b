/*
 * A message is one packet (SOCK_SEQPACKET), so it arrives whole or not at all.
 */
#include "peer_message.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool peer_send(int socket, const void *message, size_t bytes, int file) {
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    if (file >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    }
    return sendmsg(socket, &header, MSG_NOSIGNAL) == (ssize_t)bytes;
}

bool peer_receive(int socket, void *message, size_t bytes, int *file, int seconds) {
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    *file = -1;
    if (poll(&ready, 1, seconds * 1000) != 1) return false;
    if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != (ssize_t)bytes) return false;
    const struct cmsghdr *first = CMSG_FIRSTHDR(&header);
    if (first != NULL && first->cmsg_type == SCM_RIGHTS) {
        memcpy(file, CMSG_DATA(first), sizeof *file);
    }
    return true;
}
