/* sanitizers.h: what the sanitizers are told, and nothing where there are none. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_SANITIZERS_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_SANITIZERS_H

#include <stddef.h>

#ifdef __has_feature
#define ST_SIM_HAS_FEATURE(x) __has_feature(x)
#else
#define ST_SIM_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ST_SIM_HAS_FEATURE(address_sanitizer)
#define ST_SIM_ASAN 1
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
void __asan_poison_memory_region(void const volatile *addr, size_t size);
void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
#else
#define ST_SIM_ASAN 0
#define __sanitizer_start_switch_fiber(save, bottom, size) ((void)0)
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)0)
#define __asan_poison_memory_region(addr, size) ((void)(addr), (void)(size))
#define __asan_unpoison_memory_region(addr, size) ((void)(addr), (void)(size))
#endif

#if defined(__SANITIZE_THREAD__) || ST_SIM_HAS_FEATURE(thread_sanitizer)
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#else
#define __tsan_get_current_fiber() NULL
#define __tsan_create_fiber(flags) NULL
#define __tsan_destroy_fiber(fiber) ((void)(fiber))
#define __tsan_switch_to_fiber(fiber, flags) ((void)(fiber))
#endif

#endif
