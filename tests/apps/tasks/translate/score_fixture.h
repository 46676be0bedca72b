// Chapter 9. The texts in tests/fixtures/translate, and what the tools say about them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/style_source.h"

namespace orrery {

inline std::string fixture_path(const std::string& file) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/translate/" + file;
}

/// The lines of a text, such as "odd.system".
inline std::vector<std::string> fixture_text(const std::string& name) {
  return style::split_lines(contents(fixture_path(name + ".txt")));
}

/// The numbers of the tools.
inline const nlohmann::json& score_fixture() {
  static const nlohmann::json scores = nlohmann::json::parse(contents(fixture_path("scores.json")));
  return scores;
}

}  // namespace orrery
