// Σ s z uᵀ and Σ s u over the rows in one read of Z, u = Wᵀz − offset and s = ‖u‖², to float32 accuracy on fp16 tensor cores.
//
// Z lies on the card as rows/halves.py writes it: columns scaled by powers of two, z = hi + lo, both fp16. Eight columns of
// a row are 16 bytes of hi and 16 of lo, and these chunks are XORed by the row, so that ONE contiguous bulk copy brings 16
// rows (a tile) and ldmatrix reads them without bank conflicts: plain for U = ZW, transposed for ZᵀG. No instruction is
// spent on converting Z. Every product is hi·hi + hi·lo + lo·hi with float32 accumulators.
//
//   D      columns of a row, a multiple of 8          K       axes of a frame: 1, 2 or 3 (padded to 4 columns)
//   WIDE   1: WARPS warps share 16 rows and split their columns; between two barriers lie G(j), ZᵀG(j−1) and ZW(j+1)
//          0: each of WARPS warps has its own 16 rows and its own ring of copies, and no barrier at all
//   BLOCKS blocks of 16 columns for each warp        GROUPS  groups of warps in a WIDE block, each with its own rows
//   SLOTS  tiles in flight for each group            HELD    1: W in registers, 0: in shared memory (narrow rows)
//   STAGE  0: all at once; rows of several panels: 1: U += ZW into memory, 2: G from that U, then ZᵀG
//
// Tensor cores truncate when they add (measured: κ off by 3e-5 after many tiles), so what they sum over 16 rows is added to
// float32 sums by plain additions, at most `flush` tiles to a sum; `reduce` adds these in float64. No atomics touch a sum:
// repeats are bit-equal.
#include "halves.cuh"

