// One step alone: small products of it in the same call, with matrices as they stand in memory.
// A matrix that is read once is not worth packing.
#include "kernel.hpp"

// A product before or after the step, of buffers by number; rows are those of the batch.
struct StepProduct {
  long kind, to, to_at, from, from_at, by, by_at, n, k, fresh;
};
enum { FORTH, BACK, OUTER, SUMMED };  // as in step_products.py

// The end of a row of at least L numbers, of which fewer than L are left: the last L, where `new_lanes`
// are those that are left.
INLINE ints new_lanes(long left) {
  ints lane;
  for (int i = 0; i < L; i++) lane[i] = i;
  return lane >= (whole)(L - left) - ints{};
}
INLINE vec loaded(const real* p) { return (vec) * (const loose*)p; }
INLINE vec where(ints chosen, vec v) { return (vec)(chosen & (ints)v); }
INLINE real total(vec v) {  // of all lanes, in halves: quicker than one after the other
  typedef real few __attribute__((vector_size(16)));
  const union {
    vec whole;
    few part[BYTES / 16];
  } u = {v};
  few s = u.part[0];
  for (int i = 1; i < BYTES / 16; i++) s += u.part[i];
  return REAL_BITS == 32 ? (s[0] + s[1]) + (s[2 % (16 / sizeof(real))] + s[3 % (16 / sizeof(real))]) : s[0] + s[1];
}

// out[r][i] = sum over j of a[r][j] * m[i][j], for R rows and I units.
template <int R, int I>
INLINE void dots(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long k) {
  vec sum[R][I] = {};
  long j = 0;
  for (; j + L <= k; j += L) {
    vec w[I];
    for (int i = 0; i < I; i++) w[i] = loaded(m + i * m_step + j);
    for (int r = 0; r < R; r++) {
      const vec x = loaded(a + r * a_step + j);
      for (int i = 0; i < I; i++) sum[r][i] += x * w[i];
    }
  }
  if (j < k && j) {
    const ints left = new_lanes(k - j);
    for (int i = 0; i < I; i++) {
      const vec w = where(left, loaded(m + i * m_step + k - L));
      for (int r = 0; r < R; r++) sum[r][i] += where(left, loaded(a + r * a_step + k - L)) * w;
    }
  } else if (j < k) {
    for (int i = 0; i < I; i++)
      for (int r = 0; r < R; r++) sum[r][i] += load(a + r * a_step, k) * load(m + i * m_step, k);
  }
  for (int r = 0; r < R; r++)
    for (int i = 0; i < I; i++) out[r * out_step + i] = total(sum[r][i]);
}
template <int R>
APART void rows_of_dots(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long n,
                        long k) {
  constexpr int I = R == 1 ? 8 : R == 2 ? 4 : 3;
  long i = 0;
  for (; i + I <= n; i += I) dots<R, I>(out + i, out_step, a, a_step, m + i * m_step, m_step, k);
  for (; i < n; i++) dots<R, 1>(out + i, out_step, a, a_step, m + i * m_step, m_step, k);
}
// A few units of all rows, then the next ones: a matrix is read from afar once.
static void forth(real* out, long out_step, const real* a, long a_step, const real* m, long m_step, long rows, long n,
                  long k) {
  constexpr long UNITS = 24;
  for (long i = 0; i < n; i += UNITS) {
    const long here = n - i < UNITS ? n - i : UNITS;
    const real* units = m + i * m_step;
    for (long r = 0, left = (rows + 3) / 4; left; left--) {
      const long height = (rows - r + left - 1) / left;
      real* to = out + r * out_step + i;
      const real* from = a + r * a_step;
      switch (height) {
        case 1: rows_of_dots<1>(to, out_step, from, a_step, units, m_step, here, k); break;
        case 2: rows_of_dots<2>(to, out_step, from, a_step, units, m_step, here, k); break;
        case 3: rows_of_dots<3>(to, out_step, from, a_step, units, m_step, here, k); break;
        case 4: rows_of_dots<4>(to, out_step, from, a_step, units, m_step, here, k); break;
      }
      r += height;
    }
  }
}

