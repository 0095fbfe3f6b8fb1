/* thread.h: threads, locks and the clock, over POSIX (thread_posix.c) or Windows (thread_win32.c). */
#ifndef SOTTO_SRC_BASE_THREAD_H
#define SOTTO_SRC_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#if defined(_WIN32)
/* The sizes of SRWLOCK, CONDITION_VARIABLE and HANDLE, without <windows.h> in a header. */
typedef struct st_mutex {
    void *lock;
} st_mutex;
typedef struct st_cond {
    void *cond;
} st_cond;
typedef struct st_thread {
    void *handle;
} st_thread;
#else
#include <pthread.h>
typedef struct st_mutex {
    pthread_mutex_t lock;
} st_mutex;
typedef struct st_cond {
    pthread_cond_t cond;
} st_cond;
typedef struct st_thread {
    pthread_t handle;
} st_thread;
#endif

/* False when the system has no room for another lock; nothing needs freeing then. */
bool st_mutex_init(st_mutex *m);
void st_mutex_destroy(st_mutex *m);
void st_mutex_lock(st_mutex *m);
void st_mutex_unlock(st_mutex *m);

bool st_cond_init(st_cond *c);
void st_cond_destroy(st_cond *c);
void st_cond_wait(st_cond *c, st_mutex *m); /* may wake without reason */
void st_cond_broadcast(st_cond *c);

/* Runs entry(arg) in a new thread; false when there can be no more threads. Join exactly once. */
bool st_thread_create(st_thread *t, void (*entry)(void *arg), void *arg);
void st_thread_join(st_thread *t);
void st_thread_yield(void);

/* Cores that this process may run on, at least 1. */
int st_thread_cores(void);
/* Threads that compute when so many are asked for, 0 = as there are cores; at most twice the cores, as the rest would only wait
 * at every barrier for a turn on one: hundreds take minutes. */
static inline int st_thread_useful(int asked)
{
    const int cores = st_thread_cores(), most = cores < 2 ? 4 : 2 * cores;
    return asked == 0 ? cores : asked < most ? asked : most;
}
/* Seconds of a clock that never goes back. */
double st_time_now(void);

#endif
