// Chapter 8. JSON from files: the limits, watched while the text is read.
#include "core/files/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"

namespace orrery {

namespace {

// "line 2, column 5" of byte number `byte`, counted from 1.
std::string place(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const size_t line_begin = before.rfind('\n') + 1;  // 0 if there is none
  return "line " + std::to_string(std::count(before.begin(), before.end(), '\n') + 1) + ", column " +
         std::to_string(before.size() - line_begin + 1);
}

}  // namespace

Json parse_json_object(std::string_view text, std::string_view operation, const JsonLimits& limits) {
  check(text.size() <= limits.bytes, operation, "has ", text.size(), " bytes of JSON, at most ", limits.bytes,
        " are read");
  check(text.find('\0') == text.npos, operation, "has a zero byte");  // where the parser would stop
  i64 values = 0, fields = 0;
  std::vector<std::set<std::string>> names;  // of the fields so far, for each object that is open
  const auto watch = [&](int around, Json::parse_event_t event, const Json& read) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    check(!opens || around < most_json_depth, operation, "has more than ", most_json_depth,
          " nested lists and objects");
    if (opens || event == Json::parse_event_t::value) ++values;
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) {
      ++fields;
      check(names.back().insert(read.get<std::string>()).second, operation, "has the field ", Shown{read}, " twice");
    }
    check(values <= limits.values, operation, "has more than ", limits.values, " values");
    check(fields <= limits.fields, operation, "has more than ", limits.fields, " fields");
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    fail(operation, "is not valid JSON: the error is in ", place(text, error.byte));
  } catch (const Json::exception&) { fail(operation, "is not valid JSON: a number is too large"); }
  check(json.is_object(), operation, "is not a JSON object");
  return json;
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
std::string json_in_ascii(const Json& json, int indent) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

void ObjectText::begin_field(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  write(name);
  text_ += ':';
}
ObjectText& ObjectText::add_json(std::string_view name, std::string_view json) {
  begin_field(name);
  text_ += json;
  return *this;
}
void ObjectText::write(const Json& value) { text_ += value.dump(); }

std::ostream& operator<<(std::ostream& out, const Shown& shown) {
  constexpr size_t most = 60;
  const std::string text = shown.json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return out << text.substr(0, most) << (text.size() > most ? "..." : "");
}

i64 whole_number(const Json& json, i64 least, i64 most, std::string_view operation, std::string_view name) {
  // The parser reads a whole number beyond i64 as unsigned, and one beyond u64 as a floating-point number.
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() || json.get<u64>() <= u64{std::numeric_limits<i64>::max()});
  const i64 value = fits ? json.get<i64>() : 0;
  if (most == std::numeric_limits<i32>::max())
    check(fits && value <= most, operation, name, " must be a whole number below 2^31, not ", Shown{json});
  check(fits && least <= value && value <= most, operation, name, " must be a whole number from ", least, " to ", most,
        ", not ", Shown{json});
  return value;
}

}  // namespace orrery
