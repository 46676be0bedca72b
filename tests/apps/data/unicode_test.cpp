// Chapter 9. Tests of one spelling and of small letters: Python's, as tests/fixtures/make_unicode.py wrote them down.
#include "apps/data/unicode.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

namespace {

constexpr size_t all_codes = 0x110000;

const nlohmann::json& python() {
  static const nlohmann::json fixture =
      nlohmann::json::parse(contents(std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/unicode.json"));
  return fixture;
}

std::vector<bool> codes_in(const std::string& name) {
  std::vector<bool> found(all_codes);
  for (const nlohmann::json& range : python().at(name))
    for (size_t code = range[0]; code <= range[1]; ++code) found[code] = true;
  return found;
}

std::string utf8(size_t code) {
  const auto byte = [](size_t bits) { return static_cast<char>(bits); };
  const auto next = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), next(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), next(6), next(0)};
  return {byte(0xF0 | code >> 18), next(12), next(6), next(0)};
}

// Calls each(code) for the characters that Python's Unicode knows; a newer one may know more.
template <class Each>
void for_each_known(const Each& each) {
  const std::vector<bool> unassigned = codes_in("unassigned");
  for (size_t code = 0; code < all_codes; ++code)
    if (!unassigned[code] && (code < 0xD800 || code > 0xDFFF)) each(code);
}

}  // namespace

TEST_CASE("the small letter of every character is Python's") {
  std::map<size_t, std::string> small;
  for (const nlohmann::json& pair : python().at("small")) small[pair[0]] = pair[1];
  CHECK(small.size() > 1400);
  size_t wrong = 0;
  for_each_known([&](size_t code) {
    const auto other = small.find(code);
    wrong += lowercase(utf8(code)) != (other == small.end() ? utf8(code) : other->second);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a sigma is final where Python's is, whatever stands before it or after it") {
  const std::string sigma = "\u03a3", final_sigma = "\u03c2";
  const std::vector<bool> ends = codes_in("ends"), passed = codes_in("passed");
  size_t wrong = 0;
  for_each_known([&](size_t code) {
    const std::string c = utf8(code);
    wrong += lowercase(c + sigma).ends_with(final_sigma) != ends[code];
    wrong += lowercase("a" + c + sigma).ends_with(final_sigma) != passed[code];
    // After a sigma, letters make it no final one, and what may stand inside a word hides what follows.
    wrong += lowercase("a" + sigma + c).starts_with("a" + final_sigma) != !ends[code];
    wrong += lowercase("a" + sigma + c + "a").starts_with("a" + final_sigma) != !passed[code];
  });
  CHECK(wrong == 0);
  CHECK(lowercase("\u00c4\u1e9e\u03a3 \u0391\u03a3 \U00010400Z") == "\u00e4\u00df\u03c2 \u03b1\u03c2 \U00010428z");
  CHECK(lowercase("\u03c2\u03a3 \u03a3\u03c2") == "\u03c2\u03c2 \u03c3\u03c2");
}

TEST_CASE("white space is Python's") {
  std::vector<size_t> found;
  for (size_t code = 0; code < all_codes; ++code)
    if (is_white_space(code)) found.push_back(code);
  CHECK(found == python().at("space").get<std::vector<size_t>>());
}

TEST_CASE("lines are spelled in one way: spaces, nothing invisible, composed letters") {
  for (const nlohmann::json& pair : python().at("lines")) {
    const std::string line = pair[0], spelled = pair[1];
    CHECK(normalized(line) == spelled);
    CHECK(normalized(spelled) == spelled);
  }
  CHECK(normalized("a\u00a0b\tc\u202fd\u3000e\u2028f\rg") == "a b c d e f g");
  CHECK(normalized("re\u00add \u200bbo\ufeffat") == "red boat");
  CHECK(normalized("Bru\u00ad\u0308cke") == "Br\u00fccke");
  CHECK(normalized(" a  b ") == " a  b ");  // no space is left out: the bits of older trainings stay
  CHECK_THROWS_AS(normalized("a\xff"), Error);
  const std::string many = "e" + small::repeated("\u0301\u0316", 100'000);
  CHECK(normalized(many) == many);  // to put so many marks in order would take very long
}
