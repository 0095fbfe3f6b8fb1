/* test_gpu_sim.c: the simulator gives every word of the kernels' dialect its meaning, at every size of subgroups and in every
 * order, and finds the mistakes that a real device would let pass. Kernels here are small and wrong on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/sim/prelude.h"
#include "backends/gpu/api/sim/sanitizers.h"

/* ---- running a kernel of this file ---- */

struct none_p {
    int n, what;
};

enum { MOST = 4096, LOCAL_BYTES = 16384 };
typedef struct bench {
    st_sim_group group;
    st_sim_work work;
    sotto_error err;
    _Alignas(16) float in[MOST];
    char between[64];
    _Alignas(16) float out[MOST];
    uint16_t halves[MOST];
} bench;

static const int subgroups[] = {8, 16, 32, 64};
static const st_sim_order orders[] = {ST_SIM_FORWARD, ST_SIM_REVERSE, ST_SIM_SHUFFLED};

static bench *begin(int subgroup, st_sim_order order)
{
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    assert_int_equal(st_sim_group_init(&b->group, LOCAL_BYTES, &b->err), SOTTO_OK);
    b->group.subgroup = subgroup;
    b->group.order = order;
    return b;
}

static void end(bench *b)
{
    st_sim_group_free(&b->group);
    free(b);
}

/* Buffers: in (or halves, for one of three), out. */
static sotto_status run(bench *b, const st_sim_kernel *k, int grid_x, int grid_y, int n, int what)
{
    const struct none_p p = {n, what};
    b->work = (st_sim_work){.kernel = k, .grid = {(uint32_t)grid_x, (uint32_t)grid_y, 1}};
    memcpy(b->work.params, &p, sizeof p);
    void *const arg[] = {b->in, b->out, b->halves};
    const size_t size[] = {sizeof b->in, sizeof b->out, sizeof b->halves};
    for (int i = 0; i < k->n_args; i++) {
        b->work.arg[i] = arg[i];
        b->work.arg_end[i] = (char *)arg[i] + size[i];
    }
    return st_sim_group_run(&b->group, &b->work, &b->err);
}

static void run_well(bench *b, const st_sim_kernel *k, int grid_x, int grid_y, int n, int what)
{
    if (run(b, k, grid_x, grid_y, n, what) != SOTTO_OK)
        fail_msg("%s", b->err.text);
}

/* Every piece of text is part of the error. */
static void run_badly(bench *b, const st_sim_kernel *k, int what, const char *const *piece)
{
    assert_int_equal(run(b, k, 1, 1, 0, what), SOTTO_E_DEVICE);
    for (; *piece; piece++)
        if (!strstr(b->err.text, *piece))
            fail_msg("\"%s\" does not say \"%s\"", b->err.text, *piece);
}

#define FOR_EVERY(b)                   \
    for (int at_ = 0; at_ < 12; at_++) \
        for (bench *b = begin(subgroups[at_ % 4], orders[at_ / 4]); b; end(b), b = NULL)

/* ---- exchanges ---- */

KERNEL2(exchanges, 128, struct none_p, const float, x, float, y)
WG_SCRATCH()
const float v = x[GROUP_X * 128 + LID];
GLOBAL float *to = y + (GROUP_X * 128 + LID) * 8;
to[0] = sg_sum(v);
to[1] = sg_max(v);
to[2] = sg_xor(v, 1);
to[3] = sg_xor(v, SG_SIZE / 2);
to[4] = wg_sum(v);
to[5] = wg_max(1.0f - v);
to[6] = (float)SG_SIZE;
to[7] = (float)(GROUP_X * 1000 + GROUP_Y * 100 + GROUP_Z);
KERNEL_END

static void exchanges_are_right(void **state)
{
    (void)state;
    FOR_EVERY(b)
    {
        const int s = b->group.subgroup;
        for (int i = 0; i < 256; i++)
            b->in[i] = (float)i;
        run_well(b, &st_sim_kernel_exchanges, 2, 1, 0, 0);
        for (int i = 0; i < 256; i++) {
            const int first = i / s * s, group = i / 128; /* sums of consecutive whole numbers */
            const float want[8] = {(float)(s * first + s * (s - 1) / 2),
                                   (float)(first + s - 1),
                                   (float)(i % 2 ? i - 1 : i + 1),
                                   (float)((i - first) % s < s / 2 ? i + s / 2 : i - s / 2),
                                   (float)(group * 128 * 128 + 127 * 64),
                                   (float)(1 - group * 128),
                                   (float)s,
                                   (float)(group * 1000)};
            assert_memory_equal(b->out + i * 8, want, sizeof want);
        }
    }
}

