// Chapter 7. Every layer's and model's row in the table of proofs, and a row for every module.
#include "nn/check/samples.h"

#include <filesystem>
#include <set>

#include "autograd/observer.h"
#include "nn/check/sample_rows.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("promise 6: promise 8: promise 10: every sample of a layer is proven in every part") {
  std::vector<Sample> layers = nn::module_samples();
  layers.resize(layers.size() - nn::model_samples().size());
  samples::check_table(layers);
}

namespace {

// Adds the layers and models that a header defines, without the interfaces of what can stand in a layer's place.
void find_modules(const std::string& path, std::set<std::string>& modules) {
  samples::find_names(
      path, R"(^(?:struct|class) (\w+)(?: final)? : (?:public )?(?:Module|Replaceable|Attention|CausalModel)\b)",
      modules);
  for (const char* interface :
       {"Replaceable", "Part", "LinearMap", "Attention", "QueryKeyMap", "ScoreBias", "CausalModel"})
    modules.erase(interface);
}

// The operations that a row's forward runs.
std::set<std::string> operations_of(const Sample& sample) {
  struct Names final : Observer {
    std::set<std::string> seen;
    void forward_begins(std::string_view name, std::span<const Variable* const>) override { seen.emplace(name); }
  } names;
  const Checkable f = sample.build(f64, 1);
  const ObserverScope scope(names);
  f.output();
  return names.seen;
}

}  // namespace

TEST_CASE("promise 6: models are proven through the fused head too, an encoder-decoder and a GPT, tied and not") {
  int fused = 0;
  for (const Sample& sample : nn::model_samples()) fused += operations_of(sample).contains("linear_cross_entropy");
  CHECK(fused >= 3);
}

TEST_CASE("no two samples share their name and variant") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Sample& sample : nn::module_samples()) CHECK(seen.insert({sample.name, sample.variant}).second);
}

TEST_CASE("promise 6: every layer and model in nn/ has a sample, and every sample a layer or model") {
  std::set<std::string> modules;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/nn"))
    if (file.path().extension() == ".h") find_modules(file.path().string(), modules);
  CHECK(modules.size() >= 10);
  CHECK(samples::row_differences(modules, samples::names_of(nn::module_samples()), "nn/check/samples.cpp") == "");
}

TEST_CASE("promise 13: whatever in nn/ knows a mask or padding has a sample that says what is padding") {
  std::set<std::string> with_padding, proven;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/nn")) {
    if (file.path().extension() != ".h") continue;
    std::set<std::string> knows;
    samples::find_names(file.path().string(), R"((\bMask\b|\bpad_id\b|: CausalModel\b))", knows);
    if (!knows.empty()) find_modules(file.path().string(), with_padding);
  }
  for (const Sample& sample : nn::module_samples())
    if (!sample.build(f32).padding.places.empty()) proven.insert(sample.name);
  CHECK(with_padding.size() >= 9);
  CHECK(samples::row_differences(with_padding, proven, "the list of samples with padding") == "");
}

TEST_CASE("promise 6: everything in nn/ that changes queries and keys has a sample of attention with it") {
  std::set<std::string> maps, sampled;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/nn"))
    if (file.path().extension() == ".h")
      samples::find_names(file.path().string(), R"(^struct (\w+)(?: final)? : QueryKeyMap\b)", maps);
  for (const Sample& sample : nn::module_samples()) {
    if (sample.variant == "self, rotary positions") sampled.insert("Rotary");
    if (sample.variant == "self, norms of rotary Q and K") sampled.insert("QueryKeyNorm");
  }
  CHECK(maps == sampled);
}

TEST_CASE("slow: promise 6: promise 8: promise 10: every sample of a stack or a model is proven in every part") {
  samples::check_table(nn::model_samples());
}
