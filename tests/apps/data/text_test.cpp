// Chapter 9. Texts as tokens in memory and in a mapped file: the same tokens, and little memory however long they are.
#include "apps/data/text.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "apps/data/blocks.h"
#include "apps/data/text_data.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;

namespace {

std::vector<i32> tokens_in(const Text& text) {
  std::vector<i32> tokens(static_cast<size_t>(text.count()));
  text.copy(0, tokens);
  return tokens;
}

// "VmHWM", the most memory that this process had, or "VmRSS", what it has now, in MB.
i64 megabytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) >> 10;
  return 0;
}

}  // namespace

TEST_CASE("tokens come back as they went in, in one, two and four bytes, from memory and from a file") {
  for (const i64 kinds : {256, 257, 65536, 65537, 1 << 20}) {
    CAPTURE(kinds);
    std::vector<i32> tokens;
    for (i32 i = 0; i < 1000; ++i) tokens.push_back(static_cast<i32>(i * 7919 % kinds));
    tokens.push_back(static_cast<i32>(kinds - 1));
    TextWriter in_memory(kinds), in_file(kinds, 100);
    for (TextWriter* writer : {&in_memory, &in_file}) {
      for (size_t at = 0; at < tokens.size(); at += 77)
        writer->add(std::span(tokens).subspan(at, std::min<size_t>(77, tokens.size() - at)));
      const Text text = writer->finish();
      CHECK(tokens_in(text) == tokens);
      const Text part = text.part(10, 900).part(5, 20);
      CHECK(part.count() == 15);
      CHECK(tokens_in(part) == std::vector<i32>(tokens.begin() + 15, tokens.begin() + 30));
    }
  }
}

TEST_CASE("a text refuses tokens it cannot hold, and blocks and parts it does not have") {
  TextWriter writer(5);
  CHECK(error_of([&] { writer.add(std::vector<i32>{1, 5}); }) == "text: there is no token 5");
  CHECK(error_of([&] { writer.add(std::vector<i32>{-1}); }) == "text: there is no token -1");
  const Text text = short_text(std::vector<i32>{0, 1, 2}, 5);
  std::vector<i32> two(2);
  CHECK(error_of([&] { text.copy(2, two); }) == "text: 2 tokens from 2 on do not fit a text of 3");
  CHECK(small::contains(error_of([&] { text.copy(-1, two); }), "do not fit"));
  CHECK(small::contains(error_of([&] { text.part(2, 4); }), "there is no part from 2 to 4 in 3 tokens"));
  CHECK(small::contains(error_of([&] { text.part(2, 1); }), "there is no part"));
  CHECK(short_text({}, 5).count() == 0);
}

TEST_CASE("a long text takes little memory, and its blocks are those of the text in memory") {
  const TemporaryFolder folder;
  const std::string path = folder / "long";
  constexpr i64 length = 80'000'000;
  std::ofstream(path) << "begin";
  std::filesystem::resize_file(path, length);   // holes alone: takes no place
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM begins anew
  [[maybe_unused]] const i64 before = megabytes("VmHWM");
  const FileText file = read_tokens({path}, Tokenizer::of_bytes());
  const TextData data = split(file, Tokenizer::of_bytes(), 64);
  CHECK(data.training.count() == length - 1'000'000);
  CHECK(data.validation.count() == 1'000'000);
  ShuffledBlocks shuffled(data.training, 64, Rng(1));
  CHECK(shuffled.batch(0, 24).ids.count() == 24 * 64);
  CHECK(length_of(data.validation, data.tokenizer).tokens == 999'999);
#ifndef ORRERY_SANITIZED  // AddressSanitizer keeps memory that was given back
  CHECK(megabytes("VmHWM") - before < 60);
#endif
  std::vector<i32> first(6);
  data.training.copy(0, first);
  CHECK(first == std::vector<i32>{'b', 'e', 'g', 'i', 'n', 0});
}
