/* dot_table.h: the functions of st_cpu_dot, one for each type and number of rows. The file that includes it defines
 *   direct(type, rows, a, blocks, n_block, acc), spread(type, blocks, n_block, out), pack_row(),
 *   dot_product(groups, mins, bits, rows, a, b, n_part, acc, first, ahead): groups with scales and with minima
 *   EACH_TYPE, EACH_KIND      as in dot_kinds.h
 *   ST_DOT_ROWS, ST_DOT_FEW   rows of a tile of expanded and of packed weights
 *   ST_DOT_OF_KIND            how a kind's product is declared that all numbers of rows share, if not inline
 *   ST_DOT_ARRANGE            st_cpu_dot.arrange, if any */
#if !defined(ST_DOT_ARRANGE)
#define ST_DOT_ARRANGE NULL
#endif
#if !defined(ST_DOT_OF_KIND)
#define ST_DOT_OF_KIND INL
#endif

/* Each function costs the compiler as much as a small file: there are as few as do. */
#define EACH_ROW_2(X, A) X(A, 1) X(A, 2)
#define EACH_ROW_3(X, A) EACH_ROW_2(X, A) X(A, 3)
#define EACH_ROW_4(X, A) EACH_ROW_3(X, A) X(A, 4)
#define EACH_ROW_6(X, A) EACH_ROW_4(X, A) X(A, 5) X(A, 6)
#define EACH_ROW_16(X, A) \
    EACH_ROW_6(X, A)      \
    X(A, 7) X(A, 8) X(A, 9) X(A, 10) X(A, 11) X(A, 12) X(A, 13) X(A, 14) X(A, 15) X(A, 16)
#define EACH_ROW(X, A) ST_CAT(EACH_ROW, ST_DOT_ROWS)(X, A)
#define EACH_FEW(X, A) ST_CAT(EACH_ROW, ST_DOT_FEW)(X, A)

#define DIRECT(T, R)                                                                               \
    static void direct_##T##_##R(const uint8_t *a, const uint8_t *blocks, int n_block, float *acc) \
    {                                                                                              \
        direct(ST_CPU_W_##T, R, a, blocks, n_block, acc);                                          \
    }
#define TYPE(T, KIND)                                                        \
    EACH_FEW(DIRECT, T)                                                      \
    static void spread_##T(const uint8_t *blocks, int n_block, uint8_t *out) \
    {                                                                        \
        spread(ST_CPU_W_##T, blocks, n_block, out);                          \
    }
EACH_TYPE(TYPE)

#define PRODUCT(KIND, R)                                                                                     \
    static void product_##KIND##_##R(const uint8_t *a, const uint8_t *b, int n_part, float *acc, bool first, \
                                     const st_cpu_dot_ahead *ahead)                                          \
    {                                                                                                        \
        many_##KIND(R, a, b, n_part, acc, first, ahead);                                                     \
    }
#define KIND(NAME, GROUPS, MINS, BITS)                                                                                \
    ST_DOT_OF_KIND void many_##NAME(int rows, const uint8_t *a, const uint8_t *b, int n_part, float *acc, bool first, \
                                    const st_cpu_dot_ahead *ahead)                                                    \
    {                                                                                                                 \
        dot_product(GROUPS, MINS, BITS, rows, a, b, n_part, acc, first, ahead);                                       \
    }                                                                                                                 \
    EACH_ROW(PRODUCT, NAME)
EACH_KIND(KIND)

void LEVEL(st_cpu_fill_dot)(st_cpu_kernels *k)
{
    st_cpu_dot *d = &k->dot;
    *d = (st_cpu_dot){.mr = ST_DOT_ROWS, .few = ST_DOT_FEW, .pack_row = pack_row, .arrange = ST_DOT_ARRANGE};
#define SET_DIRECT(T, R) d->direct[ST_CPU_W_##T][R] = direct_##T##_##R;
#define SET_PRODUCT(KIND, R) product[R] = product_##KIND##_##R;
#define SET_TYPE(T, KIND)                                                                                  \
    EACH_FEW(SET_DIRECT, T)                                                                                \
    d->expand[ST_CPU_W_##T] = spread_##T;                                                                  \
    {                                                                                                      \
        void (**product)(const uint8_t *, const uint8_t *, int, float *, bool, const st_cpu_dot_ahead *) = \
            d->product[ST_CPU_W_##T];                                                                      \
        EACH_ROW(SET_PRODUCT, KIND)                                                                        \
    }
    EACH_TYPE(SET_TYPE)
#undef SET_TYPE
#undef SET_PRODUCT
#undef SET_DIRECT
}