/* ---- orders ---- */

KERNEL2(turns, 64, struct none_p, const float, x, float, y)
y[1 + (int)y[0]] = (float)((GROUP_Y * 2 + GROUP_X) * 64 + LID);
y[0] += 1.0f;
(void)x;
KERNEL_END

static void items_run_in_order(void **state)
{
    (void)state;
    FOR_EVERY(b)
    {
        bool seen[256] = {false}, rising = true, falling = true;
        run_well(b, &st_sim_kernel_turns, 2, 2, 0, 0);
        for (int i = 0; i < 256; i++) {
            const int which = (int)b->out[1 + i];
            assert_in_range(which, 0, 255);
            assert_false(seen[which]);
            seen[which] = true;
            rising = rising && which == i;
            falling = falling && which == 255 - i;
        }
        assert_int_equal(rising, b->group.order == ST_SIM_FORWARD);
        assert_int_equal(falling, b->group.order == ST_SIM_REVERSE);
    }
}

/* ---- local memory ---- */

KERNEL2(poisoned, 64, struct none_p, const float, x, float, y)
LOCAL(uint, a, 64)
LOCAL(uchar, b, 3)
y[GROUP_X * 64 + LID] = a[LID] == 0xffffffffu && b[LID % 3] == 255 ? 1.0f : 0.0f;
BARRIER();
a[LID] = 7;
(void)x;
KERNEL_END

KERNEL2(too_much, 64, struct none_p, const float, x, float, y)
LOCAL(float, a, 2048)
LOCAL(float, b, 2049)
y[LID] = a[0] + b[0] + x[0];
KERNEL_END

KERNEL2(over_the_end, 64, struct none_p, const float, x, float, y)
LOCAL(float, a, 5)
volatile float *end = a;
if (LID == 0)
    end[p.n + 5] = 1.0f;
y[LID] = x[0];
KERNEL_END

static void local_memory_is_poisoned_and_bounded(void **state)
{
    (void)state;
    FOR_EVERY(b)
    {
        for (int round = 0; round < 2; round++) {
            memset(b->out, 0, sizeof b->out);
            run_well(b, &st_sim_kernel_poisoned, 3, 1, 0, 0);
            for (int i = 0; i < 192; i++)
                assert_true(b->out[i] == 1.0f);
        }
        run_badly(b, &st_sim_kernel_too_much, 0,
                  (const char *const[]){"kernel too_much", "test_gpu_sim.c", "8192", "16384", NULL});
        run_well(b, &st_sim_kernel_poisoned, 1, 1, 0, 0);
        if (!ST_SIM_ASAN) /* which would end the program */
            run_badly(b, &st_sim_kernel_over_the_end, 0,
                      (const char *const[]){"kernel over_the_end", "behind local array 0", NULL});
    }
}

/* ---- barriers ---- */

KERNEL2(divergent, 64, struct none_p, const float, x, float, y)
SG_SCRATCH(64)
float v = x[LID];
if (p.what == 0 && LID == 5)
    BARRIER();
if (p.what == 1) {
    if (LID < 32) {
        BARRIER();
    } else {
        BARRIER();
    }
}
if (p.what == 2 && LID != 63)
    v = sg_sum(v);
if (p.what == 3 && LID / SG_SIZE == 0) /* fine on many devices, not where subgroups are played */
    v = sg_sum(v);
if (p.what == 3)
    BARRIER();
y[LID] = v;
KERNEL_END

static void divergence_is_an_error(void **state)
{
    (void)state;
    FOR_EVERY(b)
    {
        run_badly(b, &st_sim_kernel_divergent, 0,
                  (const char *const[]){"kernel divergent, group (0, 0, 0)", "divergent barrier",
                                        "item 5 waits at test_gpu_sim.c:", "has left", NULL});
        run_badly(
            b, &st_sim_kernel_divergent, 1,
            (const char *const[]){"divergent barrier", "item 0 waits at test_gpu_sim.c:", "item 32 waits at", NULL});
        run_badly(b, &st_sim_kernel_divergent, 2,
                  (const char *const[]){"divergent barrier", "item 63 has left", "waits at test_gpu_sim.c:", NULL});
        if (b->group.subgroup < 64)
            run_badly(b, &st_sim_kernel_divergent, 3,
                      (const char *const[]){"passed 1 and 0 words that all items reach", NULL});
        run_well(b, &st_sim_kernel_divergent, 2, 2, 0, 4); /* and the group is as good as new */
    }
}

