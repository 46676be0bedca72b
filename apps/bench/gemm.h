// Chapter 9. `orrery bench gemm`: how fast each matrix product of a training step is, beside the best the machine does.
//
// A linear map y = x W^T of `rows` rows makes three products, attention of one head six (autograd/ops/matmul.cpp):
//   y = x W^T    NT  [rows, out]        scores = Q K^T         NT  [n, m]      d weights = dy V^T     NT  [n, m]
//   dx = dy W    NN  [rows, in]         y = weights V          NN  [n, d_k]    dQ = d scores K        NN  [n, d_k]
//   dW = dy^T x  TN  [out, in]          dV = weights^T dy      TN  [m, d_k]    dK = d scores^T Q      TN  [m, d_k]
// N and T say of the left and the right factor whether it is transposed. A head that works on chunks of rows (autograd/
// ops/linear_cross_entropy.cpp) makes three products for each, with W^T and dW^T = x^T dy. Each is measured with the
// kernel that training runs, beside OpenBLAS:
//   linear maps   core/products/blas.h, in tiles             beside one call of OpenBLAS, shared among its own threads
//   attention     core/products/small_product.h, a head      beside one call of OpenBLAS for each head; nothing is masked, and
//                 a thread                           K^T and V^T lie as rows, as the fused operation lays Q^T and dO^T
//   few rows      core/products/thin_product.h               beside one call of OpenBLAS: what a model that writes token by
//                                                    token does; no part of a training step
// Serves: core/machine/parallel.h
#pragma once

#include <ostream>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/configs.h"
#include "core/products/blas.h"

namespace orrery {

/// What computes a product.
enum class ProductKernel { tiles, heads, thin };

/// C [m, n] = op(A) op(B) with inner size k, `batch` times side by side.
struct Product {
  std::string what;  ///< the first place it is needed at, such as "feed-forward in, y"
  Trans trans;
  i64 m, n, k;
  i64 batch = 1;  ///< heads of a whole batch; 1 for products that are cut into tiles
  i64 calls = 1;  ///< in one step

  ProductKernel kernel() const {
    return calls == 0 ? ProductKernel::thin : batch > 1 ? ProductKernel::heads : ProductKernel::tiles;
  }
  double flop() const { return 2.0 * static_cast<double>(m * n * k * batch); }
  bool same_work(const Product& other) const {
    return trans == other.trans && m == other.m && n == other.n && k == other.k && batch == other.batch;
  }
};

/// Every distinct product of a training step, with its number of calls; and two with few rows, not called at all.
std::vector<Product> products_of(const BenchConfig& config);

/// Operations per second of one product in its fastest run, with its factors in cache if they fit; with `by_blas` that
/// of OpenBLAS.
double measured_speed(const Product& product, bool by_blas = false);
/// The same of the best square product that all threads together reach: a large one in tiles, or one for each thread.
double best_speed();

/// A product and its speed.
struct MeasuredProduct {
  Product product;
  double flop_per_second, by_blas;
};
/// The geometric mean of our speeds over OpenBLAS's, of products that are cut into tiles.
double grid_against_blas(const std::vector<MeasuredProduct>& products);
/// At most 100 columns; the last lines sum up a step.
void print_products(std::ostream& out, const std::string& config, const std::vector<MeasuredProduct>& products,
                    double best);

}  // namespace orrery
