// Chapter 7. Every layer's and model's row in the table of proofs, and a row for every module.
#include "nn/samples.h"

#include <filesystem>

#include "nn/sample_rows.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("every coordinate of every input and parameter of a layer") {  // models: model_samples_test.cpp
  std::vector<Sample> layers = nn::module_samples();
  layers.resize(layers.size() - nn::model_samples().size());
  samples::check_table(layers, samples::check_gradients);
}

TEST_CASE("layers and models in f32 have the gradients of f64 within 1e-6 of the largest") {
  samples::check_table(nn::module_samples(), samples::check_f32);
}

TEST_CASE("layers and models: zero in, zero out; two fresh passes give the same bits") {
  samples::check_table(nn::module_samples(), samples::check_passes);
}

TEST_CASE("no two samples share their name and variant") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Sample& sample : nn::module_samples()) CHECK(seen.insert({sample.name, sample.variant}).second);
}

TEST_CASE("every module in nn/*.h has a sample, and every sample a module") {
  std::set<std::string> modules;
  for (const auto& file : std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/nn")) {
    if (file.path().extension() != ".h") continue;
    samples::find_names(file.path().string(), R"(^(?:struct|class) (\w+)(?: final)? : (?:public )?Module\b)", modules);
  }
  CHECK(modules.size() >= 10);
  CHECK(modules == samples::names_of(nn::module_samples()));
}