/* Reverses 128 numbers; what: 1 without the barrier, 2 with a subgroup's word in its place. */
KERNEL2(backwards, 128, struct none_p, const float, x, float, y)
SG_SCRATCH(128)
LOCAL(float, a, 128)
a[LID] = x[GROUP_X * 128 + LID];
if (p.what == 0)
    BARRIER();
if (p.what == 2)
    (void)sg_sum(1.0f);
y[GROUP_X * 128 + LID] = a[127 - LID];
KERNEL_END

static void a_missing_barrier_shows(void **state)
{
    (void)state;
    FOR_EVERY(b)
    for (int what = 0; what < 3; what++) {
        int wrong = 0;
        for (int i = 0; i < 256; i++)
            b->in[i] = (float)i;
        run_well(b, &st_sim_kernel_backwards, 2, 1, 0, what);
        for (int i = 0; i < 256; i++)
            wrong += b->out[i] != (float)(i / 128 * 128 + 127 - i % 128);
        if (what == 0)
            assert_int_equal(wrong, 0);
        else
            assert_true(wrong > 0);
    }
}

/* ---- asynchronous copies ---- */

/* what: how many batches may be on their way when the first two of three are read. */
KERNEL2(staged, 64, struct none_p, const float, x, float, y)
LOCAL(float, a, 3 * 4 * 64)
for (int i = 0; i < 3; i++) {
    COPY16_ASYNC(a + i * 256 + LID * 4, x + i * 256 + LID * 4);
    ASYNC_COMMIT();
}
if (p.what >= 0)
    ASYNC_WAIT(p.what);
BARRIER();
for (int i = 0; i < 3; i++)
    y[i * 64 + LID] = a[i * 256 + 255 - LID];
KERNEL_END

static void copies_land_at_the_wait(void **state)
{
    (void)state;
    FOR_EVERY(b)
    {
        for (int i = 0; i < MOST; i++)
            b->in[i] = (float)i;
        for (int what = -1; what < 4; what++) {
            const int landed = what < 0 ? 0 : 3 - what;
            run_well(b, &st_sim_kernel_staged, 1, 1, 0, what);
            for (int i = 0; i < 192; i++) {
                const bool there = b->out[i] == (float)(i / 64 * 256 + 255 - i % 64);
                assert_int_equal(there, i / 64 < landed);
                assert_true(there || b->out[i] != b->out[i]);
            }
        }
    }
}

/* ---- addresses ---- */

KERNEL2(addresses, 64, struct none_p, const float, x, float, y)
LOCAL(float, a, 64)
float4_t v = {1, 2, 3, 4};
if (p.what == 0)
    v = LDF4(x, p.n * 4 + 1);
if (p.what == 1)
    v.x = as_f(LDU4((GLOBAL const uint *)x, MOST).x);
if (p.what == 2)
    STF4(y, -4, v);
if (p.what == 3)
    COPY16_ASYNC(a + 1, x);
if (p.what == 4)
    COPY16_ASYNC(a, x + MOST - 2);
if (p.what == 5)
    v.y = as_f(LDU2((GLOBAL const uint *)x, 1).y);
if (p.what == 6)
    COPY16_ASYNC((SHARED float *)y, x);
if (LID == 0) {
    STF4(y, 0, v);
    STU4((GLOBAL uint *)y, 4, ((uint4_t){1, 2, 3, 4}));
    y[8] = as_f(LDU1((GLOBAL const uint *)x, 3));
    y[9] = as_f(LDU2((GLOBAL const uint *)x, 4).y);
    y[10] = LDF4(x, 8).z;
}
KERNEL_END

static void addresses_are_checked(void **state)
{
    (void)state;
    bench *b = begin(32, ST_SIM_FORWARD);
    static const char *const says[] = {"16 bytes at an address that is 4 above",
                                       "16 bytes outside of every buffer",
                                       "16 bytes outside of every buffer",
                                       "asynchronous copy to where no aligned",
                                       "address that is 8 above",
                                       "8 bytes at an address that is 4 above",
                                       "asynchronous copy to where no aligned"};
    for (int what = 0; what < 7; what++)
        run_badly(b, &st_sim_kernel_addresses, what,
                  (const char *const[]){says[what], "kernel addresses", "item 0 at test_gpu_sim.c:", NULL});
    for (int i = 0; i < 16; i++)
        b->in[i] = (float)i + 0.5f;
    run_well(b, &st_sim_kernel_addresses, 1, 1, 0, 7);
    const float want[11] = {1, 2, 3, 4, as_f(1), as_f(2), as_f(3), as_f(4), 3.5f, 5.5f, 10.5f};
    assert_memory_equal(b->out, want, sizeof want);
    end(b);
}

