// Chapter 9. Tests of CMakePresets.json: how much a build asks of the machine.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/style_source.h"

using namespace orrery;

namespace {

// By default Ninja runs two more compilers than there are cores. "jobs": 0 means `make -j` without a number, which
// starts all compilers at once (48 of them once took 5 GB). Any other number would fit one machine only.
std::string unbounded_presets(const nlohmann::json& presets) {
  std::string found;
  for (const auto& preset : presets.at("configurePresets"))
    if (preset.value("generator", "") != "Ninja") found += preset.at("name").get<std::string>() + ": generator\n";
  for (const auto& preset : presets.at("buildPresets"))
    if (preset.contains("jobs")) found += preset.at("name").get<std::string>() + ": jobs\n";
  return found;
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
