// Chapter 7. The rivals' rows in the table of proofs: each is proven, its mutants are caught, and no rival lacks one.
#include "apps/tasks/translate/rivals/states.h"

#include <filesystem>

#include "autograd/check/mutation.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("slow: promise 6: promise 8: promise 10: promise 13: every sample of a rival is proven in every part") {
  samples::check_table(translate::rival_samples());
}

TEST_CASE("promise 6: every layer and model of the rivals has a sample, and one with padding if it knows a mask") {
  std::set<std::string> modules, with_padding, proven;
  for (const auto& file : std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/apps/tasks/translate/rivals"))
    if (file.path().extension() == ".h")
      samples::find_names(file.path().string(), R"(^struct (\w+) : nn::Module\b)", modules);
  for (const Sample& sample : translate::rival_samples())
    if (!sample.build(f32).padding.places.empty()) proven.insert(sample.name);
  CHECK(modules.size() == 7);
  CHECK(samples::row_differences(modules, samples::names_of(translate::rival_samples()), "rivals/samples.cpp") == "");
  CHECK(samples::row_differences(modules, proven, "the list of samples with padding") == "");
}

TEST_CASE("slow: promise 7: layers of the rivals: all mutants are caught, and there are many") {
  i64 caught = 0;
  for (const Sample& sample : translate::rival_samples()) {
    if (sample.options.coordinates > 0) continue;  // models: `orrery gradcheck --mutate`
    const MutationReport report = mutate(sample.build(f64), sample.options);
    CHECK_MESSAGE(report, sample.name << ", " << sample.variant << ": " << report);
    caught += report.count(Mutant::Fate::caught);
  }
  CHECK(caught > 100);
}
