// Chapter 8. Tests of JSON from files: what is too deep, too large or no JSON is refused, and numbers keep their range.
#include "core/files/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/core/support.h"
#include "tests/style_source.h"

using namespace orrery;
using small::error_of;
using small::repeated;

namespace {

// An object with `lists` lists around a number.
std::string nested(int lists) { return R"({"a":)" + repeated("[", lists) + "1" + repeated("]", lists) + "}"; }

std::string problem(const std::string& text) {
  return error_of([&] { parse_json_object(text, "read x"); });
}

// A foreign file's JSON is bounded where it is parsed: in core/files/json.cpp, and event by event in a model's header.
style::Words json_violations(const style::Sources& sources) {
  static const std::set<std::string> bounded{"core/files/json.cpp", "core/files/safetensors_header.cpp"};
  style::Words found;
  for (const style::Source& source : sources) {
    if (source.layer() == "tests" || bounded.contains(source.path)) continue;
    for (size_t i = 0; i < source.code.size(); ++i)
      for (const std::string call : {"::parse(", "::sax_parse(", "::accept("})
        if (source.code[i].find("son" + call) != std::string::npos)
          found.push_back(source.at(i) + "JSON is parsed in core/files/json.cpp alone");
  }
  return found;
}

}  // namespace

TEST_CASE("an object is what its text says") {
  const Json json = parse_json_object(R"({"b": [1, {"c": null}], "a": "\u00e4"})", "read x");
  CHECK(json.dump() == "{\"b\":[1,{\"c\":null}],\"a\":\"\u00e4\"}");
}

