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
#include <algorithm>

#include "apps/measure/bench/micro.h"
#include "apps/program/options.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "autograd/ops/fused/attention/scores.h"
#include "core/kernels/reduce.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

constexpr double seconds_for_a_product = 0.05;
constexpr const char* kind_names[] = {"linear maps", "heads of attention", ""};  // by ProductKind

// For example "NT": the left factor is not transposed, the right one is.
std::string form_of(Trans trans) {
  return std::string(transposes_a(trans) ? "T" : "N") + (transposes_b(trans) ? "T" : "N");
}

// For an operation that works on chunks of rows, since its inner result of `columns` columns is not kept
// (core/kernels/reduce.h). Calls add(rows of a chunk, number of such chunks), and once more for a shorter last one.
template <class Add> void in_chunks(i64 rows, i64 columns, const Add& add) {
  const i64 chunk = row_chunk(rows, columns, f32), left = rows % chunk;
  add(chunk, rows / chunk);
  if (left > 0) add(left, i64{1});
}

// Collects products, and counts equal ones.
class ProductList {
 public:
  void add(Product product) {
    for (Product& known : products_) {
      if (!known.same_work(product)) continue;
      known.calls += product.calls;
      return;
    }
    products_.push_back(std::move(product));
  }
  // y = x W^T, dx = dy W and dW = dy^T x, with x [rows, in], y [rows, out] and W [out, in].
  void linear(const std::string& what, i64 calls, i64 rows, i64 in, i64 out) {
    add({.what = what + ", y", .trans = Trans::b, .m = rows, .n = out, .k = in, .calls = calls});
    add({.what = what + ", dx", .trans = Trans::none, .m = rows, .n = in, .k = out, .calls = calls});
    add({.what = what + ", dW", .trans = Trans::a, .m = out, .n = in, .k = rows, .calls = calls});
  }
  // Head and loss as one operation (autograd/ops/fused/linear/linear_cross_entropy.cpp): several chunks of rows with
  // W^T, or all rows at once.
  void head(i64 rows, i64 in, i64 classes) {
    in_chunks(rows, classes, [&](i64 chunk, i64 chunks) {
      if (chunk == rows) return linear("head", 1, rows, in, classes);
      add({.what = "head, y", .trans = Trans::none, .m = chunk, .n = classes, .k = in, .calls = chunks});
      add({.what = "head, dx", .trans = Trans::none, .m = chunk, .n = in, .k = classes, .calls = chunks});
      add({.what = "head, dW", .trans = Trans::a, .m = in, .n = classes, .k = chunk, .calls = chunks});
    });
  }
  // Of n queries and m keys in each head; Q and y are [n, d_k], K and V [m, d_k].
  void attention(const std::string& what, i64 calls, i64 heads, i64 n, i64 m, i64 d_k) {
    const auto add_heads = [&](const std::string& result, Trans trans, i64 rows, i64 columns, i64 inner) {
      const std::string name = what + ", " + result;
      add({.what = name, .trans = trans, .m = rows, .n = columns, .k = inner, .batch = heads, .calls = calls});
    };
    // The result, its form, and its sizes: rows, columns and inner size.
    add_heads("scores", Trans::b, n, m, d_k);
    add_heads("y", Trans::none, n, d_k, m);
    add_heads("d weights", Trans::b, n, m, d_k);
    add_heads("dV", Trans::a, m, d_k, n);
    add_heads("dQ", Trans::none, n, d_k, m);
    add_heads("dK", Trans::a, m, d_k, n);
  }
  std::vector<Product> products() && { return std::move(products_); }

 private:
  std::vector<Product> products_;
};

Tensor some_numbers(i64 count) {
  Rng rng(1);
  return rand_uniform({count}, -1, 1, rng);
}

// The products of all heads as the fused operation computes them. Scores are transposed, S^T = K Q^T, and their columns
// are padded (autograd/ops/fused/attention/scores.h). The padding does not count as work.
std::function<void()> call_of_heads(const Product& p) {
  const bool scores = p.trans == Trans::b;
  const i64 rows = scores ? p.n : p.m, columns = scores ? padded(p.m) : p.n;
  const Tensor a = some_numbers(p.batch * rows * p.k), b = some_numbers(p.batch * p.k * columns);
  return [=, c = Tensor::empty({p.batch * rows * columns})]() mutable {
    parallel_tasks(p.batch, [&, A = a.data<float>(), B = b.data<float>(), C = c.write<float>()](i64 i) {
      const Mat<const float> right(B + i * p.k * columns, p.k, columns);
      const Mat<float> result(C + i * rows * columns, rows, columns);
      const float* left = A + i * rows * p.k;
      if (p.trans == Trans::a)
        gemm_in_task<float>({left, p.k, rows}, right, result, Trans::a);
      else
        gemm_in_task<float>({left, rows, p.k}, right, result);
    });
  };
}