/* ---- bits and numbers ---- */

KERNEL3(numbers, 64, struct none_p, const float, x, float, y, half_t, h)
if (LID == 0) {
    STH(h, 0, 1.0f + 0x1p-11f); /* between two halves: the even one, below */
    STH(h, 1, 1.0f + 0x3p-11f); /* the even one, above */
    STH(h, 2, 65520.0f);
    STH(h, 3, -0x1p-24f);
    STBF((GLOBAL bf16_t *)h, 4, 1.0f + 0x1p-8f);
    STBF((GLOBAL bf16_t *)h, 5, 1.0f + 0x3p-8f);
    y[0] = LDH(h, 1);
    y[1] = LDBF((GLOBAL const bf16_t *)h, 5);
    const uint u = pack_half2(-2.0f, 0.25f);
    y[2] = as_f(u);
    y[3] = half_lo(u);
    y[4] = half_hi(u);
    y[5] = half_f(0x7bff) + bf16_f(0x3f80);
    y[6] = as_f((uint)f_half(0.5f) << 16 | f_bf16(0.5f));
    y[7] = (float)dot4_i8(0x80ff017fu, 0x80020381u, 10); /* 127*-127 + 1*3 + -1*2 + -128*-128 + 10 */
    y[8] = (float)(imin(-3, 2) * 10 + imax(-3, 2));
    y[9] = rsqrt_(0.25f);
    y[10] = exp2_(-3.0f);
    y[11] = fmax_(-1.0f, fmin_(fabs_(-5.0f), 3.0f));
    y[12] = sqrt_(9.0f) + exp_(0.0f) + log_(1.0f) + tanh_(0.0f) + erf_(0.0f);
}
(void)x;
KERNEL_END

static void numbers_are_right(void **state)
{
    (void)state;
    bench *b = begin(16, ST_SIM_FORWARD);
    run_well(b, &st_sim_kernel_numbers, 1, 1, 0, 0);
    const uint16_t halves[] = {0x3c00, 0x3c02, 0x7c00, 0x8001, 0x3f80, 0x3f82};
    assert_memory_equal(b->halves, halves, sizeof halves);
    const float want[13] = {1.001953125f,
                            1.015625f,
                            as_f(0x3400c000u),
                            -2.0f,
                            0.25f,
                            65505.0f,
                            as_f(0x38003f00u),
                            268.0f - 2.0f,
                            -28.0f,
                            2.0f,
                            0.125f,
                            3.0f,
                            4.0f};
    assert_memory_equal(b->out, want, sizeof want);
    end(b);
}

/* ---- tiles ---- */

enum { TILE_K = 48, TILE_LINE = 56 }; /* halves of a row with a gap */

