// Chapter 7. Rules that the fields of configurations share, and counting a model without building it.
#include "nn/models/fields.h"

#include <doctest/doctest.h>

#include "nn/layers/linear.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::nn;

TEST_CASE("a rule names the operation, the field and its value") {
  CHECK_NOTHROW(config_json::check_positive("model", "d_ff", 1));
  CHECK(small::error_of([] { config_json::check_positive("model", "d_ff", 0); }) ==
        "model: d_ff must be positive, not 0");
  CHECK_NOTHROW(config_json::check_probability("model", "dropout", 0));
  for (const double p : {-0.1, 1.0, double{NAN}})
    CHECK(small::error_of([&] {
            config_json::check_probability("model", "dropout", p);
          }).starts_with("model: dropout must be in [0, 1), not "));
}

TEST_CASE("sizes that no model has are refused before anything is multiplied") {
  CHECK(small::error_of([] { config_json::check_positive("model", "d_ff", i64{1} << 31); }) ==
        "model: d_ff must be below 2^31, not 2147483648");
  TransformerConfig config{.src_vocab_size = 9, .tgt_vocab_size = 9};
  config.layer.num_heads = config.layer.d_k = config.layer.d_v = std::numeric_limits<i32>::max();
  CHECK(small::contains(small::error_of([&] { config.validate(); }), "must have fewer than 2^32 columns"));
  CHECK(small::contains(small::error_of([&] { config.parameter_count(); }), "must have fewer than 2^32 columns"));
}

TEST_CASE("a model is counted by what its constructor makes, each repeated part as often as it is repeated") {
  struct Config {
    i64 rows = 1, narrow = 1, wide = 1;
    bool tied = false;
  };
  struct Model : Module {
    std::vector<Linear> layers;
    Variable first, second;
    Model(const Config& config, Rng& rng) {
      for (i64 i = 0; i < config.narrow; ++i) layers.emplace_back(2, config.rows, rng);
      for (i64 i = 0; i < config.wide; ++i) layers.emplace_back(5, config.rows, rng, LinearOptions{.bias = false});
      first = parameter(initial_embedding(config.rows, 7, rng));
      second = config.tied ? first : parameter(initial_embedding(config.rows, 7, rng));
    }
    void visit(Visitor& v) override {
      v("layers", layers);
      v("first", first);
      v("second", second);
    }
  };
  const auto count = [](const Config& config) {
    return config_json::counted<Model>(config, {&Config::narrow, &Config::wide});
  };
  CHECK(count({.rows = 3}) == 3 * (3 + 5 + 14));
  CHECK(count({.rows = 3, .narrow = 4, .wide = 2}) == 3 * (4 * 3 + 2 * 5 + 14));
  CHECK(count({.rows = 3, .narrow = 1'000'000'000, .tied = true}) == 3 * (3'000'000'000 + 5 + 7));
  CHECK(count({.rows = i64{1} << 40}) == (i64{1} << 40) * (3 + 5 + 14));
  CHECK(count({.rows = i64{1} << 50, .narrow = 1 << 30}) == i64{1} << 53);
}

TEST_CASE("a count is exact up to 2^53, and 2^53 beyond") {
  CHECK(config_json::whole(174'604'259'328.0) == 174'604'259'328);
  CHECK(config_json::whole(0x1p53) == (i64{1} << 53));
  CHECK(config_json::whole(1e300) == (i64{1} << 53));
}
