// Chapter 9. `orrery bench gemm`: how fast each matrix product of a training step is, and how fast it could be.
//
// A linear map y = x W^T of `rows` rows makes three products; the attention of one head makes six
// (autograd/ops/matmul.cpp):
//   y = x W^T    NT  [rows, out]        scores = Q K^T         NT  [n, m]      d weights = dy V^T     NT  [n, m]
//   dx = dy W    NN  [rows, in]         y = weights V          NN  [n, d_k]    dQ = d scores K        NN  [n, d_k]
//   dW = dy^T x  TN  [out, in]          dV = weights^T dy      TN  [m, d_k]    dK = d scores^T Q      TN  [m, d_k]
// The two letters stand for the left and the right factor: T if it is transposed, N if not. The linear map to the
// logits may be fused with the loss and work on chunks of rows (autograd/ops/fused/linear/linear_cross_entropy.cpp). It
// then makes its products once for each chunk, uses a transposed copy of W, so that y = x W^T is NN, and computes dW^T
// = x^T dy, which is TN. Each product is measured with the kernel that training uses, and with OpenBLAS:
//   linear maps   core/products/gemm.h; one call of OpenBLAS, shared among its own threads
//   attention     core/products/small_product.h, one head on each thread; one call of OpenBLAS for each head. Nothing
//                 is masked. As in the fused operation, scores and d weights are transposed and padded.
//   few rows      like linear maps. A model that writes token by token makes such products; a training step does not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/measure/bench/configs.h"
#include "core/products/gemm.h"

namespace orrery {

/// What a product is for.
enum class ProductKind { linear, heads, few_rows };

/// C [m, n] = op(A) op(B) with inner size k, for `batch` products side by side.
struct Product {
  std::string what;  ///< the first use of the product, such as "feed-forward in, y"
  Trans trans;
  i64 m, n, k;
  i64 batch = 1;  ///< heads of a whole batch; 1 for products that are cut into tiles
  i64 calls = 1;  ///< in one step

  ProductKind kind() const {
    if (calls == 0) return ProductKind::few_rows;
    return batch > 1 ? ProductKind::heads : ProductKind::linear;
  }
  double flop() const { return 2.0 * static_cast<double>(m * n * k * batch); }
  bool same_work(const Product& other) const {
    return trans == other.trans && m == other.m && n == other.n && k == other.k && batch == other.batch;
  }
};

/// Every distinct product of a training step, with its number of calls; and two with few rows, with 0 calls.
std::vector<Product> products_of(const BenchConfig& config);

/// Makes the product once in each call, with numbers of its own. With `by_blas`, with OpenBLAS.
std::function<void()> product_call(const Product& product, bool by_blas = false);
/// Operations per second of one product in its fastest run, with its factors in the cache if they fit.
double measured_speed(const Product& product, bool by_blas = false);
/// The same for the fastest square products that all threads can do: a large one in tiles, or one on each thread.
double best_speed();

}  // namespace orrery
