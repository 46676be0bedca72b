// Chapter 9. Tests of what is measured: the table of configurations with the sizes of PyTorch's models, the training
// step, and the list of products, which is what such a step multiplies.

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>

#include "apps/measure/bench/micro.h"
#include "apps/measure/bench/training.h"
#include "core/machine/parallel.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// nn.Transformer(d, h, ne, nd, ff) with two nn.Embedding(V, d) and nn.Linear(d, V), part by part.
i64 torch_parameters(i64 V, i64 d, i64 ne, i64 nd, i64 ff) {
  const i64 norm = 2 * d, attention = 3 * d * d + 3 * d + d * d + d, feed_forward = d * ff + ff + ff * d + d;
  const i64 encoder = ne * (attention + feed_forward + 2 * norm) + norm;
  const i64 decoder = nd * (2 * attention + feed_forward + 3 * norm) + norm;
  return 2 * V * d + encoder + decoder + d * V + V;
}

void check_parameters(const std::string& name, i64 expected) {
  CAPTURE(name);
  CHECK(bench_config(name).transformer(0.1).parameter_count() == expected);
}

// The GPT that other frameworks are measured with, part by part: nn.Embedding for V tokens and T positions, blocks of
// two norms, nn.Linear(d, 3 d), (d, d), (d, ff), (ff, d), a last norm; the head is the embedding.
i64 torch_gpt_parameters(i64 V, i64 d, i64 n, i64 ff, i64 T) {
  const i64 norm = 2 * d, attention = 3 * d * d + 3 * d + d * d + d, feed_forward = d * ff + ff + ff * d + d;
  return V * d + T * d + n * (attention + feed_forward + 2 * norm) + norm;
}

}  // namespace

TEST_CASE("configurations have as many parameters as PyTorch's models") {
  CHECK(torch_parameters(16, 64, 2, 2, 128) == 170768);
  check_parameters("toy", torch_parameters(16, 64, 2, 2, 128));
  check_parameters("tiny-mt", torch_parameters(10000, 128, 4, 4, 256));
  check_parameters("annotated", torch_parameters(11, 512, 2, 2, 2048));
  check_parameters("base", torch_parameters(8000, 512, 6, 6, 2048));
}

TEST_CASE("GPTs have as many parameters as PyTorch's models") {
  const auto count = [](const std::string& name) { return bench_config(name).gpt(0).parameter_count(); };
  CHECK(count("nanogpt") == torch_gpt_parameters(65, 128, 4, 512, 64));
  CHECK(count("gpt-mid") == torch_gpt_parameters(65, 384, 6, 1536, 256));
  CHECK(count("gpt2") == torch_gpt_parameters(50257, 768, 12, 3072, 64));
  CHECK(count("long") == torch_gpt_parameters(256, 256, 2, 1024, 4096));
  Rng rng(1);
  CHECK(nn::Gpt(bench_config("nanogpt").gpt(0), rng).parameter_count() == count("nanogpt"));
}

TEST_CASE("a changed configuration keeps its proportions, and its name tells what was changed") {
  const BenchConfig& base = bench_config("base");
  CHECK(scaled(base, 0, 0, 0).name == "base");
  const BenchConfig small = scaled(base, 8, 64, 256);
  CHECK(small.name == "base[B=8,T=64,d_model=256]");
  CHECK(small.tokens_per_step() == 8 * 128);
  CHECK(small.d_ff == 1024);
  const BenchConfig gpt = scaled(bench_config("nanogpt"), 0, 32, 0);
  CHECK(gpt.name == "nanogpt[T=32]");
  CHECK(gpt.source_length == 0);
  CHECK_THROWS_WITH_AS(scaled(base, 0, 0, 100), "--width: must be a multiple of 8, the heads of base, not 100",
                       std::runtime_error);
}

TEST_CASE("every GPT has biases, exact GELU, a tied head, a position for every token; dropout where PyTorch's has it") {
  for (const BenchConfig& config : bench_configs()) {
    CAPTURE(config.name);
    CHECK(config.dropout == (config.is_gpt() && config.name != "gpt-mid" ? 0.0 : 0.1));
    CHECK(config.dropout_or_own(-1) == config.dropout);
    CHECK(config.dropout_or_own(0.25) == 0.25);
    if (!config.is_gpt()) {
      CHECK_THROWS_AS(config.gpt(0.25), Error);
      continue;
    }
    const nn::GptConfig model = config.gpt(0.25);
    CHECK_NOTHROW(model.validate());
    CHECK(model.layer.bias);
    CHECK(model.tied);
    CHECK(model.layer.activation == nn::Activation::gelu);
    CHECK(model.max_len == config.target_length);
    CHECK(model.layers().dropout == 0.25);
    CHECK(model.layers().attention_dropout == 0.25);
    CHECK(model.layers().activation_dropout == 0);
  }
}

TEST_CASE("a name that is not in the table is an error that names the others") {
  CHECK_THROWS_WITH_AS(
      bench_config("gigantic"),
      "bench: no configuration is called 'gigantic'; there are: toy, annotated, tiny-mt, base, nanogpt, "
      "gpt-mid, gpt2, long",
      Error);
}

namespace {

std::vector<double> losses(double dropout, i64 seed, int steps, const char* config = "toy") {
  BenchTraining training(bench_config(config), dropout, seed);
  std::vector<double> result;
  for (int i = 0; i < steps; ++i) result.push_back(training.step());
  return result;
}

}  // namespace

TEST_CASE("the loss starts near that of a guess and falls") {
  const std::vector<double> loss = losses(0.0, 1, 8);
  CHECK(loss.front() > std::log(13.0));  // 13 words, all as likely
  CHECK(loss.front() < 4);
  CHECK(loss.back() < loss.front());
}

TEST_CASE("sequences of one or two tokens keep a word each, and their neighbours") {
  for (const i64 length : {1, 2}) {
    BenchConfig config = bench_config("toy");
    config.source_length = config.target_length = length;
    BenchTraining training(config, 0.0, 1);
    const double loss = training.step();
    CHECK(loss > std::log(13.0));
    CHECK(loss < 4);
  }
}

TEST_CASE("seed and dropout count, threads do not") {
  const auto with_threads = [](int count) {
    const small::Threads wanted(count);
    return losses(0.1, 1, 3);
  };
  const std::vector<double> one = with_threads(1);
  CHECK(with_threads(2) == one);
  CHECK(losses(0.1, 2, 3) != one);
  CHECK(losses(0.2, 1, 3) != one);
}

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
