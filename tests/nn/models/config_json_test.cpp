// Chapter 7. Configurations as JSON text: every kind of field, for a configuration of the test's own.
#include "nn/models/config_json.h"

#include <doctest/doctest.h>

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

template <class Config, class Field>
static void for_each_field(Config& config, Field&& field) {
  field("count", config.count);
  field("rate", config.rate);
  field("maybe", config.maybe);
  field("on", config.on);
  field("activation", config.activation);
}

}  // namespace orrery::nn

using namespace orrery;
using nn::ToyConfig;

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
