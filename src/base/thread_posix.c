/* thread_posix.c: thread.h over pthreads. */
#if !defined(_WIN32)
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "base/thread.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

bool st_mutex_init(st_mutex *m)
{
    return pthread_mutex_init(&m->lock, NULL) == 0;
}

void st_mutex_destroy(st_mutex *m)
{
    pthread_mutex_destroy(&m->lock);
}

void st_mutex_lock(st_mutex *m)
{
    pthread_mutex_lock(&m->lock);
}

void st_mutex_unlock(st_mutex *m)
{
    pthread_mutex_unlock(&m->lock);
}

bool st_cond_init(st_cond *c)
{
    return pthread_cond_init(&c->cond, NULL) == 0;
}

void st_cond_destroy(st_cond *c)
{
    pthread_cond_destroy(&c->cond);
}

void st_cond_wait(st_cond *c, st_mutex *m)
{
    pthread_cond_wait(&c->cond, &m->lock);
}

void st_cond_broadcast(st_cond *c)
{
    pthread_cond_broadcast(&c->cond);
}

typedef struct start {
    void (*entry)(void *arg);
    void *arg;
} start;

static void *trampoline(void *p)
{
    const start s = *(start *)p;
    st_free(p);
    s.entry(s.arg);
    return NULL;
}

bool st_thread_create(st_thread *t, void (*entry)(void *arg), void *arg)
{
    start *s = st_alloc(1, sizeof *s);
    if (s == NULL)
        return false;
    s->entry = entry;
    s->arg = arg;
    if (pthread_create(&t->handle, NULL, trampoline, s) != 0) {
        st_free(s);
        return false;
    }
    return true;
}

void st_thread_join(st_thread *t)
{
    pthread_join(t->handle, NULL);
}

void st_thread_yield(void)
{
    sched_yield();
}

int st_thread_cores(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 4096 ? (int)n : 1;
}

double st_time_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
#else
typedef int st_thread_posix_is_empty;
#endif
