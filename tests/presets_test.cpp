// Chapter 9. Tests of CMakePresets.json: how much a build asks of the machine.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace {

// Ninja by itself runs as many compilers as there are cores, and two more. "jobs": 0 is `make -j`, which starts all at
// once: 48 of them took 5 GB. A number would be right on one machine alone.
std::string unbounded_presets(const nlohmann::json& presets) {
  std::string found;
  for (const auto& preset : presets.at("configurePresets"))
    if (preset.value("generator", "") != "Ninja") found += preset.at("name").get<std::string>() + ": generator\n";
  for (const auto& preset : presets.at("buildPresets"))
    if (preset.contains("jobs")) found += preset.at("name").get<std::string>() + ": jobs\n";
  return found;
}

}  // namespace

TEST_CASE("no build preset starts more compilers than there are cores, and two more") {
  std::ifstream file(ORRERY_SOURCE_DIR "/CMakePresets.json");
  CHECK(unbounded_presets(nlohmann::json::parse(file)) == "");
}

TEST_CASE("a preset without a bound is found") {
  const auto presets = nlohmann::json::parse(
      R"({"configurePresets": [{"name": "a"}], "buildPresets": [{"name": "b", "jobs": 0}, {"name": "c"}]})");
  CHECK(unbounded_presets(presets) == "a: generator\nb: jobs\n");
}
