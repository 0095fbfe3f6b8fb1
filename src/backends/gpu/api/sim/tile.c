/* tile.c: the tile operations, lane by lane as PTX's mma.m16n8k16 has them. g = lane / 4, t = lane % 4:
 *   a: v[i] holds row g + 8 (i % 2), k 2 t + 8 (i / 2) and the next k
 *   b: v[i] holds column 8 (i / 2) + g, k 2 t + 8 (i % 2) and the next
 *   c: v[i] holds row g + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2 */
#include <math.h>
#include <string.h>

#include "backends/gpu/api/sim/group.h"
#include "base/half.h"

static void check_tile(st_sim_item *me, const void *ptr, int ld, const char *file, int line)
{
    const st_sim_group *const g = me->group;
    const char *const p = ptr;
    if (g->subgroup != 32)
        st_sim_stop(me, file, line, "tiles need a subgroup of 32, this one has %d", g->subgroup);
    if ((uintptr_t)p % 16 != 0 || ld < 16 || ld % 8 != 0)
        st_sim_stop(me, file, line, "a tile at an address %d above a multiple of 16, with rows of %d halves",
                    (int)((uintptr_t)p % 16), ld);
    if (p < g->local || p + (15 * (size_t)ld + 16) * 2 > g->local + st_sim_local_size(me))
        st_sim_stop(me, file, line, "a tile outside of local memory");
}

static uint32_t pair(const uint16_t *p, int step)
{
    return p[0] | (uint32_t)p[step] << 16;
}

void st_sim_load_a(st_sim_item *me, tile_a *a, const void *ptr, int ld, const char *file, int line)
{
    const int g = me->lid % 32 / 4, t = me->lid % 4;
    check_tile(me, ptr, ld, file, line);
    for (int i = 0; i < 4; i++)
        a->v[i] = pair((const uint16_t *)ptr + (g + 8 * (i % 2)) * ld + 2 * t + 8 * (i / 2), 1);
}

/* step 1: k is innermost; 0: columns are. */
void st_sim_load_b(st_sim_item *me, tile_b *b, const void *ptr, int ld, int step, const char *file, int line)
{
    const int g = me->lid % 32 / 4, t = me->lid % 4;
    check_tile(me, ptr, ld, file, line);
    for (int i = 0; i < 4; i++) {
        const int n = 8 * (i / 2) + g, k = 2 * t + 8 * (i % 2);
        b->v[i] = step ? pair((const uint16_t *)ptr + n * ld + k, 1) : pair((const uint16_t *)ptr + k * ld + n, ld);
    }
}

void st_sim_c_to_a(tile_a *a, const tile_c *c)
{
    for (int i = 0; i < 4; i++)
        a->v[i] = st_f32_to_f16(c->v[2 * i]) | (uint32_t)st_f32_to_f16(c->v[2 * i + 1]) << 16;
}

static void multiply(st_sim_item *const *lane)
{
    float a[16][16], b[16][16]; /* [row][k], [column][k] */
    for (int l = 0; l < 32; l++) {
        const int g = l / 4, t = l % 4;
        for (int i = 0; i < 8; i++) {
            const int k = i % 2, r = i / 2;
            a[g + 8 * (r % 2)][2 * t + 8 * (r / 2) + k] = st_f16_to_f32((uint16_t)(lane[l]->a->v[r] >> (16 * k)));
            b[8 * (r / 2) + g][2 * t + 8 * (r % 2) + k] = st_f16_to_f32((uint16_t)(lane[l]->b->v[r] >> (16 * k)));
        }
    }
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 8; i++) {
            const float *const x = a[l / 4 + 8 * (i / 2 % 2)], *const y = b[8 * (i / 4) + 2 * (l % 4) + i % 2];
            float s = 0;
            for (int k = 0; k < 16; k++)
                s += x[k] * y[k];
            lane[l]->c->v[i] += s;
        }
}

void st_sim_resolve_tile(st_sim_wait how, st_sim_item *const *lane)
{
    if (how == ST_SIM_MMA) {
        multiply(lane);
        return;
    }
    for (int l = 0; l < 32; l += 4) { /* four lanes hold a row */
        float r = lane[l]->value;
        for (int i = 1; i < 4; i++)
            r = how == ST_SIM_ROW_SUM ? r + lane[l + i]->value : fmaxf(r, lane[l + i]->value);
        for (int i = 0; i < 4; i++)
            lane[l + i]->value = r;
    }
}
