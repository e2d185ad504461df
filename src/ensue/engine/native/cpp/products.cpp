// The part of all kernels that does not depend on a cell.
#include "products.hpp"

constexpr int most_rows(int w) { return TALL / w; }

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

template <int W, int M = most_rows(W)>
INLINE void product_of_rows(int m, const Segment* segments, int count, const real* panel, real* tile,
                            long tile_stride) {
  if (m == M) return product<M, W>(segments, count, panel, tile, tile_stride);
  if constexpr (M > 1) product_of_rows<W, M - 1>(m, segments, count, panel, tile, tile_stride);
}

// All rows of a block by `vectors` vectors of packed columns; rows in blocks of nearly equal height.
extern "C" void products(long rows, const Segment* given, int count, long vectors, const real* panel, long K,
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

// ---------------------------------------------------------------- packing
// a0 b0 a1 b1 …, of the first halves of two vectors or of the second ones.
template <int HALF, int... I>
INLINE vec interleaved(vec a, vec b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * L + HALF * L / 2)...);
#else
  return __builtin_shuffle(a, b, ints{(I / 2 + I % 2 * L + HALF * L / 2)...});
#endif
}
template <int HALF>
INLINE vec mixed(vec a, vec b) {
  if constexpr (L == 2) return interleaved<HALF, 0, 1>(a, b);
  else if constexpr (L == 4) return interleaved<HALF, 0, 1, 2, 3>(a, b);
  else if constexpr (L == 8) return interleaved<HALF, 0, 1, 2, 3, 4, 5, 6, 7>(a, b);
  else return interleaved<HALF, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(a, b);
}

// to[k][l] = from[l][k], L by L numbers: after log2(L) shuffles of the rows, as of a pack of cards.
INLINE void transposed(real* to, long to_step, const real* from, long from_step) {
  vec rows[L], next[L];
#pragma GCC unroll 16
  for (int l = 0; l < L; l++) rows[l] = *(const loose*)(from + l * from_step);
#pragma GCC unroll 4
  for (int n = 1; n < L; n *= 2) {
#pragma GCC unroll 16
    for (int l = 0; l < L / 2; l++) {
      next[2 * l] = mixed<0>(rows[l], rows[l + L / 2]);
      next[2 * l + 1] = mixed<1>(rows[l], rows[l + L / 2]);
    }
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) rows[l] = next[l];
  }
#pragma GCC unroll 16
  for (int k = 0; k < L; k++) *(vec*)(to + k * to_step) = rows[k];
}

// One matrix into the panels of a group of `gates` dots: it is gate `gate`, and its columns begin
// at row `at` of the K rows; J blocks of units stand together. Element (unit, k) of the matrix
// stands at unit*unit_step + k*k_step, one of which is 1. Each of `parts` threads packs its part.
extern "C" void pack(real* panels, const real* matrix, long unit_step, long k_step, long units, long columns,
                long at, long K, int gate, int gates, long J, long part, long parts) {
  const long blocks = (units + L - 1) / L;
  for (long j = part * J; j < blocks; j += parts * J) {
    const long here = blocks - j < J ? blocks - j : J, vectors = here * gates;
    for (long b = 0; b < here; b++) {
      const long v = b * gates + gate, chunk = v / WIDE * WIDE;
      const long w = vectors - chunk < WIDE ? vectors - chunk : WIDE;
      real* to = panels + j * gates * L * K + chunk * L * K + at * w * L + (v - chunk) * L;
      const real* from = matrix + (j + b) * L * unit_step;
      const long lanes = units - (j + b) * L;
      long k = 0;
      if (unit_step == 1)
        for (; k < columns; k++) *(vec*)(to + k * w * L) = load(from + k * k_step, lanes);
      else if (k_step == 1 && lanes >= L)
        for (; k + L <= columns; k += L) transposed(to + k * w * L, w * L, from + k, unit_step);
      for (; k < columns; k++)
        for (long l = 0; l < L; l++) to[k * w * L + l] = l < lanes ? from[l * unit_step + k * k_step] : 0;
    }
  }
}

extern "C" int lanes() { return L; }
