// Chapter 9. Reading the numbers of a picture: JSON whose shape is wrong becomes one clear error.
#pragma once

#include <string>

#include "apps/show/figure/figures.h"
#include "nn/models/config_json.h"

namespace orrery {

/// Calls read(reader of the parsed text). Errors: text that is not JSON, or that lacks a field `read` asks for.
template <class Read> auto read_figure(const std::string& text, const Read& read) {
  const Json data = parse_json_object(text, "figure", {.bytes = most_figure_bytes, .values = most_figure_values});
  nn::config_json::Reader reader("figure", data, nn::config_json::Fields::all);
  return read(reader);
}

/// `x` with this many digits after the point.
std::string decimals(double x, int digits);

}  // namespace orrery
