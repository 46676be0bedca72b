// Chapter 7. Every layer's and model's row in the table of proofs, and a row for every module.
#include "nn/check/samples.h"

#include <filesystem>

#include "nn/check/sample_rows.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

// Models are in model_samples_test.cpp.
TEST_CASE("promise 6: promise 8: promise 10: every sample of a layer is proven in every part") {
  std::vector<Sample> layers = nn::module_samples();
  layers.resize(layers.size() - nn::model_samples().size());
  samples::check_table(layers);
}

TEST_CASE("no two samples share their name and variant") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Sample& sample : nn::module_samples()) CHECK(seen.insert({sample.name, sample.variant}).second);
}

TEST_CASE("promise 6: every module in nn/ has a sample, and every sample a module") {
  std::set<std::string> modules;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/nn")) {
    if (file.path().extension() != ".h") continue;
    samples::find_names(file.path().string(),
                        R"(^(?:struct|class) (\w+)(?: final)? : (?:public )?(?:Module|Replaceable|Attention)\b)",
                        modules);
  }
  // What can be put in a place of a layer: the samples have one of each, and see it through that layer.
  for (const char* interface : {"Replaceable", "Part", "LinearMap", "Attention", "QueryKeyMap", "ScoreBias"})
    CHECK(modules.erase(interface) == 1);
  CHECK(modules.size() >= 10);
  CHECK(samples::row_differences(modules, samples::names_of(nn::module_samples()), "nn/check/samples.cpp") == "");
}