// out[i][:] = sum over j of a(i, j) * b[j][:], or added to it, for I rows and V vectors of columns;
// a(i, j) stands at i*i_step + j*j_step. Of the last vector `left` lanes are kept, the last ones if ENDING.
template <int I, int V, bool ENDING = false>
INLINE void sums(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                 long terms, long left, bool fresh) {
  vec sum[I][V] = {};
  for (long j = 0; j < terms; j++) {
    vec w[V];
    for (int v = 0; v < V; v++) w[v] = ENDING ? loaded(b + j * b_step) : load(b + j * b_step + v * L, left - v * L);
    for (int i = 0; i < I; i++) {
      const vec x = all(a[i * i_step + j * j_step]);
      for (int v = 0; v < V; v++) sum[i][v] += x * w[v];
    }
  }
  for (int i = 0; i < I; i++)
    for (int v = 0; v < V; v++) {
      real* to = out + i * out_step + v * L;
      if (ENDING) store(to, choose(new_lanes(left), fresh ? sum[i][v] : loaded(to) + sum[i][v], loaded(to)), L);
      else store(to, fresh ? sum[i][v] : load(to, left - v * L) + sum[i][v], left - v * L);
    }
}
template <int I, int V = 2>
APART void rows_of_sums(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                         long terms, long columns, bool fresh) {
  long c = 0;
  for (; c + V * L <= columns; c += V * L)
    sums<I, V>(out + c, out_step, a, i_step, j_step, b + c, b_step, terms, V * L, fresh);
  for (; c + L <= columns; c += L)
    sums<I, 1>(out + c, out_step, a, i_step, j_step, b + c, b_step, terms, L, fresh);
  const long left = columns - c, end = columns - L;
  if (left && c) sums<I, 1, true>(out + end, out_step, a, i_step, j_step, b + end, b_step, terms, left, fresh);
  else if (left) sums<I, 1>(out, out_step, a, i_step, j_step, b, b_step, terms, left, fresh);
}
// The same for one row, which reads b once, from its first number to its last.
template <int J>
INLINE void add_rows(real* out, const real* a, long j_step, const real* b, long b_step, long columns, bool fresh) {
  vec x[J];
  for (int j = 0; j < J; j++) x[j] = all(a[j * j_step]);
  long c = 0;
  for (; c + L <= columns; c += L) {
    vec sum = fresh ? vec{} : loaded(out + c);
    for (int j = 0; j < J; j++) sum += x[j] * loaded(b + j * b_step + c);
    store(out + c, sum, L);
  }
  if (c < columns) {
    vec sum = fresh ? vec{} : load(out + c, columns - c);
    for (int j = 0; j < J; j++) sum += x[j] * load(b + j * b_step + c, columns - c);
    store(out + c, sum, columns - c);
  }
}
static void one_row(real* out, const real* a, long j_step, const real* b, long b_step, long terms, long columns,
                    bool fresh) {
  long j = 0;
  for (; j + 8 <= terms; j += 8, fresh = false)
    add_rows<8>(out, a + j * j_step, j_step, b + j * b_step, b_step, columns, fresh);
  for (; j < terms; j++, fresh = false)
    add_rows<1>(out, a + j * j_step, j_step, b + j * b_step, b_step, columns, fresh);
}