/* y = left right^T of [16, TILE_K] each, then its rows' maxima and sums, then (left right^T) right as halves times halves. */
KERNEL3(tiles, 32, struct none_p, const float, x, float, y, half_t, h)
LOCAL(half_t, left, 16 * TILE_LINE)
LOCAL(half_t, right, 16 * TILE_LINE)
LOCAL(half_t, turned, TILE_K * 24)
for (int i = LID; i < 16 * TILE_K; i += 32) {
    const int r = i / TILE_K, k = i % TILE_K;
    left[r * TILE_LINE + k] = f_half(x[i]);
    right[r * TILE_LINE + k] = f_half(x[16 * TILE_K + i]);
    turned[k * 24 + r] = f_half(x[16 * TILE_K + i]);
}
BARRIER();
tile_c c, d;
tile_a a;
tile_b b;
tile_zero(c);
tile_zero(d);
for (int k = 0; k < TILE_K; k += 16) {
    tile_load_a(a, left + k, TILE_LINE);
    tile_load_b(b, right + k, TILE_LINE);
    tile_mma(c, a, b);
    tile_load_bt(b, turned + k * 24, 24);
    tile_mma(d, a, b);
}
tile_c_to_a(a, c);
for (int i = 0; i < TILE_N; i++) {
    const int at = TILE_ROW(LID, i) * 16 + TILE_COL(LID, i);
    y[at] = TILE_C(c, i);
    y[256 + at] = TILE_C(d, i);
}
float low = -1e30f, high = -1e30f, sum_low = 0.0f, sum_high = 0.0f;
for (int i = 0; i < TILE_N; i++) {
    const float v = TILE_C(c, i);
    if (TILE_ROW(LID, i) == TILE_ROW(LID, 0)) {
        low = fmax_(low, v);
        sum_low += v;
    } else {
        high = fmax_(high, v);
        sum_high += v;
    }
}
low = tile_row_max(low);
high = tile_row_max(high);
y[512 + TILE_ROW(LID, 0)] = low;
y[512 + TILE_ROW(LID, 2)] = high;
sum_low = tile_row_sum(sum_low);
sum_high = tile_row_sum(sum_high);
y[528 + TILE_ROW(LID, 0)] = sum_low;
y[528 + TILE_ROW(LID, 2)] = sum_high;
tile_load_bt(b, right, TILE_LINE); /* k is the row of right, columns are its first 16 elements */
tile_zero(d);
tile_mma(d, a, b);
for (int i = 0; i < TILE_N; i++)
    y[544 + TILE_ROW(LID, i) * 16 + TILE_COL(LID, i)] = TILE_C(d, i);
h[0] = 0;
KERNEL_END

static void tiles_multiply(void **state)
{
    (void)state;
    bench *b = begin(32, ST_SIM_SHUFFLED);
    uint32_t seed = 1;
    for (int i = 0; i < 32 * TILE_K; i++) { /* products and sums of such numbers are exact in f32 */
        seed = seed * 1664525u + 1013904223u;
        b->in[i] = (float)((int)(seed >> 24) - 128) / 64;
    }
    run_well(b, &st_sim_kernel_tiles, 1, 1, 0, 0);
    const float *const left = b->in, *const right = b->in + 16 * TILE_K;
    float product[16][16];
    for (int r = 0; r < 16; r++) {
        float most = -1e30f, sum = 0;
        for (int c = 0; c < 16; c++) {
            float want = 0;
            for (int k = 0; k < TILE_K; k++)
                want += left[r * TILE_K + k] * right[c * TILE_K + k];
            assert_true(b->out[r * 16 + c] == want);
            assert_true(b->out[256 + r * 16 + c] == want);
            product[r][c] = want;
            most = want > most ? want : most;
            sum += want;
        }
        assert_true(b->out[512 + r] == most);
        assert_true(b->out[528 + r] == sum);
    }
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) {
            double want = 0, magnitude = 0;
            for (int k = 0; k < 16; k++) {
                const double one = (double)st_f16_to_f32(st_f32_to_f16(product[r][k])) * right[k * TILE_K + c];
                want += one;
                magnitude += fabs(one);
            }
            assert_true(fabs(b->out[544 + r * 16 + c] - want) <= 16 * 0x1p-24 * magnitude);
        }
    end(b);
}

/* The figures "MMA .m16n8k16 fragment layout" of the PTX manual: %laneid 5 is group 1, thread 1 of it; 31 is the last. */
static void tiles_lie_as_ptx_says(void **state)
{
    (void)state;
    static const int row[2][8] = {{1, 1, 9, 9, 1, 1, 9, 9}, {7, 7, 15, 15, 7, 7, 15, 15}};
    static const int column[2][8] = {{2, 3, 2, 3, 10, 11, 10, 11}, {6, 7, 6, 7, 14, 15, 14, 15}};
    for (int i = 0; i < TILE_N; i++)
        for (int l = 0; l < 2; l++) {
            assert_int_equal(TILE_ROW(l ? 31 : 5, i), row[l][i]);
            assert_int_equal(TILE_COL(l ? 31 : 5, i), column[l][i]);
        }
    bool seen[16][16] = {{false}};
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < TILE_N; i++) {
            assert_false(seen[TILE_ROW(l, i)][TILE_COL(l, i)]);
            seen[TILE_ROW(l, i)][TILE_COL(l, i)] = true;
        }
}

/* Lane 5 writes what it holds of tiles whose element (r, k) is 16 r + k. */
KERNEL2(fragments, 32, struct none_p, const float, x, float, y)
LOCAL(half_t, t, 16 * 24)
LOCAL(half_t, bad, 16 * 20)
for (int i = LID; i < 256; i += 32)
    t[i / 16 * 24 + i % 16] = f_half((float)i);
