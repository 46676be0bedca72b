// Chapter 9. Reading the numbers of a picture: JSON whose shape is wrong becomes one clear error.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace orrery {

/// Calls read(parsed text). Errors: text that is no JSON, or that lacks a number `read` asks for.
template <class Read>
auto read_figure(const std::string& text, const Read& read) {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail("figure", "the data are not those of this picture: ", error.what());
  }
}

/// `x` with so many digits after the point.
std::string decimals(double x, int digits);

}  // namespace orrery
