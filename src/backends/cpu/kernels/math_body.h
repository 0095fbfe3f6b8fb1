/* math_body.h: rounding to bf16, exp, log and activations over a vector wrapper. Errors are against the exact functions, found by trying
 * every float of the range (exp2, log) or a dense grid: see tests/kernels. */

/* To the nearest bf16, ties to even; NaN stays NaN. */
INL vf v_round_bf16(vf v)
{
    const vi bits = v_as_int(v);
    const vi up = vi_add(bits, vi_add(vi_set1(0x7fff), vi_and(vi_shr(bits, 16), vi_set1(1))));
    const vf rounded = vi_as_float(vi_and(up, vi_set1((int)0xffff0000)));
    /* what is not above -infinity is that, or NaN, whose sum is one with a bit in the high half */
    return v_sel_gt(v, v_set1(-__builtin_inff()), rounded, v_add(v, v));
}

/* 1.5 * 2^23 and some more: the sum with a number's low bits are the exponent of two to the nearest whole number. With 24 more
 * such a power may be as small as 2^-150, or 0 for the one below, and is in need of a product with 2^-24. */
#define ST_POWER 12583039.0f /* + 127 */
#define ST_POWER_24 12583063.0f

INL vf v_moved_power(vf moved)
{
    return vi_as_float(vi_shl(v_as_int(moved), 23));
}

#ifndef ST_OWN_EXP2
INL vf v_exp2_part(vf f)
{
    vf p = v_fma(f, v_set1(0.00132764717f), v_set1(0.00967554154f));
    p = v_fma(p, f, v_set1(0.0555071328f));
    p = v_fma(p, f, v_set1(0.240221197f));
    p = v_fma(p, f, v_set1(0.693146967f));
    return v_fma(p, f, v_set1(1.00000007f));
}

/* 2^t for t <= 100, relative error below 2.5e-7 down to the denormals; NaN stays NaN */
INL vf v_exp2(vf t)
{
    const vf magic = v_set1(ST_POWER_24);
    t = v_max(v_set1(-151.0f), t);
    const vf moved = v_add(t, magic), p = v_exp2_part(v_sub(t, v_sub(moved, magic)));
    return v_mul(v_mul(p, v_moved_power(moved)), v_set1(0x1p-24f));
}

/* The same with t limited to -126 .. 127. */
INL vf v_power(vf t)
{
    const vf magic = v_set1(ST_POWER);
    t = v_min(v_set1(127.0f), v_max(v_set1(-126.0f), t));
    const vf moved = v_add(t, magic);
    return v_mul(v_exp2_part(v_sub(t, v_sub(moved, magic))), v_moved_power(moved));
}
#endif

/* e^x = 2^n times what this is. x * log2(e) in one product would lose |x| * eps: the second, small part of log2(e) makes up for
 * it. */
INL vf v_exp_part(vf x, vf n)
{
    vf r = v_fma(n, v_set1(-0.693145752f), x); /* ln 2, high part: n * it is exact */
    r = v_fma(n, v_set1(-1.42860677e-6f), r);
    vf p = v_fma(r, v_set1(1.9875691e-4f), v_set1(1.3981999e-3f));
    p = v_fma(p, r, v_set1(8.3334519e-3f));
    p = v_fma(p, r, v_set1(4.1665796e-2f));
    p = v_fma(p, r, v_set1(1.6666665e-1f));
    p = v_fma(p, r, v_set1(5.0000001e-1f));
    return v_add(v_fma(p, v_mul(r, r), r), v_set1(1.0f));
}

INL vf v_exp(vf x)
{
    x = v_min(v_set1(90.0f), v_max(v_set1(-105.0f), x));
    const vf n = v_round(v_mul(x, v_set1(1.44269504f)));
    return v_scale2(v_exp_part(x, n), n);
}

/* The same for x <= 0. */
INL vf v_exp_below(vf x)
{
    const vf magic = v_set1(ST_POWER_24);
    x = v_max(v_set1(-105.0f), x);
    const vf moved = v_fma(x, v_set1(1.44269504f), magic), n = v_sub(moved, magic);
#ifdef ST_OWN_EXP2
    return v_scale2(v_exp_part(x, n), n);
#else
    return v_mul(v_mul(v_exp_part(x, n), v_moved_power(moved)), v_set1(0x1p-24f));
#endif
}

INL vf v_sigmoid(vf x)
{
    return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_sub(v_zero(), x))));
}

INL vf v_silu(vf x)
{
    return v_div(x, v_add(v_set1(1.0f), v_exp(v_sub(v_zero(), x))));
}

/* x / (1 + e^-2u) is x/2 (1 + tanh u); what x^3 overflows to is where the result is x or 0. */
INL vf v_gelu_tanh(vf x)
{
    const vf inner = v_fma(v_mul(v_mul(x, x), v_set1(-0.0713548162726f)), x, v_mul(x, v_set1(-1.59576912161f)));
    return v_div(x, v_add(v_set1(1.0f), v_exp(inner)));
}

INL vf v_relu(vf x)
{
    return v_max(v_zero(), x); /* NaN stays NaN */
}

/* Near zero an odd polynomial keeps the relative error small; elsewhere 1 - 2 / (e^2x + 1), odd by construction. */
INL vf v_tanh(vf x)
{
    const vf a = v_max(v_sub(v_zero(), x), x), z = v_mul(x, x);
    vf p = v_fma(z, v_set1(-5.70498872745e-3f), v_set1(2.06390887954e-2f));
    p = v_fma(p, z, v_set1(-5.37397155531e-2f));
    p = v_fma(p, z, v_set1(1.33314422036e-1f));
    p = v_fma(p, z, v_set1(-3.33332819422e-1f));
    const vf small = v_fma(v_mul(p, z), x, x);
    const vf big = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(v_exp(v_add(a, a)), v_set1(1.0f))));
    return v_sel_gt(a, v_set1(0.625f), v_sel_gt(v_zero(), x, v_sub(v_zero(), big), big), small);
}

