/*
 * What test_locks.c detects: without it, a lock that is not taken would go unnoticed.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of_child(bool locks) {
    const pid_t child = fork();
    if (child == 0) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        signal(SIGABRT, SIG_DFL); /* Criterion's handler would report a crash of the test */
        if (locks) pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(locks, an_unlock_without_a_lock_ends_the_program) {
    const int with = status_of_child(true), without = status_of_child(false);
    cr_assert(WIFEXITED(with) && WEXITSTATUS(with) == 0);
#ifdef __GLIBC__
    cr_assert(WIFSIGNALED(without) && WTERMSIG(without) == SIGABRT);
#endif
}
