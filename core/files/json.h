// Chapter 8. JSON from files: harmful input is refused early, and whole numbers are read with limits.
//
// A file may come from anybody. Deeply nested text overflows the stack of a recursive function, and an object with very
// many fields takes minutes if each is looked up among all others. No configuration needs either, so both are refused
// while the text is read, before anything is built from it. All JSON is read by `parse_json_object`, except the header
// of a safetensors file, which is read event by event (core/files/safetensors_header.h).
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

using Json = nlohmann::ordered_json;

/// The limits of a text: bytes, values, fields, and nested lists and objects.
inline constexpr size_t most_json_bytes = size_t{1} << 20;
inline constexpr i64 most_json_values = 10'000, most_json_fields = 10'000;
inline constexpr int most_json_depth = 32;

/// Limits for one text. One with long lists, such as a training's state, or with many fields, such as a vocabulary, may
/// be given higher ones.
struct JsonLimits {
  size_t bytes = most_json_bytes;
  i64 values = most_json_values;
  i64 fields = most_json_fields;
};

/// The object that `text` describes. Errors, of `operation`: text that is not JSON (the error says where) or has a zero
/// byte; another value than an object; a field twice; more than the limits allow.
Json parse_json_object(std::string_view text, std::string_view operation, const JsonLimits& limits = {});

/// JSON as text, for values that hold names of files. Those need not be UTF-8, as JSON must be: what is not becomes
/// U+FFFD. With an `indent` each field has a line of its own.
std::string json_text(const Json& json, int indent = -1);
/// The same in ASCII alone, for a terminal, which other characters could control.
std::string json_in_ascii(const Json& json, int indent = -1);

/// An object that is written field by field: when memory runs out in a save, this throws, and the training is as it
/// was. (A Json with fields allocates when it is destroyed, and would end the program.) Needs <nlohmann/json.hpp>.
class ObjectText {
 public:
  /// Numbers, true or false, text, null, and lists of them. Errors: json::exception of text that is not UTF-8.
  template <class T> ObjectText& add(std::string_view name, const T& value) {
    begin_field(name);
    write(value);
    return *this;
  }
  /// A field whose value is JSON already.
  ObjectText& add_json(std::string_view name, std::string_view json);
  std::string text() const { return text_ + '}'; }

 private:
  void begin_field(std::string_view name);
  void write(const Json& value);  // without fields or elements
  template <class T> void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      text_ += "null";
  }
  template <class T> void write(const std::vector<T>& values) {
    text_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text_ += ',';
      write(values[i]);
    }
    text_ += ']';
  }

  std::string text_ = "{";
};

/// A value in a message: as JSON, cut after 60 bytes. Written only if the message is made.
struct Shown {
  const Json& json;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown);
};

/// A whole number from `least` to `most`. Anything else, such as 1.0 or true, is an error of `operation` that contains
/// `name`.
i64 whole_number(const Json& json, i64 least, i64 most, std::string_view operation, std::string_view name);

}  // namespace orrery
