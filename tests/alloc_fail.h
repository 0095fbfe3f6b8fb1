/* alloc_fail.h: memory that runs out when a test says so.
 *
 * A test named test_<name>_alloc_fail.c, in any folder of tests/, is linked with alloc_fail.c and with the linker's --wrap, which
 * sends the library's calls of malloc, calloc, realloc, posix_memalign and mmap to it. Other libraries (jansson, PCRE2,
 * the C library itself) keep their own memory, and no code of the library knows of it. Such tests exist where
 * the linker has --wrap: not on macOS and Windows.
 *
 *   static sotto_status load(void *user)
 *   {
 *       ... one complete use, which frees all it made, also when it fails ...
 *       return status;
 *   }
 *   const long runs = alloc_fail_sweep(load, &user);
 *
 * Run it in a sanitizer build as well: that finds what a failure path leaks or frees twice. */
#ifndef SOTTO_TESTS_ALLOC_FAIL_H
#define SOTTO_TESTS_ALLOC_FAIL_H

#include <stdbool.h>

#include "sotto/base.h"

/* Request number n from now fails, from 1; all after it too if `on` is set. 0: none. Restarts the count. Any thread's requests
 * count; call this while no other thread runs. */
void alloc_fail_at(long n, bool on);
/* Requests since then. */
long alloc_fail_count(void);

/* Runs `run` with request 1 failing, then 2, and so on until a run needs fewer; first with that one alone failing, then
 * also all after it. A run must return SOTTO_E_MEMORY, or SOTTO_OK if it could do without, and the last one SOTTO_OK;
 * anything else fails the cmocka test. Returns the number of requests of a whole run. */
long alloc_fail_sweep(sotto_status (*run)(void *user), void *user);

#endif
