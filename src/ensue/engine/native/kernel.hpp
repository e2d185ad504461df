// The fixed part of every kernel: vectors, functions, packed matrices, the product.
//
// A kernel walks over time for a range of rows. In each phase of a step it multiplies a block
// of rows by packed panels into a small tile, and evaluates the equations on that tile while
// it is in the first cache. REAL (float or double) and the vector width are fixed at compile
// time; sizes, rows and steps are not.
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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
typedef int32_t whole;
#else
typedef int64_t whole;
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
INLINE vec rounded(vec v) {
#if defined(__AVX512F__)
  return (vec)_mm512_roundscale_ps((__m512)v, 8);
#elif defined(__AVX2__)
  return (vec)_mm256_round_ps((__m256)v, 8);
#else
  const vec big = all(12582912.f);
  return (v + big) - big;
#endif
}
INLINE vec root(vec v) {
#if defined(__AVX512F__)
  return (vec)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
  return (vec)_mm256_sqrt_ps((__m256)v);
#else
  for (int i = 0; i < L; i++) v[i] = std::sqrt(v[i]);
  return v;
#endif
}
INLINE vec clamp(vec v, real lo, real hi) {  // NaN stays NaN: both comparisons are false
  v = choose(v < lo, all(lo), v);
  return choose(v > hi, all(hi), v);
}
INLINE vec two_to(vec k) {  // 2^k for a whole k from -126 to 127
  return (vec)((__builtin_convertvector(k, ints) + 127) << 23);
}
// e^v = 2^k e^f with |f| <= log(2)/2; k in two halves, so that both ends of the range are reached
INLINE vec exponential(vec v) {
  const vec x = clamp(v, -104.f, 89.f);
  const vec k = rounded(x * 1.44269504f);
  const vec f = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  vec p = 1.9875691500e-4f * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = (p * f) * f + f + 1.f;
  const vec half = rounded(k * .5f);
  return p * two_to(half) * two_to(k - half);
}
INLINE vec sigmoid(vec v) { return 1.f / (1.f + exponential(-v)); }
// an odd rational function, so that it is accurate near zero too; beyond the edge it is ±1
INLINE vec hyperbolic(vec v) {
  const vec x = clamp(v, -7.99881172180175781f, 7.99881172180175781f), q = x * x;
  vec a = -2.76076847742355e-16f * q + 2.00018790482477e-13f;
  a = a * q - 8.60467152213735e-11f;
  a = a * q + 5.12229709037114e-08f;
  a = a * q + 1.48572235717979e-05f;
  a = a * q + 6.37261928875436e-04f;
  a = a * q + 4.89352455891786e-03f;
  vec b = 1.19825839466702e-06f * q + 1.18534705686654e-04f;
  b = b * q + 2.26843463243900e-03f;
  b = b * q + 4.89352518554385e-03f;
  return x * a / b;
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
LANE_BY_LANE(root, std::sqrt(x))
LANE_BY_LANE(exponential, std::exp(x))
LANE_BY_LANE(sigmoid, x >= 0 ? 1 / (1 + std::exp(-x)) : 1 - 1 / (1 + std::exp(x)))
LANE_BY_LANE(hyperbolic, std::tanh(x))
LANE_BY_LANE(logarithm, std::log(x))
LANE_BY_LANE(softplus, (x > 0 ? x : x == x ? 0 : x) + std::log1p(std::exp(-std::fabs(x))))
#endif

// ---------------------------------------------------------------- products
// The operands of a product, end to end: `rows` of K numbers each, a row every `stride`.
struct Segment {
  const real* a;
  long stride, K;
};

// tile[m][w] = sum over k of a[m][k] * panel[k][w], for M rows and W vectors.
// In a function of its own: beside other arithmetic the compiler spills the accumulators.
template <int M, int W>
APART void product(const Segment* segments, int count, const real* __restrict panel,
                   real* __restrict tile, long tile_stride) {
  constexpr int U = M * W >= 8 ? 1 : M * W >= 4 ? 2 : 4;  // few accumulators: several sums at once
  vec sum[U][M][W] = {};
  for (int s = 0; s < count; s++) {
    const real* __restrict a = segments[s].a;
    const long stride = segments[s].stride, K = segments[s].K;
    long k = 0;
    for (; k + U <= K; k += U)
#pragma GCC unroll 4
      for (int u = 0; u < U; u++, panel += W * L) {
        vec b[W];
#pragma GCC unroll 4
        for (int w = 0; w < W; w++) b[w] = *(const vec*)(panel + w * L);
        __builtin_prefetch(panel + 8 * W * L);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
          const vec h = all(a[m * stride + k + u]);
#pragma GCC unroll 4
          for (int w = 0; w < W; w++) sum[u][m][w] += h * b[w];
        }
      }
    for (; k < K; k++, panel += W * L)
#pragma GCC unroll 16
      for (int m = 0; m < M; m++)
#pragma GCC unroll 4
        for (int w = 0; w < W; w++) sum[0][m][w] += all(a[m * stride + k]) * *(const vec*)(panel + w * L);
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int w = 0; w < W; w++) {
      vec t = sum[0][m][w];
#pragma GCC unroll 4
      for (int u = 1; u < U; u++) t += sum[u][m][w];
      *(vec*)(tile + m * tile_stride + w * L) = t;
    }
}

#if defined(__AVX512F__)
constexpr int WIDE = 4, TALL = 24;  // vectors side by side; accumulators (of 32 registers)
#else
constexpr int WIDE = 2, TALL = 12;  // (of 16 registers)
#endif
constexpr int most_rows(int w) { return TALL / w; }
// units side by side, so that the vectors of all gates fill whole products
constexpr long blocks_for(int gates) {
  return gates >= WIDE ? (gates % WIDE && WIDE == 2 ? 2 : 1) : WIDE / gates;
}