#if WIDE
constexpr int THREADS = WARPS * 32, AT_ONCE = K == 3 ? 4 : 2, ITEMS = F / AT_ONCE, ROWS_AT_ONCE = THREADS / ITEMS;
constexpr int TURNS = (16 + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, PAIRS = AT_ONCE / 2;

extern "C" __global__ void __launch_bounds__((WARPS * GROUPS + 1) * 32, 1)
quartic(const char* __restrict__ Z, int n, const uint32_t* __restrict__ W, const float* __restrict__ offset, const float* __restrict__ scale,
        int* peaks, float* parts, int flush, int n_flushes, float* U, int first_panel) {
  extern __shared__ __align__(128) char memory[];
  char* slots = memory;                                                       // GROUPS·SLOTS tiles, then 256 bytes of zeros
  float* all_u = (float*)(memory + GROUPS * SLOTS * TILE_BYTES + 256);        // a U of 16 rows from every warp, twice
  char* all_g = (char*)(all_u + GROUPS * 2 * WARPS * 16 * F);                 // G twice, two planes
  uint64_t* barriers = (uint64_t*)(all_g + GROUPS * 4 * PLANE);               // full and empty, for each slot
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  for (int i = thread; i < (GROUPS * SLOTS * TILE_BYTES + 256) / 4; i += blockDim.x) ((uint32_t*)slots)[i] = 0;
  for (int i = thread; i < GROUPS * PLANE; i += blockDim.x) ((uint32_t*)all_g)[i] = 0;
  if (thread == 0)
    for (int i = 0; i < GROUPS * SLOTS; i++) {
      barrier_init(shared_address(barriers + 2 * i), 1);
      barrier_init(shared_address(barriers + 2 * i + 1), WARPS);
    }
  fence_barriers();
  __syncthreads();
  const int n_tiles = (n + 15) / 16, n_groups = gridDim.x * GROUPS;
  if (warp == WARPS * GROUPS) {                                               // the warp that only copies
    if (lane == 0) {
      int slot = 0, phase = 0;
#pragma unroll 1
      for (int round = 0; round * n_groups + (int)blockIdx.x * GROUPS < n_tiles; round++) {
#pragma unroll 1
        for (int group = 0; group < GROUPS; group++) {
          const int tile = round * n_groups + blockIdx.x * GROUPS + group;
          if (tile >= n_tiles) break;
          const uint32_t full = shared_address(barriers + 2 * (group * SLOTS + slot));
          barrier_wait(full + 8, phase ^ 1);
          copy_tile(shared_address(slots + (group * SLOTS + slot) * TILE_BYTES), Z, tile, n, full);
        }
        if (++slot == SLOTS) { slot = 0; phase ^= 1; }
      }
    }
    return;
  }
  const int group = warp / WARPS, part_of_row = warp % WARPS, g = lane / 4, t = lane % 4, mine = part_of_row * 32 + lane;
  const int first_column = part_of_row * BLOCKS * 16, id = blockIdx.x * GROUPS + group;
  const uint32_t tiles = shared_address(slots + group * SLOTS * TILE_BYTES), bars = shared_address(barriers + 2 * group * SLOTS);
  float* us = all_u + group * 2 * WARPS * 16 * F;
  char* gs = all_g + group * 4 * PLANE;
  uint32_t by_rows[2][2], by_columns[2][2];
  lane_addresses<false>(by_rows, lane, first_column);
  lane_addresses<true>(by_columns, lane, first_column);
  uint32_t w[STAGE == 2 ? 1 : BLOCKS][3][4];
  if constexpr (STAGE != 2)
    UNROLL for (int k = 0; k < BLOCKS; k++)
      UNROLL for (int f = 0; f < 3; f++)
        UNROLL for (int i = 0; i < 4; i++)                                    // words of W: [pair of columns][F][hi, lo]
          w[k][f][i] = W[(((first_column + 16 * k) / 2 + t + 4 * (i & 1)) * F + 8 * f + g) * 2 + (i >> 1)];
  float sums[BLOCKS][3][4];
  clear_sums(sums);
  const int item = mine % ITEMS, column = item * AT_ONCE;
  double total[AT_ONCE];
  float off[AT_ONCE], fit[PAIRS], peak[PAIRS];
  UNROLL for (int i = 0; i < AT_ONCE; i++) { total[i] = 0; off[i] = offset[column + i]; }
  UNROLL for (int i = 0; i < PAIRS; i++) { peak[i] = 0; fit[i] = scale[column / 2 + i]; }
  int flushed = 0, since = 0;
  auto flush_now = [&]() { write_sums(parts + ((size_t)(flushed++) * n_groups + id) * PARTIAL, sums, first_column, lane); };
  auto meet = [&]() { asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "r"(THREADS) : "memory"); };
  auto project = [&](uint32_t tile, int buffer) {
    if constexpr (STAGE != 2) {
      float c[2][3][4];
      UNROLL for (int i = 0; i < BLOCKS; i++)
        if (i == 0) first_product<true>(i, tile, by_rows, c, w[i]); else first_product<false>(i, tile, by_rows, c, w[i]);
      join(c);
      UNROLL for (int f = 0; f < 3; f++)
        UNROLL for (int r = 0; r < 2; r++)
          *(float2*)(us + ((buffer * WARPS + part_of_row) * 16 + g + 8 * r) * F + 8 * f + 2 * t) = make_float2(c[0][f][2 * r], c[0][f][2 * r + 1]);
    }
  };
  auto accumulate = [&](uint32_t tile, int buffer) {
    if constexpr (STAGE != 1) {
      uint32_t weights[3][4];
      load_weights(weights, shared_address(gs) + buffer * 2 * PLANE, lane);
      UNROLL for (int i = 0; i < BLOCKS; i++) second_product(i, tile, by_columns, weights, sums[i]);
    }
  };
  float2 seen[TURNS][PAIRS];                                                  // U of the rows of this thread
  auto fetch = [&](int tile) {                                                // early, so that memory answers in time
    if constexpr (STAGE == 2)
      UNROLL for (int q = 0; q < TURNS; q++) {
        const int r = mine / ITEMS + q * ROWS_AT_ONCE;
        if (mine < ROWS_AT_ONCE * ITEMS && r < 16 && tile * 16 + r < n)
          UNROLL for (int i = 0; i < PAIRS; i++) seen[q][i] = *(const float2*)(U + ((size_t)tile * 16 + r) * F + column + 2 * i);
      }
  };
  auto weights_of = [&](int tile, int buffer) {                               // U of a tile from its parts, then G
    if (mine >= ROWS_AT_ONCE * ITEMS) return;
    UNROLL for (int q = 0; q < TURNS; q++) {
      const int r = mine / ITEMS + q * ROWS_AT_ONCE;
      if (r >= 16) break;
      const bool inside = tile * 16 + r < n;
      UNROLL for (int i = 0; i < PAIRS; i++) {
        if constexpr (STAGE != 2) {
          float2 v[WARPS];
          UNROLL for (int c = 0; c < WARPS; c++) v[c] = *(const float2*)(us + ((buffer * WARPS + c) * 16 + r) * F + column + 2 * i);
          UNROLL for (int step = 1; step < WARPS; step *= 2)
            UNROLL for (int c = 0; c + step < WARPS; c += 2 * step) { v[c].x += v[c + step].x; v[c].y += v[c + step].y; }
          seen[q][i] = v[0];
        }
        if constexpr (STAGE == 1) {
          if (inside) {
            float2* to = (float2*)(U + ((size_t)tile * 16 + r) * F + column + 2 * i);
            const float2 before = first_panel ? make_float2(0.f, 0.f) : *to;
            *to = make_float2(before.x + seen[q][i].x, before.y + seen[q][i].y);
          }
        }
      }
      if constexpr (STAGE != 1) {
        float u[AT_ONCE];
        UNROLL for (int i = 0; i < PAIRS; i++) { u[2 * i] = seen[q][i].x - off[2 * i]; u[2 * i + 1] = seen[q][i].y - off[2 * i + 1]; }
        float squares[2] = {0.f, 0.f};
        if constexpr (K == 3)
          UNROLL for (int i = 0; i < PAIRS; i++) squares[PAIRS - 1 - i] = u[2 * i] * u[2 * i] + u[2 * i + 1] * u[2 * i + 1];
        UNROLL for (int i = 0; i < PAIRS; i++) {
          weigh(u[2 * i], u[2 * i + 1], squares[i], inside ? fit[i] : 0.f);
          if (!inside) u[2 * i] = u[2 * i + 1] = 0.f;
          total[2 * i] += u[2 * i];
          total[2 * i + 1] += u[2 * i + 1];
          peak[i] = fmaxf(peak[i], fmaxf(fabsf(u[2 * i]), fabsf(u[2 * i + 1])));
          uint32_t hi, lo;
          split(u[2 * i], u[2 * i + 1], hi, lo);
          uint32_t* to = (uint32_t*)(gs + buffer * 2 * PLANE) + r * (F / 2) + column / 2 + i;
          to[0] = hi;
          to[PLANE / 4] = lo;
        }
      }
    }
  };
  int slot = 0, phase = 0, before = 0;                                        // slot and phase of tile j+1, slot of tile j−1
  if (id < n_tiles) {
    barrier_wait(bars, 0);
    project(tiles, 0);
    slot = 1 % SLOTS;
  }
  meet();
  int j = 0;
#pragma unroll 1
  for (int tile = id; tile < n_tiles; tile += n_groups, j++) {
    const bool more = tile + n_groups < n_tiles;
    fetch(tile);
    if constexpr (STAGE != 2) weights_of(tile, j & 1);
    if (j > 0) {
      accumulate(tiles + before * TILE_BYTES, (j - 1) & 1);
      __syncwarp();
      if (lane == 0) barrier_arrive(bars + 16 * before + 8);
      if (++before == SLOTS) before = 0;
      if (++since == flush) { since = 0; flush_now(); }
    }
    if constexpr (STAGE == 2) weights_of(tile, j & 1);
    if (more) {
      barrier_wait(bars + 16 * slot, phase);
      project(tiles + slot * TILE_BYTES, (j + 1) & 1);
      if (++slot == SLOTS) { slot = 0; phase ^= 1; }
    }
    meet();
  }
  if (j > 0) accumulate(tiles + before * TILE_BYTES, (j - 1) & 1);
  if constexpr (STAGE == 1) return;
  while (flushed < n_flushes) flush_now();
  meet();
  double* totals = (double*)us;
  const bool has_item = mine < ROWS_AT_ONCE * ITEMS;
  if (has_item) {
    UNROLL for (int i = 0; i < AT_ONCE; i++) totals[mine * AT_ONCE + i] = total[i];
    UNROLL for (int i = 0; i < PAIRS; i++) keep_peak(peaks, column / 2 + i, peak[i]);
  }
  meet();
  for (int s = 0; s < n_flushes; s++)
    for (int i = mine; i < 8 * F; i += THREADS) {
      double v = 0;
      if (s == 0 && i < F)
        for (int r = 0; r < ROWS_AT_ONCE; r++) v += totals[(r * ITEMS + i / AT_ONCE) * AT_ONCE + i % AT_ONCE];
      parts[((size_t)s * n_groups + id) * PARTIAL + PADDED * F + i] = (float)v;
    }
}
#else
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
quartic(const char* __restrict__ Z, int n, const uint32_t* __restrict__ W, const float* __restrict__ offset, const float* __restrict__ scale,
        int* peaks, float* parts, int flush, int n_flushes, float* U, int first_panel) {
  extern __shared__ __align__(128) char memory[];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
  const uint32_t slots = shared_address(memory) + warp * SLOTS * TILE_BYTES;
  char* gs = memory + WARPS * SLOTS * TILE_BYTES + 256 + warp * 2 * PLANE;
  uint4* shared_w = (uint4*)(memory + WARPS * SLOTS * TILE_BYTES + 256 + WARPS * 2 * PLANE);  // [block][f][lane]
  uint64_t* barriers = (uint64_t*)(shared_w + (HELD ? 0 : BLOCKS * 96));
  const uint32_t bars = shared_address(barriers + warp * SLOTS);
  for (int i = thread; i < (WARPS * SLOTS * TILE_BYTES + 256) / 4; i += WARPS * 32) ((uint32_t*)memory)[i] = 0;
  auto word = [&](int k, int f, int l, int i) { return W[((8 * k + l % 4 + 4 * (i & 1)) * F + 8 * f + l / 4) * 2 + (i >> 1)]; };
#if !HELD
  for (int i = thread; i < BLOCKS * 96; i += WARPS * 32) {
    const int k = i / 96, f = i / 32 % 3, l = i % 32;
    shared_w[i] = make_uint4(word(k, f, l, 0), word(k, f, l, 1), word(k, f, l, 2), word(k, f, l, 3));
  }
#else
  uint32_t held[BLOCKS][3][4];
  UNROLL for (int k = 0; k < BLOCKS; k++)
    UNROLL for (int f = 0; f < 3; f++)
      UNROLL for (int i = 0; i < 4; i++) held[k][f][i] = word(k, f, lane, i);
#endif
  if (lane == 0) for (int i = 0; i < SLOTS; i++) barrier_init(bars + 8 * i, 1);
  fence_barriers();
  __syncthreads();
  const int n_tiles = (n + 15) / 16, n_groups = gridDim.x * WARPS, id = blockIdx.x * WARPS + warp;
  uint32_t by_rows[2][2], by_columns[2][2];
  lane_addresses<false>(by_rows, lane, 0);
  lane_addresses<true>(by_columns, lane, 0);
  float off[3][2], total[3][2], fit[3], peak[3];
  UNROLL for (int f = 0; f < 3; f++) {
    fit[f] = scale[4 * f + t];
    peak[f] = 0.f;
    UNROLL for (int i = 0; i < 2; i++) { off[f][i] = offset[8 * f + 2 * t + i]; total[f][i] = 0.f; }
  }
  float sums[BLOCKS][3][4];
  clear_sums(sums);
  int flushed = 0, since = 0;
  auto flush_now = [&]() {
    float* part = parts + ((size_t)(flushed++) * n_groups + id) * PARTIAL;
    write_sums(part, sums, 0, lane);
    UNROLL for (int f = 0; f < 3; f++) {
      *(float2*)(part + (PADDED + g) * F + 8 * f + 2 * t) = make_float2(total[f][0], total[f][1]);
      total[f][0] = total[f][1] = 0.f;
    }
  };
  auto load = [&](int slot, int tile) {
    if (tile < n_tiles && lane == 0) copy_tile(slots + slot * TILE_BYTES, Z, tile, n, bars + 8 * slot);
  };
  float c[2][3][4];
  auto project = [&](uint32_t tile) {
    UNROLL for (int i = 0; i < BLOCKS; i++) {
#if HELD
      const uint32_t(&w)[3][4] = held[i];
#else
      uint32_t w[3][4];
      UNROLL for (int f = 0; f < 3; f++) {
        const uint4 v = shared_w[(i * 3 + f) * 32 + lane];
        w[f][0] = v.x; w[f][1] = v.y; w[f][2] = v.z; w[f][3] = v.w;
      }
#endif
      if (i == 0) first_product<true>(i, tile, by_rows, c, w); else first_product<false>(i, tile, by_rows, c, w);
    }
    join(c);
  };
#pragma unroll 1
  for (int s = 0; s < SLOTS; s++) load(s, id + s * n_groups);
  int slot = 0, next = 1 % SLOTS, phase = 0;
  if (id < n_tiles) { barrier_wait(bars, 0); project(slots); }
#pragma unroll 1
  for (int tile = id; tile < n_tiles; tile += n_groups) {
    const bool more = tile + n_groups < n_tiles;
    UNROLL for (int r = 0; r < 2; r++) {
      const bool inside = tile * 16 + g + 8 * r < n;
      UNROLL for (int f = 0; f < 3; f++) {
        float u0 = c[0][f][2 * r] - off[f][0], u1 = c[0][f][2 * r + 1] - off[f][1], beside = 0.f;
        if constexpr (K == 3) beside = __shfl_xor_sync(0xffffffff, u0 * u0 + u1 * u1, 1);
        weigh(u0, u1, beside, fit[f]);
        if (!inside) u0 = u1 = 0.f;
        total[f][0] += u0;
        total[f][1] += u1;
        peak[f] = fmaxf(peak[f], fmaxf(fabsf(u0), fabsf(u1)));
        uint32_t hi, lo;
        split(u0, u1, hi, lo);
        uint32_t* to = (uint32_t*)gs + (g + 8 * r) * (F / 2) + 4 * f + t;
        to[0] = hi;
        to[PLANE / 4] = lo;
      }
    }
    __syncwarp();
    uint32_t weights[3][4];
    load_weights(weights, shared_address(gs), lane);
    UNROLL for (int i = 0; i < BLOCKS; i++) second_product(i, slots + slot * TILE_BYTES, by_columns, weights, sums[i]);
    __syncwarp();
    load(slot, tile + SLOTS * n_groups);
    if (more) { barrier_wait(bars + 8 * next, phase); project(slots + next * TILE_BYTES); }
    if (++slot == SLOTS) slot = 0;
    if (more && ++next == SLOTS) { next = 0; phase ^= 1; }
    if (++since == flush) { since = 0; flush_now(); }
  }
  while (flushed < n_flushes) flush_now();
  UNROLL for (int f = 0; f < 3; f++) {
    UNROLL for (int distance = 4; distance < 32; distance *= 2) peak[f] = fmaxf(peak[f], __shfl_xor_sync(0xffffffff, peak[f], distance));
    if (g == 0) keep_peak(peaks, 4 * f + t, peak[f]);
  }
}
#endif
