// Chapter 3. The part of a proof about padding: whatever stands behind the lengths changes no bit.
//
// The cotangent is 0 in padded rows of the output, so that the loss depends on real rows only. What is compared with:
// zeros behind the lengths.
// Serves: autograd/check/proof.h
#include <algorithm>
#include <limits>
#include <sstream>

#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"

namespace orrery::parts {
namespace {

// The padded rows of x [B, T, ...], or row 0 of a table, which has no lengths. They share the memory of x.
std::vector<Tensor> padded_rows(const Tensor& x, const std::vector<i32>& lengths) {
  if (lengths.empty()) return {x.rows(0, 1)};
  check(x.rank() >= 2 && x.size(0) == std::ssize(lengths), "padding", lengths.size(), " lengths do not fit ",
        x.shape());
  const i64 B = x.size(0), T = x.size(1);
  const Tensor positions = x.reshape({B * T, x.count() / std::max<i64>(1, B * T)});
  std::vector<Tensor> rows;
  for (i64 b = 0; b < B; ++b) rows.push_back(positions.rows(b * T + lengths[static_cast<size_t>(b)], (b + 1) * T));
  return rows;
}

void fill_padding(const Tensor& x, const std::vector<i32>& lengths, double value) {
  for (Tensor& rows : padded_rows(x, lengths)) fill(rows, value);
}

// x with 0 in the padded rows of the output.
Tensor real_rows(const Tensor& x, const Padding& padding) {
  Tensor real = x.clone();
  if (!padding.output.empty()) fill_padding(real, padding.output, 0);
  return real;
}

size_t leaf_number(const Checkable& f, const std::string& name) {
  const auto leaf =
      std::find_if(f.leaves.begin(), f.leaves.end(), [&](const NamedParameter& l) { return l.name == name; });
  check(leaf != f.leaves.end(), "padding", "there is no leaf ", name);
  return static_cast<size_t>(leaf - f.leaves.begin());
}

// The gradients of all leaves, and the real rows of the output.
std::vector<Tensor> pass_with(Checkable& f, double behind, u64 seed) {
  for (const Padding::Place& place : f.padding.places)
    fill_padding(f.leaves[leaf_number(f, place.leaf)].value.mutable_value(), place.lengths, behind);
  const Variable y = f.output();
  std::vector<Tensor> all = gradients_of(f, real_rows(cotangent(y.shape(), y.dtype(), seed), f.padding));
  all.push_back(real_rows(y.value(), f.padding));
  return all;
}

}  // namespace

ProofPart prove_padding(const Sample& sample, u64 seed) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = built(sample, dtype, seed);
    if (f.padding.places.empty()) return {};
    const double largest = dtype == f32 ? 1e38 : 1e308, square = dtype == f32 ? 1e19 : 1e154;
    const std::vector<Tensor> expected = pass_with(f, 0, seed);
    for (const Padding::Place& place : f.padding.places)
      for (const Tensor& rows : padded_rows(expected[leaf_number(f, place.leaf)], place.lengths))
        if (!(largest_magnitude({rows}) == 0))
          return part("padding", "the padding of " + place.leaf + " has a gradient");
    for (const double behind : {nan, infinity, -infinity, largest, -largest, square, 1e12, -1e10, 1.0}) {
      const std::string where = first_difference(f.leaves, expected, pass_with(f, behind, seed));
      if (where.empty()) continue;
      std::ostringstream text;
      text << behind << " behind the padding lengths gives other bits for " << where;
      return part("padding", text.str());
    }
  }
  return part("padding", "", "NaN, infinity and huge numbers behind the padding lengths change no bit");
}

}  // namespace orrery::parts
