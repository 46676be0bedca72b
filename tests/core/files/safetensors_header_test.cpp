// Chapter 9. Tests of the header of safetensors files: the first thing that does not belong there ends the reading.
#include "core/files/safetensors_header.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;

namespace {

std::string complaint(const std::string& header, u64 data_bytes) {
  const std::string error = small::error_of([&] { parse_header(header, data_bytes, "read"); });
  return error.empty() ? "" : error.substr(6);  // without "read: "
}

// Headers, each with what is wrong with it for 8 bytes of data.
using Complaints = std::vector<std::pair<std::string, std::string>>;
void check_complaints(const Complaints& cases) {
  for (const auto& [text, expected] : cases) {
    const std::string& header = text;
    CAPTURE(header);
    CHECK(complaint(header, 8) == expected);
  }
}

const std::string good_fields = R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])";
std::string one_tensor(const std::string& fields) { return R"({"w": {)" + fields + "}}"; }
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return one_tensor(R"("dtype": )" + dtype + R"(, "shape": )" + shape + R"(, "data_offsets": )" + offsets);
}
// Two tensors, the second at these offsets.
std::string two_tensors(const std::string& offsets) {
  return R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
             "v": {"dtype": "F32", "shape": [1], "data_offsets": )" +
         offsets + "}}";
}

}  // namespace

TEST_CASE("the dtypes of tensors have their counterparts in files") {
  CHECK(file_dtype(Dtype::f32) == FileDtype::F32);
  CHECK(file_dtype(Dtype::f64) == FileDtype::F64);
  CHECK(file_dtype(Dtype::i32) == FileDtype::I32);
  CHECK(small::error_of([] { file_dtype(static_cast<Dtype>(9)); }) ==
        "dtype: number 9 is not in the table of core/dtype.h");
}

TEST_CASE("entries come in the order of their offsets") {
  const TensorHeader header = parse_header(
      R"({"b": {"dtype": "I32", "data_offsets": [16, 20], "shape": []}, "__metadata__": {"k": "v"},
          "a": {"shape": [1, 2], "dtype": "F64", "data_offsets": [0, 16]}})",
      20, "read");
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[0].dtype == FileDtype::F64);
  CHECK(header.entries[0].shape == Shape{1, 2});
  CHECK(header.entries[1].name == "b");
  CHECK(header.entries[1].begin == 16);
  CHECK(header.entries[1].end == 20);
  CHECK(header.metadata.at("k") == "v");
}

TEST_CASE("every dtype of the format has its size, also where elements share bytes") {
  const std::vector<std::pair<std::string, u64>> bytes_of_eight{
      {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"BOOL", 8}, {"U8", 8},   {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8},     {"F8_E8M0", 8},     {"U16", 16}, {"I16", 16}, {"F16", 16},
      {"BF16", 16},   {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"U32", 32}, {"I32", 32}, {"F32", 32},
      {"C64", 64},    {"U64", 64},        {"I64", 64},        {"F64", 64}};
  for (const auto& [dtype, bytes] : bytes_of_eight) {
    const std::string& shown = dtype;
    CAPTURE(shown);
    const std::string header =
        R"({"w": {"dtype": ")" + dtype + R"(", "shape": [2, 4], "data_offsets": [0, )" + std::to_string(bytes) + "]}}";
    const TensorHeader parsed = parse_header(header, bytes, "read");
    CHECK(name_of(parsed.entries.at(0).dtype) == dtype);
    CHECK(is_floating(parsed.entries.at(0).dtype) == (dtype[0] == 'F' || dtype == "BF16"));
    CHECK(complaint(header, bytes + 1) != "");
  }
  CHECK(complaint(R"({"w": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}})", 2) ==
        "tensor 'w' of F4 [3] takes no whole number of bytes");
}

TEST_CASE("headers that are no JSON object of objects, each with its reason") {
  REQUIRE(complaint(one_tensor(good_fields), 8) == "");
  check_complaints({
      {"{", "the header is not valid JSON: the error is at byte 2"},
      {"{}x", "the header is not valid JSON: the error is at byte 3"},
      {std::string("{}\0hidden", 9), "the header has a zero byte"},
      {R"({"w": 1})", "the header has a number where none is allowed"},
      {R"({"w": []})", "the header has a list where none is allowed"},
      {R"({"w": null})", "the header has null where none is allowed"},
      {R"({"w": {}})", "tensor 'w' needs dtype, shape and data_offsets"},
      {R"({"__metadata__": {"a": 1}})", "the header has a number where none is allowed"},
      {R"({"__metadata__": {"a": {}}})", "the header has an object where none is allowed"},
      {R"({"__metadata__": "a"})", "the header has text where none is allowed"},
      {R"({"__metadata__": {"a": "", "a": ""}})", "metadata key 'a' appears twice"},
      {R"({"__metadata__": {}, "__metadata__": {}})", "the header has two sections of metadata"},
      {"{\"\\u001b[31m\\n\": {\"x\": 1}}", "tensor '?[31m\\n' has an unknown field 'x'"},
  });
}