// Whether it is by our kernels or by OpenBLAS, a product has the same sizes, form and kind.
Entry entry_of(const BenchConfig& config, const Product& p) {
  return {.name = config.name + ": " + p.what + ' ' + form_of(p.trans) + numbers(" %ldx%ldx%ld", p.m, p.n, p.k) +
                  (p.batch > 1 ? numbers(" x %ld", p.batch) : ""),
          .trial =
              [p] {
                return Trial{.own = {.run = product_call(p), .amount = p.flop()},
                             .rival = Work{.run = product_call(p, true), .amount = p.flop()}};
              },
          .calls = static_cast<double>(p.calls),
          .kind = kind_names[static_cast<size_t>(p.kind())]};
}

std::vector<Entry> gemm_entries(const BenchOptions& options) {
  std::vector<Entry> entries;
  for (const BenchConfig& config : bench_configs()) {
    if (options.config != "all" && options.config != config.name) continue;
    for (const Product& p : products_of(config)) entries.push_back(entry_of(config, p));
  }
  return entries;
}

}  // namespace

std::vector<Product> products_of(const BenchConfig& c) {
  ProductList list;
  const i64 source = c.source_tokens(), target = c.target_tokens(), heads = c.batch * c.num_heads;
  // What the layers of encoder and decoder share: self-attention and the feed-forward network.
  const auto layers = [&](const std::string& name, i64 calls, i64 rows, i64 length) {
    if (calls == 0) return;
    list.linear(name + " Q K V", calls, rows, c.d_model, 3 * c.d_model);
    list.attention(name + " attention", calls, heads, length, length, c.d_head());
    list.linear(name + " attention out", calls, rows, c.d_model, c.d_model);
    const auto feed_forward = [&](i64 chunk, i64 chunks) {
      list.linear(name + " feed-forward in", calls * chunks, chunk, c.d_model, c.d_ff);
      list.linear(name + " feed-forward out", calls * chunks, chunk, c.d_ff, c.d_model);
    };
    if (c.is_gpt())
      in_chunks(rows, c.d_ff, feed_forward);  // with GELU it is one operation
    else
      feed_forward(rows, 1);
  };
  layers("encoder", c.num_encoder_layers, source, c.source_length);
  layers("decoder", c.num_decoder_layers, target, c.target_length);
  if (!c.is_gpt()) {
    list.linear("cross-attention Q", c.num_decoder_layers, target, c.d_model, c.d_model);
    list.linear("cross-attention K V", c.num_decoder_layers, source, c.d_model, 2 * c.d_model);
    list.attention("cross-attention", c.num_decoder_layers, heads, c.target_length, c.source_length, c.d_head());
    list.linear("cross-attention out", c.num_decoder_layers, target, c.d_model, c.d_model);
  }
  list.head(target, c.d_model, c.vocab_size);
  for (const i64 rows : {1, 8})
    list.add(
        {.what = "few rows: feed-forward in", .trans = Trans::b, .m = rows, .n = c.d_ff, .k = c.d_model, .calls = 0});
  return std::move(list).products();
}

std::function<void()> product_call(const Product& p, bool by_blas) {
  if (p.kind() == ProductKind::heads && !by_blas) return call_of_heads(p);
  const Tensor a = some_numbers(p.batch * p.m * p.k), b = some_numbers(p.batch * p.k * p.n);
  return [=, c = Tensor::empty({p.batch * p.m * p.n})]() mutable {
    const bool ta = transposes_a(p.trans), tb = transposes_b(p.trans);
    const Mat<const float> A(a.data<float>(), ta ? p.k : p.m, ta ? p.m : p.k);
    const Mat<const float> B(b.data<float>(), tb ? p.n : p.k, tb ? p.k : p.n);
    const Mat<float> C(c.write<float>(), p.m, p.n);
    if (p.kind() == ProductKind::heads)
      return blas_batch<float>(p.batch, {A, p.m * p.k}, {B, p.k * p.n}, {C, p.m * p.n}, p.trans, false);
    if (by_blas) return gemm_by_blas<float>(A, B, C, p.trans);
    gemm<float>(A, B, C, p.trans);
  };
}

double measured_speed(const Product& p, bool by_blas) {
  return p.flop() / fastest_seconds(seconds_for_a_product, product_call(p, by_blas));
}

double best_speed() {
  double best = measured_speed({.what = "in tiles", .trans = Trans::none, .m = 2048, .n = 2048, .k = 2048});
  for (const i64 n : {256, 512, 1024}) {
    const Product each{
        .what = "one for each thread", .trans = Trans::none, .m = n, .n = n, .k = n, .batch = std::max(2, threads())};
    best = std::max(best, measured_speed(each, true));
  }
  return best;
}

MicroBench gemm_bench() {
  return {.name = "gemm",
          .what = "The speed of every matrix product of a step",
          .help =
              "A product of all threads, beside OpenBLAS with threads of its own; best: the share of the best "
              "product of this machine.\nExample:\n  orrery bench gemm --config base --threads 1",
          .entries = gemm_entries,
          .add_options =
              [](CLI::App& command, BenchOptions& options) {
                options.config = "all";
                std::vector<std::string> names = bench_config_names();
                names.insert(names.begin(), options.config);
                add_choice(command, "--config", options.config, names, "Whose products");
              },
          .time = "ms a step",
          .rate = "GF/s",
          .rival = "OpenBLAS",
          .ratio = "times",
          .time_unit = 1e-3,
          .best = best_speed};
}

}  // namespace orrery
