/* dot_fused.h: for dot_few.h, of x86 levels with fused multiply-add: an integer becomes a number in the same instruction that
 * scales it. Included after a vec_*.h and REGISTER, the constraint of the level's registers. The instructions are written out, since
 * gcc 12 otherwise puts all of a kind behind each other, and then they wait for their loads. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_FUSED_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_FUSED_H

#define ST_DOT_START 0x4b400000 /* 1.5 * 2^23 as a float */

INL vf dot_scaled(vi c, vf scale, vf shift)
{
    vf x = vi_as_float(c);
    __asm__("vfmadd213ps %2, %1, %0" : "+" REGISTER(x) : REGISTER(scale), REGISTER(shift));
    return x;
}
INL vf dot_add(vf sum, vf a, vf b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+" REGISTER(sum) : REGISTER(a), REGISTER(b));
    return sum;
}

#endif
