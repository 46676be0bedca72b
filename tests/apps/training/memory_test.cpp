// Chapter 9. Tests of the memory that a training takes at the least.
#include "apps/training/memory.h"

#include "apps/bench/configs.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

MemoryNeed need_of(const BenchConfig& config) {
  if (config.is_gpt()) {
    const nn::GptConfig model = config.gpt(0);
    return {.parameters = model.parameter_count(), .kept = kept_numbers(model, config.batch, config.target_length)};
  }
  const nn::TransformerConfig model = config.transformer(0);
  return {.parameters = model.parameter_count(),
          .kept = kept_numbers(model, config.batch, config.source_length, config.target_length)};
}

}  // namespace

TEST_CASE("layers, tokens and copies of the parameters are counted") {
  const nn::TransformerConfig model{
      .layer = {.d_model = 10, .num_heads = 1, .d_ff = 7}, .num_encoder_layers = 2, .num_decoder_layers = 3};
  CHECK(kept_numbers(model, 5, 4, 6) == 5 * (4 * 2 * (40 + 7) + 6 * 3 * (80 + 7)));
  const nn::GptConfig gpt{.vocab_size = 9, .layer = {.d_model = 10, .num_heads = 1, .d_ff = 7}, .num_layers = 3};
  CHECK(kept_numbers(gpt, 5, 6) == 5 * 6 * 3 * (40 + 7));
  CHECK(bytes_of(MemoryNeed{.parameters = 10, .copies = 3, .kept = 5}) == 4 * 35);
}

TEST_CASE("the count is below what a training takes, so that nothing is refused that would run") {
  for (const std::string name : {"toy", "nanogpt", "tiny-mt"}) {
    CAPTURE(name);
    const program::Result result = program::run("bench step --steps 1 --threads 1 --config " + name);
    const size_t at = result.text.find("peak_mb=");
    REQUIRE(at != std::string::npos);
    const double peak = std::stod(result.text.substr(at + 8)),
                 least = bytes_of(need_of(bench_config(name))) / (1 << 20);
    CHECK(least < peak);
    CHECK(least > 1);
  }
}

TEST_CASE("what fits is taken, and what does not is refused with both numbers") {
  CHECK(small::error_of([] { check_memory("test", {.parameters = 1000}); }) == "");
  const std::string error = small::error_of([] { check_memory("test", {.parameters = i64{1} << 50, .copies = 4}); });
  CHECK(error.starts_with(
      "test: a model of 1125899906842624 parameters takes 17179869184 MB of memory for this, or more; "
      "the machine has "));
}
