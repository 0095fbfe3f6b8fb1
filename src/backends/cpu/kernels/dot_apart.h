/* dot_apart.h: for dot_few.h, of levels that make numbers of integers before they multiply them. Included after a vec_*.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_APART_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_APART_H

INL vf dot_scaled(vi c, vf scale, vf shift)
{
    (void)shift;
    return v_mul(vi_float(c), scale);
}
INL vf dot_add(vf sum, vf a, vf b)
{
    return v_fma(a, b, sum);
}

#endif
