/* clang_words.h: what nvcc has of itself and clang only with the toolkit's headers: attributes, ids, and the functions that
 * the prelude names, exact to a few units in the last place. For `clang -x cuda -nocudainc -nocudalib --cuda-device-only`. */
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct cuda_place {
    int x, y, z;
};
#define threadIdx cuda_thread()
#define blockIdx cuda_block()
static __device__ __forceinline__ cuda_place cuda_thread()
{
    return {__nvvm_read_ptx_sreg_tid_x(), 0, 0};
}
static __device__ __forceinline__ cuda_place cuda_block()
{
    return {__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), __nvvm_read_ptx_sreg_ctaid_z()};
}
static __device__ __forceinline__ unsigned long __cvta_generic_to_shared(const void *p)
{
    return (unsigned long)(const void __attribute__((address_space(3))) *)p;
}
#define __syncthreads() __nvvm_bar_sync(0)
static __device__ __forceinline__ float __shfl_xor_sync(unsigned lanes, float x, int mask)
{
    return __nvvm_shfl_sync_bfly_f32(lanes, x, mask, 31);
}
static __device__ __forceinline__ float __uint_as_float(unsigned u)
{
    return __builtin_bit_cast(float, u);
}
static __device__ __forceinline__ unsigned __float_as_uint(float f)
{
    return __builtin_bit_cast(unsigned, f);
}

static __device__ __forceinline__ float fabsf(float x)
{
    return __uint_as_float(__float_as_uint(x) & 0x7fffffffu);
}
static __device__ __forceinline__ float fmaxf(float a, float b)
{
    return __nvvm_fmax_f(a, b);
}
static __device__ __forceinline__ float fminf(float a, float b)
{
    return __nvvm_fmin_f(a, b);
}
static __device__ __forceinline__ float sqrtf(float x)
{
    return __nvvm_sqrt_rn_f(x);
}
static __device__ __forceinline__ float rsqrtf(float x)
{
    return __nvvm_rsqrt_approx_f(x);
}
/* 2^(x log2 e): what the product loses by rounding is put back. */
static __device__ __forceinline__ float expf(float x)
{
    const float t = x * 1.44269502f;
    const float lost = __nvvm_fma_rn_f(x, 1.44269502f, -t) + x * 1.92596299e-8f;
    const float y = __nvvm_ex2_approx_f(t);
    return fabsf(t) < 150.0f ? y + y * (lost * 0.693147181f) : y; /* NaN stays NaN */
}
/* x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 (s + s^3 / 3 + s^5 / 5 + ...) for s = (m - 1) / (m + 1). */
static __device__ __forceinline__ float logf(float x)
{
    if (!(x > 0.0f) || x > 3.4e38f) /* -infinity, NaN, infinity */
        return x == 0.0f ? __uint_as_float(0xff800000u) : x < 0.0f ? __uint_as_float(0x7fc00000u) : x;
    const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    const unsigned u = __float_as_uint(scaled) - 0x3f3504f3u;
    const float e = (float)((int)u >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    const float m = __uint_as_float((u & 0x007fffffu) + 0x3f3504f3u);
    const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    const float rest = q * (0.333333333f + q * (0.2f + q * (0.142857143f + q * 0.111111111f)));
    return e * 0.693145752f + (e * 1.42860677e-6f + 2.0f * (s + s * rest));
}
static __device__ __forceinline__ float tanhf(float x)
{
    const float a = fabsf(x), q = x * x;
    if (a < 0.3f) /* the series */
        return x + x * q *
                       (-0.333333333f +
                        q * (0.133333333f + q * (-0.0539682540f + q * (0.0218694885f - q * 0.00886323553f))));
    const float e = expf(-2.0f * a), y = (1.0f - e) / (1.0f + e);
    return x < 0.0f ? -y : y;
}
/* Below 1 the series; above, 1 - a polynomial in 1 / (1 + p x) times e^(-x^2), exact to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
static __device__ __forceinline__ float erff(float x)
{
    const float a = fabsf(x), q = x * x;
    if (a < 1.0f) {
        float y = 1.48071928e-08f;
        y = y * q - 1.63658441e-07f;
        y = y * q + 1.64621144e-06f;
        y = y * q - 1.49256502e-05f;
        y = y * q + 0.000120553326f;
        y = y * q - 0.000854832702f;
        y = y * q + 0.00522397785f;
        y = y * q - 0.0268661715f;
        y = y * q + 0.112837918f;
        y = y * q - 0.376126379f;
        y = y * q + 1.12837923f;
        return x * y;
    }
    const float t = 1.0f / (1.0f + 0.3275911f * a);
    const float y =
        1.0f - t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) *
                   expf(-q);
    return x < 0.0f ? -y : y;
}
