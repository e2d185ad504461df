// Vectors of numbers and their functions. REAL (float or double) and the width of a vector are
// fixed at compile time.
#pragma once

typedef REAL real;
#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX2__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int L = BYTES / sizeof(real);  // lanes of a vector
typedef real vec __attribute__((vector_size(BYTES)));
typedef real loose __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
#if REAL_BITS == 32
typedef int whole;
#else
typedef long whole;
#endif
typedef whole ints __attribute__((vector_size(BYTES)));
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

INLINE vec all(real s) { return s - vec{}; }

// ---------------------------------------------------------------- memory
// The last block of features may be part of a vector: `left` features remain.
APART vec load_part(const real* p, long left) {
  alignas(BYTES) real t[L] = {};
  for (long i = 0; i < left; i++) t[i] = p[i];
  return *(const vec*)t;
}
APART void store_part(real* p, vec v, long left) {
  for (long i = 0; i < left; i++) p[i] = v[i];
}
INLINE vec load(const real* p, long left) {
  return __builtin_expect(left >= L, 1) ? (vec) * (const loose*)p : load_part(p, left);
}
INLINE void store(real* p, vec v, long left) {
  if (__builtin_expect(left >= L, 1)) *(loose*)p = (loose)v;
  else store_part(p, v, left);
}
INLINE vec first_lanes(vec v, long left) {  // zero beyond the features that remain
  if (__builtin_expect(left < L, 0))
    for (long i = left; i < L; i++) v[i] = 0;
  return v;
}
INLINE real sum_of_lanes(vec v) {
  real s = 0;
  for (int i = 0; i < L; i++) s += v[i];
  return s;
}

// ---------------------------------------------------------------- functions
INLINE vec choose(ints where, vec a, vec b) { return (vec)((where & (ints)a) | (~where & (ints)b)); }
INLINE vec larger(vec a, vec b) { return choose((b > a) | (b != b), b, a); }  // NaN of either comes through
INLINE vec relu(vec v) { return choose((v > 0) | (v != v), v, vec{}); }
INLINE vec greater(vec a, vec b) { return choose((a > b) | (a != a), all(1), vec{}); }

#if REAL_BITS == 32
INLINE vec rounded(vec v) {  // to the nearest whole number, for |v| < 2^22
  return (v + 12582912.f) - 12582912.f;
}
INLINE vec root(vec v) {
#if defined(__AVX512F__) && !defined(__clang__)
  return (vec)__builtin_ia32_sqrtps512_mask(v, v, -1, 4);
#elif defined(__AVX2__) && !defined(__AVX512F__)
  return (vec)__builtin_ia32_sqrtps256(v);
#else
  for (int i = 0; i < L; i++) v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}
INLINE vec clamp(vec v, real lo, real hi) {  // NaN stays NaN: both comparisons are false
  v = choose(v < lo, all(lo), v);
  return choose(v > hi, all(hi), v);
}
INLINE vec two_to(vec k) {  // 2^k for a whole k from -126 to 127, infinity for 128
  return (vec)((__builtin_convertvector(k, ints) + 127) << 23);
}
// e^f - 1 for |f| <= log(2)/2
INLINE vec power_series(vec f) {
  vec p = 1.9875691500e-4f * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  return p * (f * f) + f;
}
INLINE vec less_twos(vec v, vec k) { return (v - k * 0.693359375f) - k * -2.12194440e-4f; }  // v - k log 2
// e^v = 2^k e^f; k in two halves, so that both ends of the range are reached
INLINE vec exponential(vec v) {
  const vec x = clamp(v, -104.f, 89.f), k = rounded(x * 1.44269504f), half = rounded(k * .5f);
  return (power_series(less_twos(x, k)) + 1.f) * two_to(half) * two_to(k - half);
}
// 1 / (1 + e^-v): from 2^128 on e^-v is infinite and the result 0, so that one scaling is enough
INLINE vec sigmoid(vec v) {
  const vec x = clamp(-v, -87.f, 89.f), k = rounded(x * 1.44269504f);
  return 1.f / (1.f + (power_series(less_twos(x, k)) + 1.f) * two_to(k));
}
// (u - 1) / (u + 1) with u = e^2|v|; u - 1 = 2^k (e^f - 1) + 2^k - 1 is accurate near zero, and the
// quotient near one, where the derivative 1 - y*y lives on the last digits
INLINE vec hyperbolic(vec v) {
  const ints sign = (ints)v & (ints)all(-0.f);
  vec x = (vec)((ints)v ^ sign);
  x = choose(x > 10.f, all(10.f), x);
  const vec k = rounded(x * 2.88539008f), two = two_to(k);
  const vec t = two * power_series(less_twos(2.f * x, k)) + (two - 1.f);
  return (vec)((ints)(t / (t + 2.f)) | sign);
}
// log v = log m + e log 2 with m in [sqrt(1/2), sqrt(2))
INLINE vec logarithm(vec v) {
  const ints bits = (ints)v;
  ints e = (bits - 0x3f3504f3) >> 23;
  const vec m = (vec)(bits - (e << 23)), f = m - 1.f, q = f * f;
  vec p = 7.0376836292e-2f * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const vec n = __builtin_convertvector(e, vec);
  const vec y = p * f * q - 2.12194440e-4f * n - .5f * q + f + 0.693359375f * n;
  const vec inf = all(__builtin_inff()), nan = all(__builtin_nanf(""));
  const vec edge = choose(v < 0, nan, choose(v < 1.17549435e-38f, -inf, choose(v == inf, inf, v)));
  return choose((v >= 1.17549435e-38f) & (v < inf), y, edge);
}
INLINE vec softplus(vec v) {  // max(v, 0) + log(1 + e^-|v|), the sum 1 + u corrected for its rounding
  const vec u = exponential(choose(v > 0, -v, v)), w = 1.f + u;
  const vec y = logarithm(w) - ((w - 1.f) - u) / w;
  return choose(v == v, relu(v) + y, v);
}
#else
#define LANE_BY_LANE(name, expression) \
  INLINE vec name(vec v) {             \
    for (int i = 0; i < L; i++) {      \
      const double x = v[i];           \
      v[i] = expression;               \
    }                                  \
    return v;                          \
  }
LANE_BY_LANE(root, __builtin_sqrt(x))
LANE_BY_LANE(exponential, __builtin_exp(x))
LANE_BY_LANE(sigmoid, x >= 0 ? 1 / (1 + __builtin_exp(-x)) : __builtin_exp(x) / (1 + __builtin_exp(x)))
LANE_BY_LANE(hyperbolic, __builtin_tanh(x))
LANE_BY_LANE(logarithm, __builtin_log(x))
LANE_BY_LANE(softplus, (x > 0 ? x : x == x ? 0 : x) + __builtin_log1p(__builtin_exp(-__builtin_fabs(x))))
#endif