template <int W, int M = most_rows(W)>
INLINE void product_of_rows(int m, const Segment* segments, int count, const real* panel, real* tile,
                            long tile_stride) {
  if (m == M) return product<M, W>(segments, count, panel, tile, tile_stride);
  if constexpr (M > 1) product_of_rows<W, M - 1>(m, segments, count, panel, tile, tile_stride);
}

// All rows of a block by `vectors` vectors of packed columns; rows in blocks of nearly equal height.
APART void products(long rows, const Segment* given, int count, long vectors, const real* panel, long K,
                    real* tile, long tile_stride) {
  for (long v = 0; v < vectors;) {
    const long w = vectors - v < WIDE ? vectors - v : WIDE;
    const long most = w == 4 ? most_rows(4) : w == 3 ? most_rows(3) : w == 2 ? most_rows(2) : most_rows(1);
    Segment s[8];
    for (long r = 0, left = (rows + most - 1) / most; left; left--) {
      const int m = (int)((rows - r + left - 1) / left);
      for (int i = 0; i < count; i++) s[i] = {given[i].a + r * given[i].stride, given[i].stride, given[i].K};
      real* out = tile + r * tile_stride + v * L;
      switch (w) {
        case 1: product_of_rows<1>(m, s, count, panel, out, tile_stride); break;
        case 2: product_of_rows<2>(m, s, count, panel, out, tile_stride); break;
#if defined(__AVX512F__)
        case 3: product_of_rows<3>(m, s, count, panel, out, tile_stride); break;
        case 4: product_of_rows<4>(m, s, count, panel, out, tile_stride); break;
#endif
      }
      r += m;
    }
    panel += w * L * K;
    v += w;
  }
}

// One matrix into the panels of a group of `gates` dots: it is gate `gate`, and its columns begin
// at row `at` of the K rows; J blocks of units stand together. Element (unit, k) of the matrix
// stands at unit*unit_step + k*k_step. Each of `parts` threads packs its part.
APART void pack(real* panels, const real* matrix, long unit_step, long k_step, long units, long columns,
                long at, long K, int gate, int gates, long J, long part, long parts) {
  const long blocks = (units + L - 1) / L;
  for (long j = part * J; j < blocks; j += parts * J) {
    const long here = blocks - j < J ? blocks - j : J, vectors = here * gates;
    for (long b = 0; b < here; b++) {
      const long v = b * gates + gate, chunk = v / WIDE * WIDE;
      const long w = vectors - chunk < WIDE ? vectors - chunk : WIDE;
      real* to = panels + j * gates * L * K + chunk * L * K + at * w * L + (v - chunk) * L;
      const real* from = matrix + (j + b) * L * unit_step;
      const long lanes = units - (j + b) * L < L ? units - (j + b) * L : L;
      for (long k0 = 0; k0 < columns; k0 += 16)
        for (long l = 0; l < L; l++)
          for (long k = k0; k < k0 + 16 && k < columns; k++)
            to[k * w * L + l] = l < lanes ? from[l * unit_step + k * k_step] : 0;
    }
  }
}

// ---------------------------------------------------------------- rows and steps
// What a call gives to the kernel. Rows are split over `threads`; each walks over time alone.
// Unequal lengths: rows are stored step by step, and in a step thread by thread (`base`, `alive`);
// otherwise (base == 0) by step, all rows of a step together, the last step first if `reverse`.
struct Call {
  real** buffers;
  const long* sizes;
  const long *base, *alive;  // [steps + 1][threads]
  const long* time_row;      // stored row -> row of the (time, batch) tensors
  const long* first;         // [threads + 1] rows in front of each thread's
  long steps, batch, threads, began;  // began: rows of the first step
  int reverse, train;
};

struct Step {
  long rows, staying;    // of this thread; how many of them go on to the next step
  long row;              // the first one in buffers that hold every step
  long old_row, new_row; // in the buffers of states
};

INLINE Step step_of(const Call& c, long s, long who) {
  if (!c.base) {
    const long first = c.first[who], n = c.first[who + 1] - first;
    const long at = c.reverse ? c.steps - 1 - s : s, before = c.reverse ? at + 1 : at - 1;
    return {n, n, at * c.batch + first, before * c.batch + first, at * c.batch + first};
  }
  const long at = c.base[s * c.threads + who], next = c.base[(s + 1) * c.threads + who];
  return {c.alive[s * c.threads + who], c.alive[(s + 1) * c.threads + who], at, at - c.began, next - c.began};
}

// Denormal numbers are flushed while a kernel runs; the flag is put back afterwards.
struct FlushDenormals {
#if defined(__x86_64__)
  unsigned before = _mm_getcsr();
  FlushDenormals() { _mm_setcsr(before | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before); }
#endif
};

constexpr long CHUNK = 48;  // rows of a tile

// ---------------------------------------------------------------- threads
// The OpenMP runtime that is already in the process: two of them would fight for the cores.
struct Threads {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*number)();
  int (*count)();
};
typedef void (*Work)(const Call&, long);
struct Team {
  const Call& call;
  const Threads& threads;
  Work work;
};
static void member(void* given) {
  const Team& team = *(const Team*)given;
  const FlushDenormals flush;
  for (long who = team.threads.number(); who < team.call.threads; who += team.threads.count())
    team.work(team.call, who);
}
static void together(const Call& call, const Threads& threads, Work work) {
  Team team = {call, threads, work};
  if (call.threads > 1) return threads.parallel(member, &team, (unsigned)call.threads, 0);
  const FlushDenormals flush;
  work(call, 0);
}