// In pieces: one long sum would lose digits.
static void combine(real* out, long out_step, const real* a, long i_step, long j_step, const real* b, long b_step,
                    long rows, long terms, long columns, bool fresh) {
  constexpr long PIECE = 128;
  for (long j = 0; j < terms; j += PIECE, fresh = false) {
    const long here = terms - j < PIECE ? terms - j : PIECE;
    const real *x = a + j * j_step, *w = b + j * b_step;
    if (rows == 1 || here < 4) {
      for (long i = 0; i < rows; i++) one_row(out + i * out_step, x + i * i_step, j_step, w, b_step, here, columns, fresh);
      continue;
    }
    for (long i = 0, left = (rows + 5) / 6; left; left--) {
      const long height = (rows - i + left - 1) / left;
      real* to = out + i * out_step;
      const real* from = x + i * i_step;
      switch (height) {
        case 1: one_row(to, from, j_step, w, b_step, here, columns, fresh); break;
        case 2: rows_of_sums<2>(to, out_step, from, i_step, j_step, w, b_step, here, columns, fresh); break;
        case 3: rows_of_sums<3>(to, out_step, from, i_step, j_step, w, b_step, here, columns, fresh); break;
        case 4: rows_of_sums<4>(to, out_step, from, i_step, j_step, w, b_step, here, columns, fresh); break;
        case 5: rows_of_sums<5>(to, out_step, from, i_step, j_step, w, b_step, here, columns, fresh); break;
        case 6: rows_of_sums<6>(to, out_step, from, i_step, j_step, w, b_step, here, columns, fresh); break;
      }
      i += height;
    }
  }
}

// Products that several threads share: each has some of the units, or some of the columns of the result,
// so that products which add to the same result need not wait for each other.
struct StepProducts {
  const StepProduct* products;
  long count;
  real** buffers;
  const long* strides;
  long rows, sums, workers;  // sums: rows of SUMMED, one for each thread of the step
  const Threads& threads;
};

static void run(const StepProduct& p, const StepProducts& all, long who) {
  const long to_step = all.strides[p.to], from_step = all.strides[p.from], by_step = all.strides[p.by];
  real* const to = all.buffers[p.to];
  const real *const from = all.buffers[p.from] + p.from_at, *const by = all.buffers[p.by];
  const long width = p.kind == FORTH ? p.n : p.k, blocks = (width + L - 1) / L;
  const long first = blocks * who / all.workers * L, end = blocks * (who + 1) / all.workers * L;
  const long here = (end < width ? end : width) - first;
  switch (p.kind) {
    case FORTH:
      return forth(to + p.to_at + first, to_step, from, from_step, by + (p.by_at + first) * by_step, by_step,
                   all.rows, here, p.k);
    case BACK:
      return combine(to + first, to_step, from, from_step, 1, by + p.by_at * by_step + first, by_step, all.rows, p.n,
                     here, p.fresh);
    case OUTER:
      return combine(to + p.to_at * to_step + first, to_step, from, 1, from_step, by + p.by_at + first, by_step,
                     p.n, all.rows, here, p.fresh);
    case SUMMED:
      for (long i = 0; i < p.n && !who; i++) {
        real sum = 0;
        for (long t = 0; t < all.sums; t++) sum += from[t * from_step + i];
        to[p.to_at + i] = sum;
      }
  }
}

static void worker(void* given) {
  const StepProducts& all = *(const StepProducts*)given;
  const FlushDenormals flush;
  const long step = all.workers > 1 ? all.threads.count() : 1;
  for (long who = all.workers > 1 ? all.threads.number() : 0; who < all.workers; who += step)
    for (long k = 0; k < all.count; k++) run(all.products[k], all, who);
}
static void run_all(StepProducts all) {
  if (!all.count) return;
  if (all.workers > 1) all.threads.parallel(worker, &all, (unsigned)all.workers, 0);
  else worker(&all);
}

// What stays the same from call to call.
struct Fixed {
  void (*step)(const Call*, const Threads*);
  const Threads* threads;
  const long *sizes, *strides;
  Products products;
  Pack pack;
};

extern "C" void single_step(const Fixed* f, real** buffers, long batch, long threads, long train,
                            const StepProduct* products, long before, long after, long workers) {
  long* first = (long*)__builtin_alloca((threads + 1) * sizeof(long));
  for (long k = 0; k <= threads; k++) first[k] = batch * k / threads;
  const Call call = {buffers, f->sizes, 0, 0, 0, first, 1, batch, threads, batch, 0, (int)train, f->products, f->pack};
  run_all({products, before, buffers, f->strides, batch, threads, workers, *f->threads});
  f->step(&call, f->threads);
  run_all({products + before, after, buffers, f->strides, batch, threads, workers, *f->threads});
}
