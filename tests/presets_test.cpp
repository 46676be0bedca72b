// Chapter 9. Tests of CMakePresets.json: how much a build asks of the machine.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/style_source.h"

using namespace orrery;

namespace {

// By default Ninja runs two more compilers than there are cores. "jobs": 0 means `make -j` without a number, which
// starts all compilers at once (48 of them took 5 GB). Any other number would fit one machine only.
std::string unbounded_presets(const nlohmann::json& presets) {
  std::string found;
  for (const auto& preset : presets.at("configurePresets"))
    if (preset.value("generator", "") != "Ninja") found += preset.at("name").get<std::string>() + ": generator\n";
  for (const auto& preset : presets.at("buildPresets"))
    if (preset.contains("jobs")) found += preset.at("name").get<std::string>() + ": jobs\n";
  return found;
}

// The entries of ctest that run the cases named "slow: ...".
std::set<std::string> slow_entries() {
  std::set<std::string> entries;
  for (const style::Source& source : style::tree()) {
    if (!source.path.starts_with("tests/") || !source.path.ends_with("_test.cpp")) continue;
    const bool slow = std::any_of(source.lines.begin(), source.lines.end(),
                                  [](const std::string& line) { return line.starts_with("TEST_CASE(\"slow: "); });
    const std::string name = source.path.substr(std::string("tests/").size());
    if (slow) entries.insert(name.substr(0, name.rfind("_test.cpp")) + ":slow");
  }
  return entries;
}

}  // namespace

TEST_CASE("no build preset starts more than two compilers beyond one for each core") {
  std::ifstream file(ORRERY_SOURCE_DIR "/CMakePresets.json");
  CHECK(unbounded_presets(nlohmann::json::parse(file)) == "");
}

TEST_CASE("a case of a special kind has its name in the line where tests/CMakeLists.txt looks for it") {
  static const std::regex kind("^ *\"(slow|long|seeds|browser|book): ");
  for (const style::Source& source : style::tree())
    for (size_t i = 1; i < source.lines.size(); ++i)
      if (source.lines[i - 1] == "TEST_CASE(") CHECK_MESSAGE(!std::regex_search(source.lines[i], kind), source.at(i));
}

TEST_CASE("a preset without a bound is found") {
  const auto presets = nlohmann::json::parse(
      R"({"configurePresets": [{"name": "a"}], "buildPresets": [{"name": "b", "jobs": 0}, {"name": "c"}]})");
  CHECK(unbounded_presets(presets) == "a: generator\nb: jobs\n");
}

TEST_CASE("the sanitizers' first run leaves out what .ci/run names, and nothing else") {
  std::ifstream file(ORRERY_SOURCE_DIR "/CMakePresets.json");
  const auto presets = nlohmann::json::parse(file);
  const std::string script = contents(style::root / ".ci/run");
  bool found = false;
  for (const auto& preset : presets.at("testPresets")) {
    if (preset.at("name") != "asan") continue;
    found = true;
    CHECK(preset.at("filter").at("exclude").at("label") == "long|slow|seeds|browser");
    CHECK(preset.at("filter").at("exclude").at("name") ==
          "^(apps/(measure/(bench/.*|claims/claims)|book/reader|install/install|check/(gradcheck|leakcheck)|openmp)|"
          "autograd/check/mutation|promises/blas_builds|faults/two_processes)$");
  }
  CHECK(found);
  for (const std::string name : {"apps/measure/bench", "apps/openmp", "apps/measure/claims/claims", "apps/book/reader",
                                 "apps/install/install", "autograd/check/mutation", "apps/check/gradcheck",
                                 "apps/check/leakcheck", "promises/blas_builds", "faults/two_processes"}) {
    CAPTURE(name);
    CHECK(script.find(name) != std::string::npos);
  }
}

TEST_CASE("the sanitizers' run leaves out five slow entries and no other, and .ci/run names them") {
  std::ifstream file(ORRERY_SOURCE_DIR "/CMakePresets.json");
  const auto presets = nlohmann::json::parse(file);
  const std::string script = contents(style::root / ".ci/run");
  std::set<std::string> left_out;
  for (const auto& preset : presets.at("testPresets")) {
    if (preset.at("name") != "asan-slow") continue;
    const std::regex name(preset.at("filter").at("exclude").at("name").get<std::string>());
    for (const std::string& entry : slow_entries())
      if (std::regex_search(entry, name)) left_out.insert(entry);
  }
  CHECK(left_out == std::set<std::string>{"apps/measure/claims/claims:slow", "apps/tasks/lm/minutes:slow",
                                          "promises/operation_bits:slow", "promises/scarce_memory:slow",
                                          "promises/training_bits:slow"});
  for (const std::string& entry : left_out) {
    CAPTURE(entry);
    CHECK(script.find(entry.substr(0, entry.rfind(':'))) != std::string::npos);
  }
}
