// Chapter 6. PositionalEncoding: the table of sines and cosines, and its rows added to a sequence.
#include "nn/positions/positional_encoding.h"

#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "nn/init.h"

namespace orrery::nn {

Tensor sinusoidal_table(i64 count, i64 d_model) {
  Tensor table = Tensor::empty({count, d_model}, f64);
  double* row = table.write<double>();
  for (i64 position = 0; position < count; ++position, row += d_model) {
    for (i64 column = 0; column < d_model; ++column) {
      const i64 two_i = column - column % 2;
      const double angle =
          static_cast<double>(position) / std::pow(10000.0, static_cast<double>(two_i) / static_cast<double>(d_model));
      row[column] = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table;
}

PositionalEncoding::PositionalEncoding(Positions kind, i64 max_len, i64 d_model, Rng& rng) {
  if (kind == Positions::learned)
    weight = parameter(initial_embedding(max_len, d_model, rng));
  else
    table = rng.draws_shapes() ? Tensor::outline({max_len, d_model}, f64) : sinusoidal_table(max_len, d_model);
}

Variable PositionalEncoding::first_rows(i64 T, Dtype dtype) const {
  const i64 max_len = weight.defined() ? weight.size(0) : table.size(0);
  check(T <= max_len, "positional_encoding", "a sequence has ", T, " positions, but max_len is ", max_len);
  return weight.defined() ? weight : constant(table.rows(0, T).to(dtype));
}

Variable PositionalEncoding::operator()(const Variable& x) const {
  return tape::explained("positional_encoding", std::array{&x}, [&] {
    const i64 T = dims<3>(x.value(), "positional_encoding")[1];
    return x + slice(first_rows(T, x.dtype()), 0, 0, T);
  });
}

}  // namespace orrery::nn