/* Cosine and sine of 2 pi t for |t| <= 1/2: a quarter turn's part that lies within 1/8 of zero by polynomials, then by the
 * quarter. Absolute errors below 2e-7, those of small sines relative. */
INL void v_cos_sin(vf t, vf *cosine, vf *sine)
{
    const vf q = v_round(v_mul(t, v_set1(4.0f))), f = v_fma(q, v_set1(-0.25f), t);
    const vf x = v_mul(f, v_set1(6.28318531f)), z = v_mul(x, x), zero = v_zero();
    vf s = v_fma(z, v_set1(-1.9515295891e-4f), v_set1(8.3321608736e-3f));
    s = v_fma(s, z, v_set1(-1.6666654611e-1f));
    s = v_fma(v_mul(s, z), x, x);
    vf c = v_fma(z, v_set1(2.443315711809948e-5f), v_set1(-1.388731625493765e-3f));
    c = v_fma(c, z, v_set1(4.166664568298827e-2f));
    c = v_fma(v_mul(c, z), z, v_fma(z, v_set1(-0.5f), v_set1(1.0f)));
    const vf a = v_max(q, v_sub(zero, q)); /* quarters are -2 .. 2 */
    const vf cross = v_sel_gt(a, v_set1(0.5f), v_sel_gt(a, v_set1(1.5f), zero, v_set1(1.0f)), zero);
    const vf first = v_sel_gt(cross, zero, s, c), second = v_sel_gt(cross, zero, c, s);
    const vf minus_first = v_sub(zero, first), minus_second = v_sub(zero, second);
    *cosine = v_sel_gt(q, v_set1(0.5f), minus_first, v_sel_gt(v_set1(-1.5f), q, minus_first, first));
    *sine = v_sel_gt(v_set1(-0.5f), q, minus_second, v_sel_gt(q, v_set1(1.5f), minus_second, second));
}

#ifndef ST_OWN_GELU
/* GELU with the error function: x (1/2 + u P(s)), u = x clamped to +-5, s = 2 u^2 / 25 - 1. Absolute error below
 * 3e-6; above 5 a relative one of 5e-7. */
INL vf v_gelu(vf x)
{
    const vf u = v_max(v_min(x, v_set1(5.0f)), v_set1(-5.0f)), s = v_fma(v_mul(u, u), v_set1(0.08f), v_set1(-1.0f));
    vf p = v_fma(v_set1(-0.00109637002f), s, v_set1(0.00319447097f));
    p = v_fma(p, s, v_set1(-0.0038868415f));
    p = v_fma(p, s, v_set1(0.00511324113f));
    p = v_fma(p, s, v_set1(-0.0101654765f));
    p = v_fma(p, s, v_set1(0.0169101542f));
    p = v_fma(p, s, v_set1(-0.023624946f));
    p = v_fma(p, s, v_set1(0.0313567194f));
    p = v_fma(p, s, v_set1(-0.0403919849f));
    p = v_fma(p, s, v_set1(0.0515253975f));
    p = v_fma(p, s, v_set1(-0.0702982328f));
    p = v_fma(p, s, v_set1(0.141363748f));
    /* the other factor is kept above -5 too: what is left of the second there would grow with x */
    return v_mul(v_max(v_set1(-5.0f), x), v_fma(p, u, v_set1(0.5f)));
}
#endif

INL vf activate(sotto_activation act, vf x)
{
    switch (act) {
    case SOTTO_ACT_GELU:
        return v_gelu(x);
    case SOTTO_ACT_RELU:
        return v_relu(x);
    case SOTTO_ACT_SILU:
        return v_silu(x);
    case SOTTO_ACT_GELU_TANH:
        return v_gelu_tanh(x);
    default:
        return x;
    }
}

/* log10 of positive normal x: exponent + log of a mantissa in [sqrt(1/2), sqrt(2)). Denormals count as the smallest
 * normal; 0 and below give about -37.9. */
INL vf v_log10(vf x)
{
    x = v_max(v_set1(1.17549435e-38f), x);
    const vi bits = v_as_int(x), offset = vi_set1(0x3f3504f3); /* sqrt(1/2) */
    const vi moved = vi_sub(bits, offset);
    /* the exponent, made non-negative for the logical shift */
    const vi e = vi_sub(vi_shr(vi_add(moved, vi_set1(0x40000000)), 23), vi_set1(128));
    const vf m = vi_as_float(vi_sub(bits, vi_shl(e, 23))), f = v_sub(m, v_set1(1.0f)), z = v_mul(f, f);
    vf p = v_fma(f, v_set1(7.0376836292e-2f), v_set1(-1.1514610310e-1f));
    p = v_fma(p, f, v_set1(1.1676998740e-1f));
    p = v_fma(p, f, v_set1(-1.2420140846e-1f));
    p = v_fma(p, f, v_set1(1.4249322787e-1f));
    p = v_fma(p, f, v_set1(-1.6668057665e-1f));
    p = v_fma(p, f, v_set1(2.0000714765e-1f));
    p = v_fma(p, f, v_set1(-2.4999993993e-1f));
    p = v_fma(p, f, v_set1(3.3333331174e-1f));
    const vf ln = v_add(f, v_fma(v_mul(p, z), f, v_mul(z, v_set1(-0.5f))));
    const vf low = v_fma(vi_float(e), v_set1(7.90341517e-7f), v_mul(ln, v_set1(0.434294482f)));
    return v_fma(vi_float(e), v_set1(0.301029205f), low); /* log10 of 2, high part: e * it is exact */
}
