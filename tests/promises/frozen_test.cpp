// Chapter 8. The sizes on which the bits of results depend: how work is cut into parts, where that changes a sum.
//
// These numbers are frozen. Whoever changes one makes a new version of the bit contract: every training then ends with
// other bits, and fingerprints (`orrery toy --hash`) noted before can no longer be reproduced.
#include <doctest/doctest.h>

#include "autograd/ops/fused/attention/packed_heads.h"
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/kernels/reduce.h"
#include "core/products/blas.h"
#include "core/products/thin_product.h"
#include "core/random.h"
#include "optim/parameters.h"

using namespace orrery;
using namespace orrery::kernels;

TEST_CASE("promise 1: the sizes that the bits of products depend on are frozen") {
  // Products by BLAS: tiles of at least 1,024 rows or 256 columns, with borders at multiples of 16; one
  // tile below 2^18 multiplications.
  CHECK(blas_tiles(4095, 512, 4096) == 2);
  CHECK(blas_tiles(4096, 512, 4096) == 4);
  CHECK(blas_tiles(512, 1023, 4096) == 2);
  CHECK(blas_tiles(512, 1024, 4096) == 4);
  CHECK(blas_tiles(1 << 20, 512, 4096) == 8);
  CHECK(blas_tiles(64, 64, 63) == 1);
  CHECK(blas_tiles(64, 64, 64) == 2);
  CHECK(blas_tiles(17, 16, 4096) == 2);
  CHECK(blas_tiles(16, 16, 4096) == 1);
  CHECK(thin_rows == 16);
  // Which products are thin. All others add up in order.
  CHECK((runs_thin(16, Trans::b) && !runs_thin(17, Trans::b) && !runs_thin(16, Trans::none)));
  CHECK((!runs_thin(1, Trans::a) && !runs_thin(1, Trans::both)));
  // The head's chunks of rows: at least 256, and 10 MB of logits.
  CHECK(row_chunk(2048, 10000, f32) == 256);
  CHECK(row_chunk(2048, 10000, f64) == 256);
  CHECK(row_chunk(1024, 8000, f32) == 256);
  CHECK(row_chunk(600, 5000, f32) == 300);
  CHECK(row_chunk(768, 65, f32) == 768);
  CHECK(row_chunk(4096, 1024, f32) == 2048);  // of a feed-forward network
}

TEST_CASE("promise 1: the sizes that the bits of sums, attention and dropout depend on are frozen") {
  // Sums.
  CHECK(reduce_chunk == 4096);
  CHECK(sum_lanes == 16);
  CHECK(most_strip_rows == 256);
  CHECK(column_block == 1024);
  CHECK(strip_rows(1) == 256);
  CHECK(strip_rows(64) == 128);
  CHECK(strip_rows(1024) == 16);
  CHECK(optim::piece_size == 16384);
  // Attention.
  CHECK(query_tile == 128);
  CHECK(keys_at_once == 64);
  CHECK(width_multiple == 8);
  CHECK(packed_heads::most_keys == 512);
  CHECK(packed_heads::least_tasks == 16);
  CHECK(TileSizes{}.queries == 128);
  CHECK(TileSizes{}.keys == 256);
  // Dropout.
  CHECK(decisions_per_block == 8);
}
