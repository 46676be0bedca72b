// Chapter 9. The products of a step, measured one by one.
#include "apps/measure/bench/gemm.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"
#include "autograd/ops/fused/attention/scores.h"
#include "core/kernels/reduce.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

constexpr size_t product_width = 28;
constexpr double seconds_for_a_product = 0.05;

// For example "NT": the left factor is not transposed, the right one is.
std::string form_of(Trans trans) {
  return std::string(transposes_a(trans) ? "T" : "N") + (transposes_b(trans) ? "T" : "N");
}

// The number of parts that are computed side by side.
i64 tiles_of(const Product& p) { return p.kind() == ProductKind::heads ? p.batch : gemm_tiles(p.m, p.n, p.k, p.trans); }

// For an operation that works on chunks of rows, since its inner result of `columns` columns is not kept
// (core/kernels/reduce.h). Calls add(rows of a chunk, number of such chunks), and once more for a shorter last one.
template <class Add>
void in_chunks(i64 rows, i64 columns, const Add& add) {
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
double speed_of_heads(const Product& p) {
  const bool scores = p.trans == Trans::b;
  const i64 rows = scores ? p.n : p.m, columns = scores ? padded(p.m) : p.n;
  const Tensor a = some_numbers(p.batch * rows * p.k), b = some_numbers(p.batch * p.k * columns);
  Tensor c = Tensor::empty({p.batch * rows * columns});
  const float *A = a.data<float>(), *B = b.data<float>();
  float* C = c.write<float>();
  const auto once = [&] {
    parallel_tasks(p.batch, [&](i64 i) {
      const Mat<const float> right(B + i * p.k * columns, p.k, columns);
      const Mat<float> result(C + i * rows * columns, rows, columns);
      const float* left = A + i * rows * p.k;
      if (p.trans == Trans::a)
        gemm_in_task<float>({left, p.k, rows}, right, result, Trans::a);
      else
        gemm_in_task<float>({left, rows, p.k}, right, result);
    });
  };
  return p.flop() / fastest_seconds(seconds_for_a_product, once);
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

double measured_speed(const Product& p, bool by_blas) {
  if (p.kind() == ProductKind::heads && !by_blas) return speed_of_heads(p);
  const Tensor a = some_numbers(p.batch * p.m * p.k), b = some_numbers(p.batch * p.k * p.n);
  Tensor c = Tensor::empty({p.batch * p.m * p.n});
  const bool ta = transposes_a(p.trans), tb = transposes_b(p.trans);
  const Mat<const float> A(a.data<float>(), ta ? p.k : p.m, ta ? p.m : p.k);
  const Mat<const float> B(b.data<float>(), tb ? p.n : p.k, tb ? p.k : p.n);
  const Mat<float> C(c.write<float>(), p.m, p.n);
  const auto once = [&] {
    if (p.kind() == ProductKind::heads)
      return gemm_batch<float>(p.batch, {A, p.m * p.k}, {B, p.k * p.n}, {C, p.m * p.n}, p.trans);
    if (by_blas) return gemm_by_blas<float>(A, B, C, p.trans);
    gemm<float>(A, B, C, p.trans);
  };
  return p.flop() / fastest_seconds(seconds_for_a_product, once);
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

double tiled_against_blas(const std::vector<MeasuredProduct>& products) {
  double logarithms = 0, count = 0;
  for (const auto& [p, speed, by_blas] : products) {
    if (p.kind() == ProductKind::linear) {
      logarithms += std::log(speed / by_blas);
      ++count;
    }
  }
  return std::exp(logarithms / count);
}

void print_against_blas(std::ostream& out, const std::vector<MeasuredProduct>& products) {
  const auto print_slowest = [&](const std::string& kinds, ProductKind kind) {
    const MeasuredProduct* slowest = nullptr;
    for (const MeasuredProduct& each : products)
      if (each.product.kind() == kind && (!slowest || each.against_blas() < slowest->against_blas())) slowest = &each;
    if (!slowest) return;
    out << "  the slowest of " << kinds << numbers(": %.2f, ", slowest->against_blas()) << slowest->product.what
        << '\n';
  };
  out << numbers("our tiles against OpenBLAS's own threads: %.3f times the speed (geometric mean)\n",
                 tiled_against_blas(products));
  print_slowest("these linear maps", ProductKind::linear);
  print_slowest("all batches of heads", ProductKind::heads);
}

void print_products(std::ostream& out, const std::string& config, const std::vector<MeasuredProduct>& products,
                    double best) {
  out << fitted(config, product_width) << " form     m     n     k batch tiles calls ms a step  GF/s  best OpenBLAS\n";
  double seconds = 0, flop = 0;
  for (const auto& [p, speed, by_blas] : products) {
    const double work = p.flop() * static_cast<double>(p.calls);
    out << fitted(p.what, product_width) << "   " << form_of(p.trans)
        << numbers("%6ld%6ld%6ld%6ld%6ld%6ld%10.3f%6.0f%5.0f %%%8.0f\n", p.m, p.n, p.k, p.batch, tiles_of(p), p.calls,
                   1e3 * work / speed, 1e-9 * speed, 1e2 * speed / best, 1e-9 * by_blas);
    seconds += work / speed;
    flop += work;
  }
  out << fitted("all products of a step", product_width)
      << numbers("%51.3f%6.0f%5.0f %%\n", 1e3 * seconds, 1e-9 * flop / seconds, 1e2 * flop / seconds / best);
  print_against_blas(out, products);
}

int bench_gemm(const BenchOptions& options) {
  announce(options);
  const double best = best_speed();
  nlohmann::ordered_json configs = nlohmann::ordered_json::array();
  std::cout << numbers("the best product of this machine on all threads: %.0f GF/s\n", 1e-9 * best) << std::flush;
  std::vector<MeasuredProduct> all;
  for (const BenchConfig& config : bench_configs()) {
    if (options.config != "all" && options.config != config.name) continue;
    std::vector<MeasuredProduct> measured;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Product& p : products_of(config)) {
      measured.push_back({p, measured_speed(p), measured_speed(p, true)});
      rows.push_back({{"what", p.what},
                      {"form", form_of(p.trans)},
                      {"m", p.m},
                      {"n", p.n},
                      {"k", p.k},
                      {"batch", p.batch},
                      {"tiles", tiles_of(p)},
                      {"calls", p.calls},
                      {"gflop_per_second", 1e-9 * measured.back().flop_per_second},
                      {"gflop_per_second_of_openblas", 1e-9 * measured.back().by_blas},
                      {"share_of_best", measured.back().flop_per_second / best}});
    }
    std::cout << '\n';
    print_products(std::cout, config.name, measured, best);
    std::cout << std::flush;
    for (MeasuredProduct each : measured) {
      each.product.what = config.name + ": " + each.product.what;
      all.push_back(each);
    }
    configs.push_back(
        {{"config", config.name}, {"tiles_against_openblas", tiled_against_blas(measured)}, {"products", rows}});
  }
  if (options.config == "all") {
    std::cout << "\nall models\n";
    print_against_blas(std::cout, all);
  }
  write_results(options, "gemm",
                {{"best_gflop_per_second", 1e-9 * best},
                 {"tiles_against_openblas", tiled_against_blas(all)},
                 {"configs", configs}});
  return done;
}

}  // namespace orrery
