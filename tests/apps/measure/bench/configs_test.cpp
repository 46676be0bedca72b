// Chapter 9. Tests of the table of configurations: the sizes of PyTorch's models.
#include "apps/measure/bench/configs.h"

#include <doctest/doctest.h>

#include "nn/models/gpt.h"
#include "nn/models/transformer.h"

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
  Rng rng(1);
  CHECK(nn::Transformer(bench_config(name).transformer(0.1), rng).parameter_count() == expected);
}

// The GPT that other frameworks are measured with, part by part: nn.Embedding for V tokens and T positions, blocks of
// two norms, nn.Linear(d, 3 d), (d, d), (d, ff), (ff, d), a last norm; the head is the embedding.
i64 torch_gpt_parameters(i64 V, i64 d, i64 n, i64 ff, i64 T) {
  const i64 norm = 2 * d, attention = 3 * d * d + 3 * d + d * d + d, feed_forward = d * ff + ff + ff * d + d;
  return V * d + T * d + n * (attention + feed_forward + 2 * norm) + norm;
}

}  // namespace

TEST_CASE("the small configurations have as many parameters as PyTorch's models") {
  CHECK(torch_parameters(16, 64, 2, 2, 128) == 170768);
  check_parameters("toy", torch_parameters(16, 64, 2, 2, 128));
  check_parameters("tiny-mt", torch_parameters(10000, 128, 4, 4, 256));
}

TEST_CASE("slow: the large configurations have as many parameters as PyTorch's models") {
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

TEST_CASE("batches have the shapes that other frameworks are measured with") {
  const BenchConfig& annotated = bench_config("annotated");
  CHECK(annotated.source_tokens() == 80 * 10);
  CHECK(annotated.target_tokens() == 80 * 9);
  CHECK(annotated.tokens_per_step() == 80 * 19);
  CHECK(bench_config("base").tokens_per_step() == 32 * 64);
  CHECK(bench_config("base").d_head() == 64);
  CHECK(bench_config("gpt-mid").tokens_per_step() == 16 * 256);
  CHECK(bench_config("long").tokens_per_step() == 4096);
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

TEST_CASE("every encoder-decoder is torch.nn.Transformer: final norms, biases, dropout everywhere") {
  for (const BenchConfig& config : bench_configs()) {
    CAPTURE(config.name);
    if (config.is_gpt()) {
      CHECK_THROWS_AS(config.transformer(0.25), Error);
      continue;
    }
    const nn::TransformerConfig model = config.transformer(0.25);
    CHECK_NOTHROW(model.validate());
    CHECK(model.final_norm);
    CHECK_FALSE(model.layer.norm_first);
    CHECK_FALSE(model.share_embeddings);
    CHECK(model.layer.bias);
    CHECK(model.pad_id == 0);
    CHECK(model.layers().dropout == 0.25);
    CHECK(model.layers().attention_dropout == 0.25);
    CHECK(model.layers().activation_dropout == 0.25);
  }
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
