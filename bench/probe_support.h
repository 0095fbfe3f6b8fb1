/* probe_support.h: clocks, medians, and probes of what the machine can do at most, one thread. Peaks are loops of nothing but
 * the instruction that products of a level and type consist of, with accumulators that stay in registers. */
#ifndef SOTTO_BENCH_PROBE_SUPPORT_H
#define SOTTO_BENCH_PROBE_SUPPORT_H

#include "backends/cpu/cpu_kernels.h"

/* Processor time of this process: other programs on the machine disturb it less than the wall clock. */
double bench_cpu_now(void);
double bench_median(double *v, int n); /* sorts v */

/* Whether a list of names with commas between them has this one; an empty one has all. */
bool bench_listed(const char *list, const char *name);

typedef enum bench_number { BENCH_F32, BENCH_BF16, BENCH_I8, BENCH_WORDS, BENCH_BYTES } bench_number;

typedef struct bench_probe {
    const char *name;    /* of the instruction, "vpdpbusd zmm" */
    double macs;         /* multiply-adds of a call */
    void (*run)(void);   /* NULL: none on this architecture */
    void (*enter)(void); /* before it, from the kernels; NULL: nothing */
} bench_probe;

/* Levels without instructions for a number compute it with others: bf16 as f32, 8 bits as words, as bytes with sums of
 * four products in 16 bits, or as f32. */
bench_probe bench_probe_of(const st_cpu_kernels *k, bench_number number);
/* 10^9 multiply-adds a second, about 2 ms of measuring; NAN without a probe. Leaves the thread as after the kernels' enter(). */
double bench_peak(const bench_probe *probe);

/* Reads the bytes once, with vectors as wide as the level's. */
void bench_read(st_cpu_level level, const void *p, size_t bytes);

/* What is measured, again and again, and the ceiling that is measured before each sample. */
typedef struct bench_result {
    double seconds, fraction, ceiling; /* medians; fraction of the ceiling, which is in units of work a second */
} bench_result;
/* `samples` samples of at least `least` seconds of call(arg), which does `work` units of work; ceiling(ceiling_arg) gives
 * units a second, NULL: none. */
bench_result bench_measure(void (*call)(void *), void *arg, double work, double (*ceiling)(void *), void *ceiling_arg,
                           int samples, double least);

#endif
