/* thread_win32.c: thread.h over the Windows API. */
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "base/alloc.h"
#include "base/thread.h"

_Static_assert(sizeof(SRWLOCK) == sizeof(st_mutex), "st_mutex holds an SRWLOCK");
_Static_assert(sizeof(CONDITION_VARIABLE) == sizeof(st_cond), "st_cond holds a CONDITION_VARIABLE");

bool st_mutex_init(st_mutex *m)
{
    InitializeSRWLock((SRWLOCK *)m);
    return true;
}

void st_mutex_destroy(st_mutex *m)
{
    (void)m;
}

void st_mutex_lock(st_mutex *m)
{
    AcquireSRWLockExclusive((SRWLOCK *)m);
}

void st_mutex_unlock(st_mutex *m)
{
    ReleaseSRWLockExclusive((SRWLOCK *)m);
}

bool st_cond_init(st_cond *c)
{
    InitializeConditionVariable((CONDITION_VARIABLE *)c);
    return true;
}

void st_cond_destroy(st_cond *c)
{
    (void)c;
}

void st_cond_wait(st_cond *c, st_mutex *m)
{
    SleepConditionVariableSRW((CONDITION_VARIABLE *)c, (SRWLOCK *)m, INFINITE, 0);
}

void st_cond_broadcast(st_cond *c)
{
    WakeAllConditionVariable((CONDITION_VARIABLE *)c);
}

typedef struct start {
    void (*entry)(void *arg);
    void *arg;
} start;

static DWORD WINAPI trampoline(LPVOID p)
{
    const start s = *(start *)p;
    st_free(p);
    s.entry(s.arg);
    return 0;
}

bool st_thread_create(st_thread *t, void (*entry)(void *arg), void *arg)
{
    start *s = st_alloc(1, sizeof *s);
    if (s == NULL)
        return false;
    s->entry = entry;
    s->arg = arg;
    t->handle = CreateThread(NULL, 0, trampoline, s, 0, NULL);
    if (t->handle == NULL) {
        st_free(s);
        return false;
    }
    return true;
}

void st_thread_join(st_thread *t)
{
    WaitForSingleObject(t->handle, INFINITE);
    CloseHandle(t->handle);
}

void st_thread_yield(void)
{
    SwitchToThread();
}

int st_thread_cores(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors > 0 ? (int)info.dwNumberOfProcessors : 1;
}

double st_time_now(void)
{
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double)now.QuadPart / (double)frequency.QuadPart;
}
#else
typedef int st_thread_win32_is_empty;
#endif
