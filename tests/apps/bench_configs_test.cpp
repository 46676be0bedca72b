// Chapter 9. Tests of the table of configurations: the sizes of PyTorch's models.
#include "apps/bench_configs.h"

#include <doctest/doctest.h>

#include "nn/transformer.h"

using namespace orrery;

namespace {

// nn.Transformer(d, h, ne, nd, ff) with two nn.Embedding(V, d) and nn.Linear(d, V), part by part.
i64 torch_parameters(i64 V, i64 d, i64 ne, i64 nd, i64 ff) {
  const i64 norm = 2 * d, attention = 3 * d * d + 3 * d + d * d + d, feed_forward = d * ff + ff + ff * d + d;
  const i64 encoder = ne * (attention + feed_forward + 2 * norm) + norm;
  const i64 decoder = nd * (2 * attention + feed_forward + 3 * norm) + norm;
  return 2 * V * d + encoder + decoder + d * V + V;
}

void check_parameters(const std::string& name, i64 wanted) {
  CAPTURE(name);
  Rng rng(1);
  CHECK(nn::Transformer(bench_config(name).model(0.1), rng).parameter_count() == wanted);
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

TEST_CASE("batches have the shapes that other frameworks are measured with") {
  const BenchConfig& annotated = bench_config("annotated");
  CHECK(annotated.source_tokens() == 80 * 10);
  CHECK(annotated.target_tokens() == 80 * 9);
  CHECK(annotated.tokens_per_step() == 80 * 19);
  CHECK(bench_config("base").tokens_per_step() == 32 * 64);
  CHECK(bench_config("base").d_head() == 64);
}

TEST_CASE("every model is torch.nn.Transformer: final norms, biases, dropout everywhere") {
  for (const BenchConfig& config : bench_configs()) {
    const nn::TransformerConfig model = config.model(0.25);
    CAPTURE(config.name);
    CHECK_NOTHROW(model.validate());
    CHECK(model.final_norm);
    CHECK_FALSE(model.norm_first);
    CHECK_FALSE(model.share_embeddings);
    CHECK(model.bias);
    CHECK(model.pad_id == 0);
    CHECK(model.layer().dropout == 0.25);
    CHECK(model.layer().attention_dropout == 0.25);
    CHECK(model.layer().activation_dropout == 0.25);
  }
}

TEST_CASE("a name that is not in the table is an error that names the others") {
  CHECK_THROWS_WITH_AS(bench_config("gigantic"),
                       "bench: no configuration is called 'gigantic'; there are: toy, annotated, tiny-mt, base", Error);
}
