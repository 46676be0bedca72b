// Chapter 9. Tests of the least memory that a training needs.
#include "apps/training/memory.h"

#include "apps/measure/bench/configs.h"
#include "apps/program/machine.h"
#include "apps/tasks/toy/training.h"
#include "apps/training/options.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"
#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
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
          .kept = kept_numbers(model, config.batch, config.source_length, config.target_length, LossHead::fused)};
}

}  // namespace

TEST_CASE("layers, tokens, attention weights, logits and copies of the parameters are counted") {
  const nn::TransformerConfig model{.tgt_vocab_size = 11,
                                    .layer = {.d_model = 10, .num_heads = 2, .d_ff = 7},
                                    .num_encoder_layers = 2,
                                    .num_decoder_layers = 3};
  // For each token 4 d_model + d_ff in a layer, 2 d_model more in a decoder layer, and there 2 d_model for each token
  // of the source; and h n m weights.
  const double fused = 5 * (2 * (4 * (40 + 7) + 2 * 4 * 4) + 3 * (6 * (60 + 7) + 4 * 20 + 2 * 6 * 6 + 2 * 6 * 4));
  CHECK(kept_numbers(model, 5, 4, 6, LossHead::fused) == fused);
  CHECK(kept_numbers(model, 5, 4, 6, LossHead::composed) == fused + 5 * 6 * 11);
  const nn::GptConfig gpt{.vocab_size = 9, .layer = {.d_model = 10, .num_heads = 2, .d_ff = 7}, .num_layers = 3};
  CHECK(kept_numbers(gpt, 5, 6) == 5 * 3 * (6 * (40 + 7) + 2 * 6 * 6));
  CHECK(kept_numbers(gpt, 1, 512) == 3 * (512 * (40 + 7) + 2 * 512 * 512));
  CHECK(kept_numbers(gpt, 1, 513) == 3 * (513 * (40 + 7)));  // in tiles
  CHECK(bytes_of(MemoryNeed{.parameters = 10, .copies = 3, .kept = 5}) == 4 * 35);
}

TEST_CASE("the count is below what a training takes, so that nothing is refused that would run") {
  if (!small::counts_memory()) return;
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
  CHECK(
      error.starts_with("test: a model of 1125899906842624 parameters needs at least 17179869184 MB of memory here; "
                        "the machine has "));
}

TEST_CASE("a toy whose attention weights and logits do not fit into memory is refused at its start") {
  constexpr double gigabyte = 1 << 30;
  if (static_cast<double>(physical_memory()) > 300 * gigabyte) return;  // a machine that holds it
  program::check_failure("timeout 60 " + program::quoted_program +
                             "toy --batch 65536 --max-length 512 --symbols 1000 --d-model 4 --heads 1 --d-ff 1 "
                             "--encoder-layers 1 --decoder-layers 1 --steps 1",
                         " MB of memory here; the machine has ");
}

TEST_CASE("where attention weights or logits are the largest part, most of what a step takes is counted") {
  if (!small::counts_memory()) return;
  for (const bool long_sequences : {true, false}) {
    CAPTURE(long_sequences);
    ToyRecipe recipe;
    recipe.task.max_length = long_sequences ? 200 : 20;
    recipe.task.symbols = long_sequences ? 4 : 1000;
    recipe.model.layer.d_model = 8;
    recipe.model.layer.num_heads = 4;
    recipe.model.layer.d_ff = 8;
    recipe.batch = 32;
    const nn::TransformerConfig model = recipe.config();
    const double least = bytes_of({.parameters = model.parameter_count(),
                                   .kept = kept_numbers(model, recipe.batch, recipe.task.source_length(),
                                                        recipe.task.target_length() - 1, LossHead::composed)});
    ToyTraining training(recipe);
    reset_peak();
    training.trainer.step();
    const double peak = static_cast<double>(memory_counters().peak_bytes);
    CHECK(least < peak);
    CHECK(least > 0.25 * peak);
  }
}

TEST_CASE("without --max-memory the limit is nine tenths of what is free, and no more than the machine has") {
  if (!small::counts_memory()) return;
  const SystemMemory memory = memory_of(SystemFiles());
  REQUIRE(memory.available > 0);
  const struct RestoredLimit {
    i64 before = memory_counters().limit_bytes;
    ~RestoredLimit() { limit_memory(before); }
  } restored;
  RunOptions run;
  run.threads = threads();
  run.tiles = least_tiles();
  set_up(run);
  const i64 limit = memory_counters().limit_bytes;
  CHECK(limit <= memory.total / 10 * 9);
  const double share = static_cast<double>(limit) / static_cast<double>(memory.available);
  CHECK(share > 0.9 / 1.5);  // other programs take and free memory meanwhile
  CHECK(share < 0.9 * 1.5);
}

TEST_CASE("promise 22: --max-memory refuses a training at its start, ends one that needs more, and lets others run") {
  if (!small::counts_memory()) return;
  const std::string command = "OMP_NUM_THREADS=1 " + program::quoted_program + "toy --steps 2 --warmup 1 --max-memory ";
  program::check_failure(command + "8",
                         "toy: a model of 170512 parameters needs at least 12 MB of memory here; "
                         "--max-memory (if not given, nine tenths of what is free) allows 8 MB");
  const program::Result between = program::shell(command + "16 2>&1 >/dev/null");
  CHECK(between.exit_code == 1);
  CHECK(program::contains(between.text,
                          "more than is left of the 16777216 bytes that tensors may take "
                          "(limit_memory, --max-memory)"));
  CHECK(program::shell(command + "100 2>/dev/null >/dev/null").exit_code == 0);
  program::check_usage_error("toy --max-memory 0", "--max-memory", "from 1 to");

  const TemporaryFolder folder;
  const small::AnimalText text = small::animal_text();
  set_contents(folder / "a.en", text.english);
  set_contents(folder / "a.de", text.german);
  const std::string translate =
      "translate train --segmented --source '" + (folder / "a.en") + "' --target '" + (folder / "a.de") + "'";
  for (const std::string& training : {std::string("lm train"), translate}) {
    CAPTURE(training);
    const program::Result refused = program::errors(training + " --steps 2 --max-memory 4");
    CHECK(refused.exit_code == 1);
    CHECK(program::contains(refused.text, " parameters needs at least "));
    CHECK(
        refused.text.ends_with(" MB of memory here; --max-memory (if not given, nine tenths of what is free) allows "
                               "4 MB\n"));
  }
  std::filesystem::resize_file(folder / "a.de", 6 << 20);
  program::check_failure(program::quoted_program + translate + " --max-memory 10",
                         "translate: the texts need at least 12 MB of memory here; "
                         "--max-memory (if not given, nine tenths of what is free) allows 10 MB");
}
