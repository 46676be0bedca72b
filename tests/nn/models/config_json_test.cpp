// Chapter 7. Configurations as JSON text, for one of the test's own; rules that fields share; counting a model without
// building it.
#include "nn/models/config_json.h"

#include <doctest/doctest.h>

#include "nn/layers/linear.h"
#include "nn/models/fields.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"

namespace orrery::nn {

struct ToyConfig {
  i64 count = 3;
  double rate = 0.5;
  std::optional<double> maybe = 0.75;
  bool on = false;
  Activation activation = Activation::gelu;
  void validate() const { check(count != 13, "toy config", "count must not be 13"); }
  friend bool operator==(const ToyConfig&, const ToyConfig&) = default;
};

template <class Config, class Field> static void for_each_field(Config& config, Field&& field) {
  field("count", config.count);
  field("rate", config.rate);
  field("maybe", config.maybe);
  field("on", config.on);
  field("activation", config.activation);
}

}  // namespace orrery::nn

using namespace orrery;
using namespace orrery::nn;

namespace {

ToyConfig read(const std::string& text) { return nn::config_json::config_of<ToyConfig>(text, "toy config"); }

void check_refused(const std::string& text, const std::string& message) {
  CHECK_THROWS_WITH_AS(read(text), ("toy config: " + message).c_str(), Error);
}

}  // namespace

TEST_CASE("a configuration goes through text unchanged") {
  const ToyConfig config{.count = -1, .rate = 0.1, .maybe = 0.25, .on = true, .activation = nn::Activation::gelu_tanh};
  CHECK(nn::config_json::text_of(config) ==
        R"({"count":-1,"rate":0.1,"maybe":0.25,"on":true,"activation":"gelu_tanh"})");
  CHECK(read(nn::config_json::text_of(config)) == config);
  CHECK(read(nn::config_json::text_of(ToyConfig{})) == ToyConfig{});
}

TEST_CASE("absent fields keep their defaults, and null means that there is no value") {
  CHECK(read("{}") == ToyConfig{});
  CHECK(read(R"({"maybe": null, "count": 4})") == ToyConfig{.count = 4, .maybe = {}});
}

TEST_CASE("errors name the configuration and the field") {
  check_refused("null", "is not a JSON object");
  check_refused(R"({"count": 1.5})", "count must be a whole number below 2^31, not 1.5");
  check_refused(R"({"rate": "a"})", "rate must be a number, not \"a\"");
  check_refused(R"({"maybe": true})", "maybe must be a number, not true");
  check_refused(R"({"on": 1})", "on must be true or false, not 1");
  check_refused(R"({"activation": "tanh"})", "activation cannot be \"tanh\"");
  check_refused(R"({"counts": 1})", "there is no field \"counts\"");
  check_refused(R"({"count": 13})", "count must not be 13");
}

TEST_CASE("with Fields::all every field is required; text and bounded numbers are checked") {
  const Json json = parse_json_object(R"({"name": "a", "n": 3, "big": 4294967295})", "test");
  nn::config_json::Reader read("test", json, nn::config_json::Fields::all);
  std::string name;
  u32 big = 0;
  i64 n = 0;
  read("name", name);
  read("big", big, 0, std::numeric_limits<u32>::max());
  read("n", n, 1, 3);
  CHECK(name == "a");
  CHECK(big == 4294967295u);
  CHECK(n == 3);
  CHECK_THROWS_WITH_AS(read("n", n, 1, 2), "test: n must be a whole number from 1 to 2, not 3", Error);
  CHECK_THROWS_WITH_AS(read("n", name), "test: n must be text, not 3", Error);
  CHECK_THROWS_WITH_AS(read("more", n), "test: has no field \"more\"", Error);
}

TEST_CASE("lists that are nested too deeply are refused") {
  const std::string deep = R"({"count":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  check_refused(deep, "has more than 32 nested lists and objects");
}

TEST_CASE("a number from 2^31 on is refused, and a field's name is shown without control characters") {
  check_refused(R"({"count": 9223372036854775807})",
                "count must be a whole number below 2^31, not 9223372036854775807");
  check_refused(R"({"count": 2147483648})", "count must be a whole number below 2^31, not 2147483648");
  CHECK(read(R"({"count": 2147483647})").count == 2147483647);
  check_refused("{\"\\u001b[31m\\n\": 1}", "there is no field \"?[31m\\n\"");
}

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