BARRIER();
tile_a a;
tile_b b;
tile_load_a(a, t, 24);
tile_load_b(b, t, 24);
if (p.what == 1)
    tile_load_a(a, bad, 20);
if (p.what == 2)
    tile_load_a(a, t + 1, 24);
if (p.what == 3)
    tile_load_b(b, bad + 160, 24);
for (int i = 0; i < 4 && LID == 5; i++) {
    y[2 * i] = half_lo(a.v[i]);
    y[2 * i + 1] = half_hi(a.v[i]);
    y[8 + 2 * i] = half_lo(b.v[i]);
    y[9 + 2 * i] = half_hi(b.v[i]);
}
(void)x;
KERNEL_END

static void fragments_lie_as_ptx_says(void **state)
{
    (void)state;
    bench *b = begin(32, ST_SIM_REVERSE);
    run_well(b, &st_sim_kernel_fragments, 1, 1, 0, 0);
    static const float want[16] = {18, 19, 146, 147, 26,  27,  154, 155,  /* a: rows 1, 9, 1, 9; k 2, 2, 10, 10 */
                                   18, 19, 26,  27,  146, 147, 154, 155}; /* b: columns 1, 1, 9, 9; k 2, 10, 2, 10 */
    assert_memory_equal(b->out, want, sizeof want);
    run_badly(b, &st_sim_kernel_fragments, 1, (const char *const[]){"rows of 20 halves", NULL});
    run_badly(b, &st_sim_kernel_fragments, 2, (const char *const[]){"2 above a multiple of 16", NULL});
    run_badly(b, &st_sim_kernel_fragments, 3, (const char *const[]){"outside of local memory", NULL});
    b->group.subgroup = 16;
    run_badly(b, &st_sim_kernel_fragments, 0, (const char *const[]){"a subgroup of 32, this one has 16", NULL});
    end(b);
}

KERNEL2(eights, 32, struct none_p, const float, x, float, y)
LOCAL(half_t, t, 64)
float v[8];
for (int i = 0; i < 8; i++)
    v[i] = x[i];
if (LID == 0) {
    STORE_HALVES8(t, v);
    STORE_ZEROS8(t + 8);
    for (int i = 0; i < 16; i++)
        y[i] = half_f(t[i]);
}
if (p.what == 1)
    STORE_ZEROS8(t + 1);
KERNEL_END

static void eights_are_limited_halves(void **state)
{
    (void)state;
    bench *b = begin(32, ST_SIM_FORWARD);
    static const float in[8] = {1, -0x1p-24f, 1e9f, -1e9f, 65519, 0, INFINITY, 3};
    static const float want[16] = {1, -0x1p-24f, 65504, -65504, 65504, 0, 65504, 3};
    memcpy(b->in, in, sizeof in);
    run_well(b, &st_sim_kernel_eights, 1, 1, 0, 0);
    assert_memory_equal(b->out, want, sizeof want);
    run_badly(b, &st_sim_kernel_eights, 1, (const char *const[]){"eight halves at an address 2 above", NULL});
    end(b);
}

/* ---- all kernels ---- */

static void kernels_are_as_listed(void **state)
{
    (void)state;
    for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++) {
        const st_sim_kernel *k = st_sim_kernels[i];
        const st_gpu_kernel_info *info = &st_gpu_kernels[i];
        assert_string_equal(k->name, info->name);
        if (k->group != info->group || k->n_args != info->n_args || k->param_bytes != info->param_bytes ||
            info->param_bytes > ST_GPU_PARAM_BYTES)
            fail_msg("%s: group %d, %d buffers, %zu bytes, listed as %d, %d, %zu", k->name, k->group, k->n_args,
                     k->param_bytes, info->group, info->n_args, info->param_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_are_right),
        cmocka_unit_test(items_run_in_order),
        cmocka_unit_test(local_memory_is_poisoned_and_bounded),
        cmocka_unit_test(divergence_is_an_error),
        cmocka_unit_test(a_missing_barrier_shows),
        cmocka_unit_test(copies_land_at_the_wait),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(numbers_are_right),
        cmocka_unit_test(tiles_multiply),
        cmocka_unit_test(tiles_lie_as_ptx_says),
        cmocka_unit_test(fragments_lie_as_ptx_says),
        cmocka_unit_test(eights_are_limited_halves),
        cmocka_unit_test(kernels_are_as_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
