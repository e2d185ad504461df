// One step alone: small products of it in the same call, with matrices as they stand in memory.
// A matrix that is read once is not worth packing.
#include "kernel.hpp"

// What is done before or after the step, on buffers by number; rows are those of the batch.
struct Job {
  long kind, to, to_at, from, from_at, by, by_at, n, k, fresh;
};
enum { FORTH, BACK, OUTER, SUMS };  // as in once.py

// out[r][i] = sum over j of a[r][j] * m[i][j], for R rows and I units.
template <int R, int I>
INLINE void dots(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long k) {
  vec sum[R][I] = {};
  for (long j = 0; j < k; j += L) {
    vec x[R];
    for (int r = 0; r < R; r++) x[r] = load(a + r * a_step + j, k - j);
    for (int i = 0; i < I; i++) {
      const vec w = load(m + i * m_step + j, k - j);
      for (int r = 0; r < R; r++) sum[r][i] += x[r] * w;
    }
  }
  for (int r = 0; r < R; r++)
    for (int i = 0; i < I; i++) out[r * out_step + i] = sum_of_lanes(sum[r][i]);
}
template <int R, int I>
INLINE void rows_of_dots(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long n,
                         long k) {
  long i = 0;
  for (; i + I <= n; i += I) dots<R, I>(out + i, out_step, a, a_step, m + i * m_step, m_step, k);
  for (; i < n; i++) dots<R, 1>(out + i, out_step, a, a_step, m + i * m_step, m_step, k);
}
static void forth(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long rows, long n,
                  long k) {
  long r = 0;
  for (; r + 4 <= rows; r += 4) rows_of_dots<4, 2>(out + r * out_step, out_step, a + r * a_step, a_step, m, m_step, n, k);
  for (; r < rows; r++) rows_of_dots<1, 4>(out + r * out_step, out_step, a + r * a_step, a_step, m, m_step, n, k);
}

// out[i][:] = sum over j of a(i, j) * b[j][:], or added to it, for I rows and V vectors of columns;
// a(i, j) stands at i*i_step + j*j_step.
template <int I, int V>
INLINE void sums(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                 long terms, long left, bool fresh) {
  vec sum[I][V] = {};
  for (long j = 0; j < terms; j++) {
    vec w[V];
    for (int v = 0; v < V; v++) w[v] = load(b + j * b_step + v * L, left - v * L);
    for (int i = 0; i < I; i++) {
      const vec x = all(a[i * i_step + j * j_step]);
      for (int v = 0; v < V; v++) sum[i][v] += x * w[v];
    }
  }
  for (int i = 0; i < I; i++)
    for (int v = 0; v < V; v++) {
      real* to = out + i * out_step + v * L;
      store(to, fresh ? sum[i][v] : load(to, left - v * L) + sum[i][v], left - v * L);
    }
}
template <int I, int V>
INLINE void rows_of_sums(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                         long terms, long columns, bool fresh) {
  long c = 0;
  for (; c + V * L <= columns; c += V * L)
    sums<I, V>(out + c, out_step, a, i_step, j_step, b + c, b_step, terms, V * L, fresh);
  for (; c < columns; c += L)
    sums<I, 1>(out + c, out_step, a, i_step, j_step, b + c, b_step, terms, columns - c, fresh);
}
// In pieces: one long sum would lose digits.
static void combine(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                    long rows, long terms, long columns, bool fresh) {
  constexpr long PIECE = 128;
  for (long j = 0; j < terms; j += PIECE, fresh = false) {
    const long here = terms - j < PIECE ? terms - j : PIECE;
    const real *x = a + j * j_step, *w = b + j * b_step;
    long i = 0;
    for (; i + 4 <= rows; i += 4)
      rows_of_sums<4, 2>(out + i * out_step, out_step, x + i * i_step, i_step, j_step, w, b_step, here, columns, fresh);
    for (; i < rows; i++)
      rows_of_sums<1, 8>(out + i * out_step, out_step, x + i * i_step, i_step, j_step, w, b_step, here, columns, fresh);
  }
}

static void run(const Job& job, real** buffers, const long* strides, long rows, long threads) {
  const long to_step = strides[job.to], from_step = strides[job.from], by_step = strides[job.by];
  real* const to = buffers[job.to];
  const real *const from = buffers[job.from] + job.from_at, *const by = buffers[job.by];
  switch (job.kind) {
    case FORTH:
      return forth(to + job.to_at, to_step, from, from_step, by + job.by_at * by_step, by_step, rows, job.n, job.k);
    case BACK:
      return combine(to, to_step, from, from_step, 1, by + job.by_at * by_step, by_step, rows, job.n, job.k, job.fresh);
    case OUTER:
      return combine(to + job.to_at * to_step, to_step, from, 1, from_step, by + job.by_at, by_step, job.n, rows, job.k,
                     job.fresh);
    case SUMS:
      for (long i = 0; i < job.n; i++) {
        real sum = 0;
        for (long t = 0; t < threads; t++) sum += from[t * from_step + i];
        to[job.to_at + i] = sum;
      }
  }
}

// What stays the same from call to call.
struct Fixed {
  void (*step)(const Call*, const Threads*);
  const Threads* threads;
  const long *sizes, *strides;
  Products products;
  Pack pack;
};

extern "C" void once(const Fixed* f, real** buffers, long batch, long threads, long train, const Job* jobs, long before,
                     long after) {
  long* first = (long*)__builtin_alloca((threads + 1) * sizeof(long));
  for (long k = 0; k <= threads; k++) first[k] = batch * k / threads;
  const Call call = {buffers, f->sizes, 0, 0, 0, first, 1, batch, threads, batch, 0, (int)train, f->products, f->pack};
  {
    const FlushDenormals flush;
    for (long k = 0; k < before; k++) run(jobs[k], buffers, f->strides, batch, threads);
  }
  f->step(&call, f->threads);
  const FlushDenormals flush;
  for (long k = before; k < before + after; k++) run(jobs[k], buffers, f->strides, batch, threads);
}
