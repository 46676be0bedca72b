// Chapter 8. The library's attention in tiles, beside attention as composed in the paper.
// Question: what does attention in tiles save, and what does it change?
// Answer: the scores that exist at a time are those of one tile, whatever the length, and tiles that a causal mask
//   hides are left out: for long texts nearly half. Output and gradients are the same up to rounding.
#include "autograd/ops/fused/attention/tiled_attention.h"

#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

double largest_difference(const Tensor& x, const Tensor& y) { return std::sqrt(max((x - y) * (x - y)).item()); }

// Tiles of queries and keys of which a causal mask leaves something.
i64 tiles_seen(i64 n, const TileSizes& tile) {
  i64 seen = 0;
  for (i64 i = 0; i < n; i += tile.queries) {
    const i64 last_query = std::min(n, i + tile.queries) - 1;
    for (i64 j = 0; j < n; j += tile.keys) seen += j <= last_query;
  }
  return seen;
}

}  // namespace

int main() {
  constexpr i64 n = 40, d = 6;
  Rng rng(8);
  const Tensor packed = randn({1, n, 3 * d}, rng, f64), dO = randn({1, n, d}, rng, f64);
  const Mask mask = Mask::causal();

  const Variable qkv = parameter(packed.clone());
  const Variable in_tiles = tiled_attention(qkv, {1, d, d}, mask, {}, {.queries = 8, .keys = 16});
  backward(in_tiles, dO);

  std::vector<Variable> parts;  // Q, K and V, [1, 1, n, d] each
  for (i64 part = 0; part < 3; ++part)
    parts.push_back(parameter(slice(packed, -1, part * d, (part + 1) * d).reshape({1, 1, n, d})));
  const Variable whole = attention(parts[0], parts[1], parts[2], mask).output;
  backward(whole, dO.reshape({1, 1, n, d}));
  std::vector<Tensor> gradients;
  for (const Variable& part : parts) gradients.push_back(part.gradient().reshape({1, n, d}));

  const double forward = largest_difference(in_tiles.value().reshape({1, 1, n, d}), whole.value());
  const double back = largest_difference(qkv.gradient(), concat(gradients, -1));
  const bool same = forward < 1e-12 && back < 1e-12;
  std::cout << "the same output and gradients: " << (same ? "yes" : "no")
            << "\n     n  all scores of a head  of one tile  tiles  of them seen\n";
  const TileSizes tile;
  for (const i64 length : {1024, 4096, 16384}) {
    const i64 all = (length / tile.queries) * (length / tile.keys);
    std::cout << std::setw(6) << length << std::setw(22) << length * length << std::setw(13) << tile.queries * tile.keys
              << std::setw(7) << all << std::setw(14) << tiles_seen(length, tile) << '\n';
  }
  return same ? 0 : 1;
}