TEST_CASE("tensors with missing, double, unknown or wrong fields, each with its reason") {
  check_complaints({
      {one_tensor(R"("dtype": "F32", "shape": [2])"), "tensor 'w' needs dtype, shape and data_offsets"},
      {one_tensor(R"("dtype": "F32", "data_offsets": [0, 8])"), "tensor 'w' needs dtype, shape and data_offsets"},
      {entry(R"(["F32"])", "[2]", "[0, 8]"), "the header has a list where none is allowed"},
      {one_tensor(good_fields + R"(, "shape": [2])"), "tensor 'w' has shape twice"},
      {one_tensor(good_fields + R"(, "extra": 1)"), "tensor 'w' has an unknown field 'extra'"},
      {R"({"w": {)" + good_fields + R"(}, "w": {)" + good_fields + "}}", "tensor 'w' appears twice"},
      {entry(R"("F128")", "[2]", "[0, 4]"), "tensor 'w' has an unknown dtype, 'F128'"},
      {entry(R"("BOOL")", "[2]", "[0, 8]"), "tensor 'w' has offsets [0, 8), but BOOL [2] takes 2 bytes"},
      {entry("32", "[2]", "[0, 8]"), "the header has a number where none is allowed"},
      {entry(R"("F32")", "2", "[0, 8]"), "the header has a number where none is allowed"},
      {entry(R"("F32")", R"("2")", "[0, 8]"), "the header has text where none is allowed"},
      {entry(R"("F32")", "[-2]", "[0, 8]"), "the header has a negative number where none is allowed"},
      {entry(R"("F32")", "[2.0]", "[0, 8]"),
       "the header has a number that is not a whole one below 2^64 where none is allowed"},
      {entry(R"("F32")", "[[2]]", "[0, 8]"), "the header has a list where none is allowed"},
      {entry(R"("F32")", "[true]", "[0, 8]"), "the header has true or false where none is allowed"},
      {entry(R"("F32")", "[{}]", "[0, 8]"), "the header has an object where none is allowed"},
  });
}

TEST_CASE("shapes and offsets that do not fit, each with its reason") {
  const std::string two = "tensor 'v' begins at byte ", rule = ": tensors may neither overlap nor leave a gap";
  check_complaints({
      {entry(R"("F32")", "[1, 1, 1, 1, 1, 1, 2]", "[0, 8]"), "tensor 'w' has more than 6 axes"},
      {entry(R"("F32")", "[2]", "[0]"), "tensor 'w' needs two offsets"},
      {entry(R"("F32")", "[2]", "[0, 4, 8]"), "tensor 'w' has more than 2 offsets"},
      {entry(R"("F32")", "[3]", "[0, 8]"), "tensor 'w' has offsets [0, 8), but F32 [3] takes 12 bytes"},
      {entry(R"("F64")", "[2]", "[0, 8]"), "tensor 'w' has offsets [0, 8), but F64 [2] takes 16 bytes"},
      {entry(R"("F32")", "[2]", "[8, 0]"), "tensor 'w' has offsets [8, 0), but F32 [2] takes 8 bytes"},
      {entry(R"("F32")", "[4611686018427387904, 4]", "[0, 8]"), "tensor 'w' has a shape that overflows"},
      {entry(R"("F32")", "[18446744073709551615]", "[0, 8]"), "tensor 'w' has a shape that overflows"},
      {entry(R"("F32")", "[0, 18446744073709551615]", "[0, 8]"), "tensor 'w' has a shape that overflows"},
      {entry(R"("F32")", "[2305843009213693952]", "[0, 8]"), "tensor 'w' has a shape that overflows"},
      {entry(R"("F32")", "[99999999999999999999]", "[0, 8]"),
       "the header has a number that is not a whole one below 2^64 where none is allowed"},
      {entry(R"("F32")", "[2]", "[4, 12]"), "tensor 'w' begins at byte 4 of the data, expected 0" + rule},
      {entry(R"("F32")", "[1]", "[0, 4]"), "its tensors take 4 bytes, the file holds 8"},
      {entry(R"("F32")", "[100]", "[0, 400]"), "is cut off: its tensors take 400 bytes, the file holds 8"},
      {two_tensors("[8, 12]"), two + "8 of the data, expected 4" + rule},
      {two_tensors("[0, 4]"), "tensor 'w' begins at byte 0 of the data, expected 4" + rule},
      {two_tensors("[2, 6]"), two + "2 of the data, expected 4" + rule},
  });
}

TEST_CASE("deep nesting and long names end at once") {
  CHECK(complaint(R"({"w":)" + std::string(100000, '['), 0) == "the header has a list where none is allowed");
  const std::string error = complaint("{\"" + std::string(50000, 'n') + "\": {\"x\": 1}}", 0);
  CHECK(error == "tensor '" + std::string(100, 'n') + "...' has an unknown field 'x'");
}
