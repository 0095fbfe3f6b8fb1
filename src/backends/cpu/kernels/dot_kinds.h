/* dot_kinds.h: the kinds of expanded blocks, and which types are of one kind. Included after definitions of
 *   ST_DOT_WIDE   the kind of wide weights: plain where products know no difference; if not defined, one of their own
 *   ST_DOT_FOLD   1: expanded q2_k and q3_k have one scale in 32 k */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_KINDS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_KINDS_H

/* type, the kind of its expanded blocks */
#define EACH_TYPE(X)       \
    X(Q8_0, ST_DOT_WIDE)   \
    X(Q4_0, plain)         \
    X(Q4_1, min)           \
    X(Q5_0, plain)         \
    X(Q5_1, min)           \
    X(IQ4_NL, ST_DOT_WIDE) \
    X(Q2_K, min2)          \
    X(Q3_K, ST_DOT_PLAIN2) \
    X(Q4_K, min)           \
    X(Q5_K, min)           \
    X(Q6_K, plain2)

/* name, groups of 32 k with scales and with minima, bits of the widest type */
#if !defined(ST_DOT_WIDE)
#define ST_DOT_WIDE wide
#define WIDE_KIND(X) X(wide, 1, 0, 8)
#else
#define WIDE_KIND(X)
#endif
#if ST_DOT_FOLD
#define ST_DOT_PLAIN2 plain
#define MIN2_KIND(X) X(min2, 1, 2, 6)
#else
#define ST_DOT_PLAIN2 plain2
#define MIN2_KIND(X) X(min2, 2, 2, 2)
#endif
#define EACH_KIND(X)   \
    X(plain, 1, 0, 5)  \
    WIDE_KIND(X)       \
    X(min, 1, 1, 5)    \
    X(plain2, 2, 0, 6) \
    MIN2_KIND(X)

#endif