TEST_CASE("JSON nests as deeply as the limit, and no further, however deep it goes on") {
  CHECK(problem(nested(most_json_depth - 1)) == "");
  CHECK(problem(R"({"a":)" + repeated(R"({"a":)", most_json_depth - 1) + "1" + repeated("}", most_json_depth)) == "");
  const std::string refused = "read x: has more than 32 nested lists and objects";
  CHECK(problem(nested(most_json_depth)) == refused);
  CHECK(problem(nested(100'000)) == refused);
  CHECK(problem(repeated("[", 500'000)) == refused);
  CHECK(problem(repeated(R"({"a":)", 200'000)) == refused);
}

TEST_CASE("JSON has as many bytes and values as the limits, and no more") {
  CHECK(problem("{" + std::string(most_json_bytes - 2, ' ') + "}") == "");
  CHECK(problem("{" + std::string(most_json_bytes - 1, ' ') + "}") ==
        "read x: has 1048577 bytes of JSON, at most 1048576 are read");
  std::string fields;  // a reader that looks up each would take minutes
  for (int i = 0; i < 60'000; ++i) fields += "\"" + std::to_string(i) + "\":0,";
  CHECK(problem("{" + fields + "\"a\":0}") == "read x: has more than 10000 values");
  CHECK(problem(R"({"a":[)" + repeated("0,", 9'000) + "0]}") == "");
  // Who asks for longer lists gets them, but no more fields.
  const auto of_long_lists = [](const std::string& text) {
    return error_of([&] { parse_json_object(text, "read x", {.bytes = size_t{2} << 20, .values = 20'000}); });
  };
  CHECK(of_long_lists(R"({"a":[)" + repeated("0,", 19'000) + "0]}") == "");
  CHECK(of_long_lists(R"({"a":[)" + repeated("0,", 20'000) + "0]}") == "read x: has more than 20000 values");
  CHECK(of_long_lists("{" + fields + "\"a\":0}") == "read x: has more than 10000 fields");
}

TEST_CASE("anything but an object is refused in one line") {
  CHECK(problem("") == "read x: is not valid JSON: the error is in line 1, column 1");
  CHECK(problem("{\"a\":\x1B[31m}") == "read x: is not valid JSON: the error is in line 1, column 6");
  CHECK(problem("{} {}") == "read x: is not valid JSON: the error is in line 1, column 4");
  CHECK(problem("{\"a\": \"\xFF\"}") == "read x: is not valid JSON: the error is in line 1, column 8");
  CHECK(problem("{\n \"a\": 1,\n}\n") == "read x: is not valid JSON: the error is in line 3, column 1");
  CHECK(problem("{\"a\": 1e999}") == "read x: is not valid JSON: a number is too large");
  for (const std::string text : {"[]", "1", "\"a\"", "null", "true"})
    CHECK(problem(text) == "read x: is not a JSON object");
}

TEST_CASE("text behind a zero byte is not overlooked") {
  CHECK(problem(std::string("{\"a\": 1}\0rubbish", 16)) == "read x: has a zero byte");
}

TEST_CASE("a field that stands twice in an object is an error, since only one of them would count") {
  CHECK(problem(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})") == "");
  CHECK(problem(R"({"a": 1, "b": 2, "a": 1})") == R"(read x: has the field "a" twice)");
  CHECK(problem(R"({"b": {"a": {}, "a": []}})") == R"(read x: has the field "a" twice)");
}

TEST_CASE("whole numbers are whole, and in their range") {
  constexpr i64 most = std::numeric_limits<i64>::max();
  const auto read = [&](const std::string& text, i64 low, i64 high) {
    const Json json = parse_json_object("{\"n\": " + text + "}", "read x");
    i64 value = 0;
    const std::string error = error_of([&] { value = whole_number(json.at("n"), low, high, "read x", "n"); });
    return error.empty() ? std::to_string(value) : error;
  };
  CHECK(read("7", 1, 7) == "7");
  CHECK(read("-3", -3, 7) == "-3");
  CHECK(read("9223372036854775807", 0, most) == "9223372036854775807");
  CHECK(read("-9223372036854775808", std::numeric_limits<i64>::min(), 0) == "-9223372036854775808");
  CHECK(read("8", 1, 7) == "read x: n must be a whole number from 1 to 7, not 8");
  CHECK(read("0", 1, 7) == "read x: n must be a whole number from 1 to 7, not 0");
  for (const std::string wrong : {"1.5", "1.0", "1e3", "true", "\"1\"", "null", "[1]"}) {
    CAPTURE(wrong);
    CHECK(read(wrong, -10, 10'000).starts_with("read x: n must be a whole number from -10 to 10000, not "));
  }
  for (const std::string huge : {"9223372036854775808", "18446744073709551615", "99999999999999999999"}) {
    CAPTURE(huge);
    CHECK(read(huge, 0, most).starts_with("read x: n must be a whole number from 0 to 9223372036854775807, not "));
  }
}

TEST_CASE("a value in a message is one short line of plain characters") {
  CHECK(small::text_of(Shown{parse_json_object(R"({"a":"\u001b[31m\n\u202e"})", "x")}) ==
        R"({"a":"\u001b[31m\n\u202e"})");
  CHECK(small::text_of(Shown{Json(std::string(100, 'a'))}) == "\"" + std::string(59, 'a') + "...");
}

TEST_CASE("JSON in ASCII is the same JSON, whatever its text holds") {
  const std::string text = R"({"a":"\u202e\u00e4"})";
  const Json json = parse_json_object(text, "x");
  CHECK(json.at("a") == "\xE2\x80\xAE\xC3\xA4");
  CHECK(json_in_ascii(json) == text);
}

TEST_CASE("JSON is parsed in core/files/json.cpp alone") {
  CHECK(style::report(json_violations(style::tree())) == "");
  const auto found = [](const std::string& path, const std::string& text) {
    return style::report(json_violations({style::make_source(path, text)}));
  };
  CHECK(found("apps/a.cpp", "x = Json::parse(text);\ncatch (const Json::parse_error& e) {}\n") ==
        "\napps/a.cpp:1: JSON is parsed in core/files/json.cpp alone");
  CHECK(found("core/files/json.cpp", "x = nlohmann::json::parse(text);\n") == "");
}

TEST_CASE("JSON of a file's name that is not UTF-8 is text all the same") {
  const Json json{{"name", "x\xFF.en"}, {"n", 3}};
  CHECK(json_text(json) == "{\"name\":\"x\xEF\xBF\xBD.en\",\"n\":3}");
  CHECK(json_text(json, 2) == "{\n  \"name\": \"x\xEF\xBF\xBD.en\",\n  \"n\": 3\n}");
}

TEST_CASE("an object that is written field by field is what a Json with these fields would be") {
  const std::string special = "a \"b\" \\ \n \x01 \xC3\xA9";
  const std::vector<i64> numbers{1, -2};
  const std::vector<std::string> words{"x", special};
  const Json json{{"least", std::numeric_limits<i64>::min()},
                  {"most", std::numeric_limits<u64>::max()},
                  {"tenth", 0.1},
                  {"single", 0.1F},
                  {"infinite", std::numeric_limits<double>::infinity()},
                  {"yes", true},
                  {special, special},
                  {"none", nullptr},
                  {"numbers", numbers},
                  {"empty", Json::array()},
                  {"words", words},
                  {"inner", {{"a", 1}}}};
  ObjectText text;
  text.add("least", std::numeric_limits<i64>::min()).add("most", std::numeric_limits<u64>::max()).add("tenth", 0.1);
  text.add("single", 0.1F).add("infinite", std::numeric_limits<double>::infinity()).add("yes", true);
  text.add(special, special).add("none", std::optional<i64>()).add("numbers", numbers);
  text.add("empty", std::vector<i64>()).add("words", words).add_json("inner", ObjectText().add("a", 1).text());
  CHECK(text.text() == json.dump());
  CHECK(ObjectText().text() == "{}");
  CHECK_THROWS_AS(ObjectText().add("a", "\xFF"), Json::exception);
}
