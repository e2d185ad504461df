// Tiles of products: a few rows by two vectors, the sums in registers.
#pragma once
#include "kernel.hpp"

constexpr long WIDTH = 2 * L;   // of a panel
constexpr int MOST = TALL / 2;  // rows of a tile

// out[m][w] = sum over k of a(m, k) * panel[k][w], for M rows and W vectors, or added to it.
// a(m, k) stands at m + k*step if BESIDE, otherwise at m*step + k; K numbers in each of `chunks`.
template <int M, int W, bool BESIDE, bool ADD>
APART void multiply(const real* __restrict a, long step, long K, long chunks, long chunk_step,
                    const real* __restrict panel, real* __restrict out, long out_step, long lanes) {
  vec sum[M][W] = {};
  for (long c = 0; c < chunks; c++, a += chunk_step) {
    const real* __restrict at = a;
    for (long k = 0; k < K; k++, panel += W * L, at += BESIDE ? step : 1) {
      vec b[W];
#pragma GCC unroll 2
      for (int w = 0; w < W; w++) b[w] = *(const vec*)(panel + w * L);
      __builtin_prefetch(panel + 8 * W * L);
#pragma GCC unroll 12
      for (int m = 0; m < M; m++) {
        const vec x = all(at[BESIDE ? m : m * step]);
#pragma GCC unroll 2
        for (int w = 0; w < W; w++) sum[m][w] += x * b[w];
      }
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int w = 0; w < W; w++) {
      real* to = out + m * out_step + w * L;
      const long left = lanes - w * L;
      store(to, ADD ? load(to, left) + sum[m][w] : sum[m][w], left);
    }
}

template <int W, bool BESIDE, bool ADD, int M = MOST>
INLINE void multiply_rows(long m, const real* a, long step, long K, long chunks, long chunk_step, const real* panel,
                          real* out, long out_step, long lanes) {
  if (m == M) return multiply<M, W, BESIDE, ADD>(a, step, K, chunks, chunk_step, panel, out, out_step, lanes);
  if constexpr (M > 1)
    multiply_rows<W, BESIDE, ADD, M - 1>(m, a, step, K, chunks, chunk_step, panel, out, out_step, lanes);
}

// MOST neighbouring numbers of each of K rows, one row behind the other, for a product with BESIDE: a
// row of its own for each would be a page of its own. `left` numbers remain in a row; `to` has room
// for L more.
static void pack_beside(real* to, const real* from, long step, long K, long left) {
  for (long k = 0; k < K; k++)
    for (long i = 0; i < MOST; i += L)
      *(loose*)(to + k * MOST + i) = (loose)(left > i ? load(from + k * step + i, left - i) : vec{});
}

constexpr long least(long a, long b) { return a < b ? a : b; }
constexpr long upwards(long n, long to) { return (n + to - 1) / to * to; }
