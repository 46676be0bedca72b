// Chapter 9. `orrery bench gemm`: how fast each matrix product of a training step is, beside the best the machine does.
//
// A linear map y = x W^T of `rows` rows makes three products, attention of one head six (autograd/ops/matmul.cpp):
//   y = x W^T    NT  [rows, out]        scores = Q K^T         NT  [n, m]      d weights = dy V^T     NT  [n, m]
//   dx = dy W    NN  [rows, in]         y = weights V          NN  [n, d_k]    dQ = d scores K        NN  [n, d_k]
//   dW = dy^T x  TN  [out, in]          dV = weights^T dy      TN  [m, d_k]    dK = d scores^T Q      TN  [m, d_k]
// N and T say of the left and the right factor whether it is transposed. Attention's are measured as products of their
// own, as the composed form makes them, nothing masked; the fused form does them inside one operation, which the
// profile shows.
// Read next: apps/bench_gemm.cpp
#pragma once

#include <ostream>
#include <vector>

#include "apps/bench.h"
#include "apps/bench_configs.h"
#include "core/blas.h"

namespace orrery {

/// C [m, n] = op(A) op(B) with inner size k, `batch` times side by side.
struct Product {
  std::string what;  ///< the first place it is needed at, such as "feed-forward in, y"
  Trans trans;
  i64 m, n, k;
  i64 batch = 1;  ///< heads of a whole batch; 1 for products that are cut into tiles
  i64 calls = 1;  ///< in one step

  double flop() const { return 2.0 * static_cast<double>(m * n * k * batch); }
  bool same_work(const Product& other) const {
    return trans == other.trans && m == other.m && n == other.n && k == other.k && batch == other.batch;
  }
};

/// Every distinct product of a training step, with its number of calls.
std::vector<Product> products_of(const BenchConfig& config);

/// Operations per second of one product in its fastest run, with its factors in cache if they fit.
double measured_speed(const Product& product);
/// The same of the best square product that all threads together reach: a large one in tiles, or one for each thread.
double best_speed();

/// A product and its speed.
struct MeasuredProduct {
  Product product;
  double flop_per_second;
};
/// At most 100 columns; the last line sums up a step.
void print_products(std::ostream& out, const std::string& config, const std::vector<MeasuredProduct>& products,
                    double best);

}  // namespace orrery
