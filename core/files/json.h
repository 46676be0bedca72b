// Chapter 8. JSON from files: refused before it can do harm, and whole numbers read with their limits.
//
// A file may be anybody's. Text that nests deeply overflows the stack of a function that calls itself for each level,
// and an object of very many fields takes minutes where each is looked up among all. No configuration needs either. So
// both are refused while the text is read, before anything is built of it. All JSON goes through `parse_json_object`,
// but for the header of a safetensors file, which is read event by event (core/files/safetensors_header.h).
// Serves: nn/files/files.h
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string_view>

#include "core/dtype.h"

namespace orrery {

using Json = nlohmann::ordered_json;

/// What a text may have: bytes, values, and lists and objects around a value.
inline constexpr size_t most_json_bytes = size_t{1} << 20;
inline constexpr i64 most_json_values = 10'000;
inline constexpr int most_json_depth = 32;

/// The object that `text` describes. Errors, of `operation`: text that is no JSON, saying where; another value than an
/// object; more than the limits above.
Json parse_json_object(std::string_view text, std::string_view operation);

/// A value in a message: as JSON, cut after 60 bytes. Written only if the message is made.
struct Shown {
  const Json& json;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown);
};

/// A whole number from `least` to `most`; all else, 1.0 and true among it, is an error of `operation` that has `name`.
i64 whole_number(const Json& json, i64 least, i64 most, std::string_view operation, std::string_view name);

}  // namespace orrery
