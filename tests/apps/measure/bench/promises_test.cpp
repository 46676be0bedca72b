// Chapter 9. Tests of `orrery bench promises`: denormal numbers are denormal, and enough saved tensors are counted.
#include "apps/measure/bench/promises.h"

#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

using namespace orrery;

namespace {

i64 matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator());
}

// Saved tensors that an operation of a source has, at most: those of the struct that declares most of them, and all
// those of the autograd headers that the source includes. Fails if `Saved` is used in a way that these patterns do not
// match, for it would then not be counted.
i64 saved_with_headers(const std::string& path, std::set<std::string>& seen) {
  if (path == "autograd/saved.h" || !seen.insert(path).second) return 0;
  CAPTURE(path);
  std::ifstream in(ORRERY_SOURCE_DIR "/" + path);
  REQUIRE(in);
  const std::string text =
      std::regex_replace(std::string{std::istreambuf_iterator<char>(in), {}}, std::regex("//.*"), "");
  const std::regex struct_or_declaration(R"(\nstruct |\bSaved (\w[\w{}, ]*);)"),
      include(R"re(#include "(autograd/[\w/]+\.h)")re");
  const bool is_header = path.ends_with(".h");
  i64 saved = 0, in_struct = 0, declarations = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), struct_or_declaration), end; match != end; ++match) {
    if (!(*match)[1].matched) {
      in_struct = is_header ? in_struct : 0;
      continue;
    }
    ++declarations;
    in_struct += 1 + matches((*match)[1], ",");
    saved = std::max(saved, in_struct);
  }
  CHECK(matches(text, R"(\bSaved\b)") == declarations + matches(text, R"(\bSaved\()"));
  for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match)
    saved += saved_with_headers((*match)[1], seen);
  return saved;
}

}  // namespace

TEST_CASE("denormal weights are denormal, of both signs, and different") {
  Rng rng(1);
  Tensor weight = Tensor::empty({100});
  make_denormal(weight, rng);
  i64 negative = 0;
  for (i64 i = 0; i < weight.count(); ++i) {
    // By its bits: to comparisons, which take denormal numbers as zero, it is 0.
    const u32 bits = std::bit_cast<u32>(weight.data<float>()[i]), magnitude = bits & 0x7FFFFFFF;
    CHECK(magnitude > 0);
    CHECK(magnitude < 0x00800000);  // the smallest normal number
    negative += bits != magnitude;
  }
  CHECK(negative > 20);
  CHECK(negative < 80);
  CHECK(std::bit_cast<u32>(weight.data<float>()[0]) != std::bit_cast<u32>(weight.data<float>()[1]));
}

TEST_CASE("no operation of a Transformer or a GPT saves more tensors than the bench counts") {
  const std::set<std::string> of_other_models{"attentive_gru", "convolution", "gru"};
  i64 most = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/autograd/ops")) {
    if (file.path().extension() != ".cpp" || of_other_models.contains(file.path().stem())) continue;
    const std::string path = std::filesystem::relative(file.path(), ORRERY_SOURCE_DIR);
    CAPTURE(path);
    std::set<std::string> seen;
    const i64 saved = saved_with_headers(path, seen);
    CHECK(saved <= most_saved);
    most = std::max(most, saved);
  }
  CHECK(most == most_saved);
}
