// Chapter 9. Tests of `orrery bench gemm`: the list of products is what a training step multiplies.
#include "apps/measure/bench/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace orrery;

namespace {

// How often a step computes C [m, n] = op(A) op(B) with inner size k, `batch` times side by side.
i64 calls_of(const std::vector<Product>& products, Trans trans, i64 m, i64 n, i64 k, i64 batch = 1) {
  const Product wanted{.what = "", .trans = trans, .m = m, .n = n, .k = k, .batch = batch};
  for (const Product& p : products)
    if (p.same_work(wanted)) return p.calls;
  return 0;
}

double flop_of(const std::vector<Product>& products) {
  double sum = 0;
  for (const Product& p : products) sum += p.flop() * static_cast<double>(p.calls);
  return sum;
}

}  // namespace

TEST_CASE("the toy's products are those of its layers") {
  const std::vector<Product> products = products_of(bench_config("toy"));
  CHECK(calls_of(products, Trans::b, 768, 192, 64) == 4);            // Q K V of 2 + 2 layers
  CHECK(calls_of(products, Trans::none, 768, 64, 192) == 4);         // back to x
  CHECK(calls_of(products, Trans::a, 192, 64, 768) == 4);            // and to the weight
  CHECK(calls_of(products, Trans::b, 768, 64, 64) == 4 + 2 + 2);     // after attention, and Q of cross-attention
  CHECK(calls_of(products, Trans::b, 768, 128, 64) == 4 + 2);        // into the feed-forward network; K V
  CHECK(calls_of(products, Trans::b, 768, 16, 64) == 1);             // the head
  CHECK(calls_of(products, Trans::b, 12, 12, 16, 256) == 2 * 6);     // scores and d weights of 6 attentions
  CHECK(calls_of(products, Trans::a, 12, 16, 12, 256) == 2 * 6);     // dV and dK
  CHECK(calls_of(products, Trans::none, 12, 16, 12, 256) == 2 * 6);  // y and dQ
}

TEST_CASE("a head of many classes makes its products for chunks of rows") {
  const std::vector<Product> products = products_of(bench_config("tiny-mt"));  // 2,048 tokens of 10,000 classes
  CHECK(calls_of(products, Trans::none, 256, 10000, 128) == 8);
  CHECK(calls_of(products, Trans::none, 256, 128, 10000) == 8);
  CHECK(calls_of(products, Trans::a, 128, 10000, 256) == 8);
  CHECK(calls_of(products, Trans::b, 2048, 10000, 128) == 0);
}

TEST_CASE("every configuration's products are distinct and add up to three times those of its forward pass") {
  for (const BenchConfig& c : bench_configs()) {
    CAPTURE(c.name);
    const std::vector<Product> products = products_of(c);
    for (const Product& p : products)
      CHECK(std::count_if(products.begin(), products.end(), [&](const Product& q) { return q.same_work(p); }) == 1);
    const i64 d = c.d_model, S = c.source_tokens(), T = c.target_tokens(), n = c.source_length, m = c.target_length;
    const i64 encoder = c.num_encoder_layers * (S * (4 * d * d + 2 * d * c.d_ff) + 2 * c.batch * n * n * d);
    const i64 cross = c.is_gpt() ? 0 : T * 2 * d * d + S * 2 * d * d + 2 * c.batch * m * n * d;
    const i64 decoder = c.num_decoder_layers * (T * (4 * d * d + 2 * d * c.d_ff) + 2 * c.batch * m * m * d + cross);
    CHECK(flop_of(products) == 3.0 * 2.0 * static_cast<double>(encoder + decoder + T * d * c.vocab_size));
  }
}

namespace {

// C [5, 7] with inner size 3, in tiles, for four heads, and as a product of few rows.
Product in_tiles(Trans trans) { return {.what = "one", .trans = trans, .m = 5, .n = 7, .k = 3}; }
Product of_heads(Trans trans) { return {.what = "many", .trans = trans, .m = 5, .n = 7, .k = 3, .batch = 4}; }
Product few_rows() { return {.what = "few rows", .trans = Trans::b, .m = 5, .n = 7, .k = 3, .calls = 0}; }

}  // namespace

TEST_CASE("a product of each form can be measured with the kernel that training runs, and with OpenBLAS") {
  for (const bool by_blas : {false, true}) {
    for (const Trans trans : {Trans::none, Trans::b, Trans::a}) {
      CHECK(measured_speed(in_tiles(trans), by_blas) > 0);
      CHECK(measured_speed(of_heads(trans), by_blas) > 0);
    }
    CHECK(measured_speed(few_rows(), by_blas) > 0);
  }
  CHECK(in_tiles(Trans::b).kind() == ProductKind::linear);
  CHECK(of_heads(Trans::b).kind() == ProductKind::heads);
  CHECK(few_rows().kind() == ProductKind::few_rows);
}
