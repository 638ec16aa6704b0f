// Rows of fp16 pairs on the card (rows/halves.py has the layout and says why): how tensor cores read, multiply and write them.
#ifdef __CUDACC_RTC__
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <cstdint>
#endif
#include <cuda_fp16.h>
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")

constexpr int F = 24;                                    // columns of frames in one pass: three tiles of 8
constexpr int ROW_BYTES = D * 4, TILE_BYTES = 16 * ROW_BYTES;
constexpr int PADDED = (WIDE ? WARPS : 1) * BLOCKS * 16;  // columns of a partial sum
constexpr int PARTIAL = (PADDED + 8) * F;                // then 8 rows whose sum is Σ s u
constexpr int PLANE = 16 * F * 2;                        // bytes of G of 16 rows, hi or lo
constexpr int BITS = D % 32 == 0 ? 3 : D % 16 == 0 ? 2 : 1;
static_assert(D % 8 == 0, "columns are padded to eight");
DEVICE int swizzle(int row) { return BITS == 3 ? row & 7 : BITS == 2 ? (row >> 1) & 3 : (row >> 2) & 1; }

DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEVICE void barrier_init(uint32_t b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count)); }
DEVICE void barrier_expect(uint32_t b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(uint32_t b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
DEVICE void barrier_wait(uint32_t b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(b),
               "r"(parity)
               : "memory");
}
DEVICE void copy_tile(uint32_t to, const char* Z, int tile, int n, uint32_t barrier) {
  const uint32_t bytes = min(16, n - tile * 16) * ROW_BYTES;
  barrier_expect(barrier, bytes);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(Z + (size_t)tile * TILE_BYTES), "r"(bytes), "r"(barrier)
               : "memory");
}
DEVICE void fence_barriers() {
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
template <bool TRANSPOSED> DEVICE void load_matrix(uint32_t (&r)[4], uint32_t at) {
  if constexpr (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
template <bool FROM_ZERO> DEVICE void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (FROM_ZERO)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// x = hi + lo for two numbers, as two words of two fp16
DEVICE void split(float x0, float x1, uint32_t& hi, uint32_t& lo) {
  const __half2 h = __floats2half2_rn(x0, x1);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(x0 - back.x, x1 - back.y);
  hi = *(const uint32_t*)&h;
  lo = *(const uint32_t*)&l;
}
// where a lane reads a tile for the first product (rows) and the second (columns): [hi, lo][even, odd block of 16 columns]
template <bool TRANSPOSED> DEVICE void lane_addresses(uint32_t (&o)[2][2], int lane, int first_column) {
  const int row = (lane & 7) + 8 * (TRANSPOSED ? lane >> 4 : (lane >> 3) & 1), eight = TRANSPOSED ? (lane >> 3) & 1 : lane >> 4;
  UNROLL for (int p = 0; p < 2; p++)
    UNROLL for (int q = 0; q < 2; q++) o[p][q] = row * ROW_BYTES + 16 * ((first_column / 4 + 4 * q + 2 * eight + p) ^ swizzle(row));
}
template <bool TRANSPOSED> DEVICE void load_block(uint32_t (&hi)[4], uint32_t (&lo)[4], int block, uint32_t tile, const uint32_t (&o)[2][2]) {
  const uint32_t at = tile + (block & ~1) * 64;
  const int odd = block & 1;
  load_matrix<TRANSPOSED>(hi, at + (BITS == 3 ? o[0][odd] : o[0][0] + odd * 64));
  load_matrix<TRANSPOSED>(lo, at + (BITS == 3 ? o[1][odd] : o[1][0] + odd * 64));
}
// U of 16 rows from one block of columns; hi·hi in c[0], the cross terms in c[1]; w = [f][hi k0, hi k1, lo k0, lo k1]
template <bool FROM_ZERO> DEVICE void first_product(int block, uint32_t tile, const uint32_t (&o)[2][2], float (&c)[2][3][4], const uint32_t (&w)[3][4]) {
  uint32_t hi[4], lo[4];
  load_block<false>(hi, lo, block, tile, o);
  UNROLL for (int f = 0; f < 3; f++) {
    multiply<FROM_ZERO>(c[1][f], lo, w[f][0], w[f][1]);
    multiply<false>(c[1][f], hi, w[f][2], w[f][3]);
  }
  UNROLL for (int f = 0; f < 3; f++) multiply<FROM_ZERO>(c[0][f], hi, w[f][0], w[f][1]);
}
DEVICE void join(float (&c)[2][3][4]) {
  UNROLL for (int f = 0; f < 3; f++)
    UNROLL for (int i = 0; i < 4; i++) c[0][f][i] += c[1][f][i];
}
// ZᵀG of one block of columns over 16 rows, added to its sums
DEVICE void second_product(int block, uint32_t tile, const uint32_t (&o)[2][2], const uint32_t (&g)[3][4], float (&sums)[3][4]) {
  uint32_t hi[4], lo[4];
  load_block<true>(hi, lo, block, tile, o);
  float c[3][4];
  UNROLL for (int f = 0; f < 3; f++) multiply<true>(c[f], lo, g[f][0], g[f][1]);
  UNROLL for (int f = 0; f < 3; f++) multiply<false>(c[f], hi, g[f][2], g[f][3]);
  UNROLL for (int f = 0; f < 3; f++) multiply<false>(c[f], hi, g[f][0], g[f][1]);
  UNROLL for (int f = 0; f < 3; f++)
    UNROLL for (int i = 0; i < 4; i++) sums[f][i] += c[f][i];
}
// G of 16 rows, two planes [16][F] of fp16, as the right operand
DEVICE void load_weights(uint32_t (&g)[3][4], uint32_t at, int lane) {
  const uint32_t a = at + ((lane & 7) + 8 * ((lane >> 3) & 1)) * (F * 2);
  uint32_t x[4], y[4], v[4];
  load_matrix<true>(x, a + (lane >> 4) * 16);
  load_matrix<true>(y, a + PLANE + (lane >> 4) * 16);
  load_matrix<true>(v, a + 32 + (lane >> 4) * PLANE);
  UNROLL for (int k = 0; k < 2; k++) {
    g[0][k] = x[k]; g[1][k] = x[2 + k]; g[0][2 + k] = y[k]; g[1][2 + k] = y[2 + k]; g[2][k] = v[k]; g[2][2 + k] = v[2 + k];
  }
}
DEVICE void write_sums(float* part, float (&sums)[BLOCKS][3][4], int first_column, int lane) {
  const int g = lane / 4, t = lane % 4;
  UNROLL for (int m = 0; m < BLOCKS; m++)
    UNROLL for (int f = 0; f < 3; f++)
      UNROLL for (int r = 0; r < 2; r++) {
        *(float2*)(part + (first_column + m * 16 + g + 8 * r) * F + 8 * f + 2 * t) = make_float2(sums[m][f][2 * r], sums[m][f][2 * r + 1]);
        sums[m][f][2 * r] = sums[m][f][2 * r + 1] = 0.f;
      }
}
DEVICE void clear_sums(float (&sums)[BLOCKS][3][4]) {
  UNROLL for (int m = 0; m < BLOCKS; m++)
    UNROLL for (int f = 0; f < 3; f++)
      UNROLL for (int i = 0; i < 4; i++) sums[m][f][i] = 0.f;
}
// G = s·u of two columns, scaled to fit fp16; a frame of three axes needs the squares of the two columns beside these
DEVICE void weigh(float& u0, float& u1, float beside, float scale) {
  if constexpr (K == 1) {
    u0 *= u0 * u0 * scale;
    u1 *= u1 * u1 * scale;
  } else {
    const float s = (u0 * u0 + u1 * u1 + beside) * scale;
    u0 *= s;
    u1 *= s;
  }
}
// The largest |G| of each pair of columns, so that the caller can choose the scale; a maximum has no order to depend on.
DEVICE void keep_peak(int* peaks, int pair, float peak) { atomicMax(peaks + pair, __float_as_int(peak)); }

// Scaled rows (n, width) of float32, `stride` apart, into the layout above; columns beyond `width` are zeros.
extern "C" __global__ void encode(const float* __restrict__ X, long long stride, int width, char* __restrict__ Z, long long first_row, int n) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)n * (D / 8); i += (size_t)gridDim.x * blockDim.x) {
    const size_t row = i / (D / 8) + first_row;
    const int eight = i % (D / 8);
    float x[8];
    UNROLL for (int j = 0; j < 8; j++) x[j] = eight * 8 + j < width ? X[(i / (D / 8)) * stride + eight * 8 + j] : 0.f;
    uint4 hi, lo;
    split(x[0], x[1], hi.x, lo.x); split(x[2], x[3], hi.y, lo.y); split(x[4], x[5], hi.z, lo.z); split(x[6], x[7], hi.w, lo.w);
    char* to = Z + row * ROW_BYTES;
    *(uint4*)(to + 16 * ((2 * eight) ^ swizzle(row))) = hi;
    *(uint4*)(to + 16 * ((2 * eight + 1) ^ swizzle(row))) = lo;
  }
}
// The same numbers back, of n rows from `first_row`, as float32.
extern "C" __global__ void decode(const char* __restrict__ Z, long long first_row, int n, float* __restrict__ X, long long stride, int width) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)n * width; i += (size_t)gridDim.x * blockDim.x) {
    const size_t to = i / width, row = first_row + to;
    const int column = i % width, eight = column / 8, s = swizzle(row);
    const __half* from = (const __half*)(Z + row * ROW_BYTES);
    X[to * stride + column] = __half2float(from[8 * ((2 * eight) ^ s) + column % 8]) + __half2float(from[8 * ((2 * eight + 1) ^ s) + column % 8]);
  }
}
// Rows `index` of Z as a Z of their own; chunks move, no number changes.
extern "C" __global__ void gather(const char* __restrict__ Z, const long long* __restrict__ index, int n, char* __restrict__ to) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)n * (D / 4); i += (size_t)gridDim.x * blockDim.x) {
    const size_t row = i / (D / 4), source = index[row];
    const int chunk = i % (D / 4);
    *(uint4*)(to + row * ROW_BYTES + 16 * (chunk ^ swizzle(row))) = *(const uint4*)(Z + source * ROW_BYTES + 16 * (chunk ^ swizzle(source)));
  }
}
extern "C" __global__ void encode_frames(const float* __restrict__ X, uint32_t* __restrict__ W, int n_pairs) {   // (2p, F) to (p, F, [hi, lo])
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n_pairs * F) split(X[2 * (i / F) * F + i % F], X[(2 * (i / F) + 1) * F + i % F], W[2 * i], W[2 * i + 1]);
}
// The scale of G = s·u of each frame, from `n` rows that stand for all: the power of two that brings the cube of the root
// mean square of u to about 1. Rows 40 times as far out still fit fp16, and those a tenth as far keep their bits. It depends
// on rows and frame alone, so that repeats are bit-equal whatever came before.
extern "C" __global__ void choose_scale(const float* __restrict__ S, int n, int length, const float* __restrict__ X, const float* __restrict__ offset,
                                        float* __restrict__ scale) {
  constexpr int COLUMNS = K == 3 ? 4 : 2;
  __shared__ float sums[32];
  const int column = blockIdx.x * COLUMNS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0.f;
  for (int row = warp; row < n; row += blockDim.x / 32) {
    float u[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) u[c] = 0.f;
    for (int j = lane; j < length; j += 32) {
      const float z = S[(size_t)row * length + j];
      UNROLL for (int c = 0; c < COLUMNS; c++) u[c] += z * X[(size_t)j * F + column + c];
    }
    float s = 0.f;
    UNROLL for (int c = 0; c < COLUMNS; c++) {
      UNROLL for (int distance = 1; distance < 32; distance *= 2) u[c] += __shfl_xor_sync(0xffffffff, u[c], distance);
      u[c] -= offset[column + c];
      s = K == 1 ? fmaxf(s, u[c] * u[c]) : s + u[c] * u[c];
    }
    sum += s;
  }
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < blockDim.x / 32; w++) sum += sums[w];
  const float chosen = sum > 0.f ? exp2f(-3.f * ceilf(0.5f * log2f(sum / n))) : 1.f;
  UNROLL for (int pair = 0; pair < COLUMNS / 2; pair++) scale[column / 2 + pair] = chosen;
}
extern "C" __global__ void reduce(const float* parts, double* out, int n_parts) {
  __shared__ double shares[32][33];
  const int j = blockIdx.x * 32 + threadIdx.x;
  double v = 0;
  if (j < PARTIAL)
    for (int p = threadIdx.y; p < n_parts; p += 32) v += (double)parts[(size_t)p * PARTIAL + j];
  shares[threadIdx.y][threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.y == 0 && j < PARTIAL) {
    double s = 0;
    for (int y = 0; y < 32; y++) s += shares[y][threadIdx.x];
    out[j] = s;
  }
}
