// Chapter 9. Texts as tokens: alphabets, UTF-8, the split, in memory and in a mapped file; and blocks of them, at
// random, in a row, and each once in an epoch.
#include "apps/data/text_data.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/data/text.h"
#include "apps/data/text_file.h"
#include "core/error.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;

namespace {

std::vector<i32> numbers(const Text& text) {
  std::vector<i32> result(static_cast<size_t>(text.count()));
  text.copy(0, result);
  return result;
}

std::string error_of_reading(const std::vector<std::string>& paths) {
  return small::error_of([&] { read_tokens(paths, Tokenizer(Alphabet("a\u00e4b"))); });
}

void alphabet_of_file(const std::string& path) { tokenizer_of({.training = {path}}, TokenKind::chars, 0); }

}  // namespace

TEST_CASE("an alphabet is every character once, in order, and makes tokens of text and back") {
  const Alphabet alphabet("banana\n");
  CHECK(alphabet.size() == 4);
  CHECK(alphabet.text() == "\nabn");
  CHECK(alphabet.tokens("nab\n") == std::vector<i32>{3, 1, 2, 0});
  CHECK(alphabet.character(2) == "b");
  CHECK(Alphabet(alphabet.text()).text() == alphabet.text());
  CHECK_THROWS_WITH_AS(Alphabet("ab").tokens("a\nb"), "text: character 2, '\\n', is not one of the model's 2", Error);
  CHECK_THROWS_WITH_AS(alphabet.tokens("nab it"), "text: character 4, ' ', is not one of the model's 4", Error);
  CHECK_THROWS_AS(alphabet.character(4), Error);
  CHECK_THROWS_AS(alphabet.character(-1), Error);
}

TEST_CASE("characters of several bytes are one token, and broken ones are named") {
  const Alphabet alphabet("z\u00e4\u20ac\U0001F600a");
  CHECK(alphabet.size() == 5);
  CHECK(alphabet.text() == "az\u00e4\u20ac\U0001F600");
  CHECK(alphabet.tokens("\u20ac\u00e4") == std::vector<i32>{3, 2});
  CHECK_THROWS_WITH_AS(Alphabet("ab\xff"), "text: is not UTF-8: byte 3 begins no character", Error);
}

TEST_CASE("a byte order mark at the beginning of a file is no part of the text") {
  const TemporaryFolder folder;
  const std::string mark = "\xEF\xBB\xBF", text = small::repeated("the small red boat ", 20);
  const std::string plain = written(folder / "plain", text), marked = written(folder / "marked", mark + text);
  for (const TokenKind kind : {TokenKind::chars, TokenKind::bytes, TokenKind::sentencepiece}) {
    const Tokenizer expected = tokenizer_of({.training = {plain, plain}, .validation = plain}, kind, 300),
                    tokenizer = tokenizer_of({.training = {marked, marked}, .validation = marked}, kind, 300);
    CHECK(tokenizer.metadata() == expected.metadata());
    CHECK(numbers(read_tokens({marked, marked}, tokenizer).text) ==
          numbers(read_tokens({plain, plain}, tokenizer).text));
  }
  CHECK(checksum_of({marked}) == checksum_of({plain}));
  CHECK(
      small::contains(small::error_of([&] { alphabet_of_file(written(folder / "bad", mark + "ab\xff")); }), "byte 6 "));
  CHECK(read_tokens({written(folder / "only", mark)}, Tokenizer::of_bytes()).text.count() == 0);
}

TEST_CASE("nine tenths are for training") {
  const TextData data = text_data("abcdefghijklmnopqrstuvwxyz", 2);
  CHECK(data.training.count() == 23);
  CHECK(numbers(data.validation) == std::vector<i32>{23, 24, 25});
  CHECK_THROWS_WITH_AS(text_data("abcdefghijklmnopqrstuvwxyz", 3), doctest::Contains("too short"), Error);
}

TEST_CASE("files that cannot be read say why") {
  const TemporaryFolder folder;
  CHECK(small::error_of([&] { read_text(folder / "none"); }).find("No such file") != std::string::npos);
  CHECK(small::error_of([&] { read_text(folder / "."); }).ends_with("is a directory"));
  CHECK(small::error_of([&] { read_text("/dev/zero"); }).ends_with("is not a regular file"));
  for (const char* name : {"none", ".", "empty"}) {
    std::ofstream(folder / "empty").flush();
    CHECK(error_of_reading({folder / name}) == small::error_of([&] { read_text(folder / name); }));
  }
  std::ofstream(folder / "huge").flush();
  std::filesystem::resize_file(folder / "huge", std::uintmax_t{1} << 42);  // holes alone: takes no place
  CHECK(small::error_of([&] { read_text(folder / "huge"); }).find("too many for this machine's") != std::string::npos);
  std::ofstream(folder / "empty").flush();
  CHECK(small::error_of([&] { orrery::read_text(folder / "empty"); }).ends_with("empty is empty"));
  std::ofstream(folder / "some") << "a\r\nb";
  CHECK(orrery::read_text(folder / "some") == "a\r\nb");
}

TEST_CASE("what is not UTF-8 is named by its file and byte, and only bytes take it") {
  const TemporaryFolder folder;
  const std::string good = written(folder / "good", "ab\u00e4"), path = folder / "broken";
  const std::string far = std::string(1'100'000, 'a') + "\u00e4";
  struct Broken {
    std::string text, byte;
  };
  const std::vector<Broken> all{{"ab\xff" + std::string(10, 'a'), "byte 3 "},
                                {"ab\xc3", "byte 3 "},  // half a character at the end
                                {far + "\xe4 ", "byte 1100003 "}};
  for (const Broken& broken : all) {
    written(path, broken.text);
    for (const TokenKind kind : {TokenKind::chars, TokenKind::sentencepiece}) {
      const std::string error = small::error_of([&] {
        read_tokens({good, path}, tokenizer_of({.training = {good, path}}, kind, 300));
      });
      CHECK(error.starts_with("read " + path + ": text: is not UTF-8: " + broken.byte));
      CHECK(error.ends_with("--tokens bytes takes any file"));
    }
    CHECK(error_of_reading({good, path}).starts_with("read " + path + ": text: is not UTF-8: " + broken.byte));
    const FileText bytes = read_tokens({good, path}, Tokenizer::of_bytes());
    CHECK(bytes.text.count() == static_cast<i64>(4 + broken.text.size()));
    CHECK_FALSE(bytes.is_utf8);
  }
  CHECK(read_tokens({good}, Tokenizer::of_bytes()).is_utf8);
}

TEST_CASE("files are one text in their order, the same in memory and in a file, for every kind of tokens") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 1'100'000; ++i) text += "line " + std::to_string(i) + " of \u00e4\u20ac\U0001F600\n";
  const size_t half = text.find('i', 1'060'000);  // within a line
  const std::string all = written(folder / "all", text), one = written(folder / "one", text.substr(0, half)),
                    two = written(folder / "two", text.substr(half));
  CHECK(checksum_of({one, two}) == checksum_of({all}));
  CHECK(checksum_of({two, one}) != checksum_of({all}));
  const Tokenizer pieces(Vocabulary::of_running_text({"line 12345 of", " 67890"}, 300));
  const size_t characters = Alphabet(text).tokens(text).size();
  for (const Tokenizer& tokenizer :
       {tokenizer_of({.training = {two, one}}, TokenKind::chars, 0), Tokenizer::of_bytes(), pieces}) {
    CAPTURE(static_cast<int>(tokenizer.kind()));
    const std::vector<i32> expected = tokenizer.tokens(text);
    const Text in_memory = read_tokens({all}, tokenizer).text;
    CHECK(numbers(in_memory) == expected);
    std::string joined;
    for (const i32 token : numbers(read_tokens({one, two}, tokenizer, 1000).text)) joined += tokenizer.text(token);
    CHECK(joined == text);
    const TextLength length = length_of(in_memory, tokenizer);
    CHECK(length.tokens == static_cast<i64>(expected.size()) - 1);
    CHECK(length.bytes == static_cast<i64>(text.size() - tokenizer.text(expected[0]).size()));
    CHECK(length.characters == static_cast<i64>(characters - tokenizer.text(expected[0]).size()));
  }
}

TEST_CASE("a separator stands between files, once, and one that ends a file needs no line feed") {
  const TemporaryFolder folder;
  const std::string fixture = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2/";
  Tokenizer tokenizer(BytePairs::read(fixture + "vocab.json", fixture + "merges.txt"));
  const std::vector<i32> whole = tokenizer.tokens("the dog\n"), rest = tokenizer.tokens("the cat\n");
  tokenizer.separate_at("--");
  std::vector<i32> expected = whole;
  expected.push_back(*tokenizer.separator());
  expected.insert(expected.end(), rest.begin(), rest.end());
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  const std::string second = file("second", "the cat\n");
  for (const std::string first : {"the dog\n", "the dog\n--", "the dog\n--\n"}) {
    CAPTURE(first);
    const Text text = read_tokens({file("first", first), second}, tokenizer).text;
    CHECK(numbers(text) == expected);
    CHECK(count_of(text, *tokenizer.separator()) == 1);
  }
}

TEST_CASE("pieces are learned from the part for training alone, an alphabet from all") {
  const TemporaryFolder folder;
  // Nine tenths of the bytes have a, the last tenth has z.
  const std::string a = small::repeated("aaaa aaaa\n", 90), z = small::repeated("zzzz zzzz\n", 10);
  const std::string both = written(folder / "both", a + z), one = written(folder / "one", a),
                    two = written(folder / "two", z);
  const auto has_z = [](const Tokenizer& tokenizer) {  // as more than the byte, which every vocabulary has
    return tokenizer.tokens("zzzz").size() < 4;
  };
  constexpr TokenKind pieces = TokenKind::sentencepiece;
  CHECK_FALSE(has_z(tokenizer_of({.training = {both}}, pieces, 300)));
  CHECK_FALSE(has_z(tokenizer_of({.training = {one, two}}, pieces, 300)));
  CHECK_FALSE(has_z(tokenizer_of({.training = {one}, .validation = two}, pieces, 300)));
  CHECK(has_z(tokenizer_of({.training = {one, two}, .validation = one}, pieces, 300)));
  CHECK(tokenizer_of({.training = {one}, .validation = two}, TokenKind::chars, 0).size() == 4);  // a, z, space, line
}

TEST_CASE("a separate text for validation is taken whole, and a text that is too short is refused") {
  const Tokenizer tokenizer{Alphabet("ab")};
  const auto text_of = [&](const std::string& text) { return FileText{short_text(tokenizer.tokens(text), 2)}; };
  const TextData data = joined(text_of("aaaaaa"), text_of("bbb"), tokenizer, 2);
  CHECK(numbers(data.training) == std::vector<i32>(6, 0));
  CHECK(numbers(data.validation) == std::vector<i32>(3, 1));
  CHECK(small::error_of([&] { joined(text_of("aaaa"), text_of("bb"), tokenizer, 2); }) ==
        "lm: a text for validation of 2 characters is too short: it must be longer than a block of 2");
  CHECK(small::error_of([&] { joined(text_of("aaa"), text_of("bbb"), tokenizer, 2); }) ==
        "lm: a text for training of 3 characters is too short: it must have at least two blocks of 2");
}

TEST_CASE("bits count for characters and for bytes, whatever the tokens are") {
  CHECK(in_bits(std::log(2.0), {10, 20, 40}, true) == "0.5000 bits per character, 0.2500 per byte");
  CHECK(in_bits(std::log(4.0), {10, 20, 40}, false) == "0.5000 bits per byte");
  CHECK(in_bits(1, {10, 10, 10}, true) == "1.4427 bits per character, 1.4427 per byte");
}

TEST_CASE("the text that comes with the program is tinyshakespeare, split as nanoGPT splits it") {
  const std::string text = orrery::read_text(ORRERY_SOURCE_DIR "/apps/data/tinyshakespeare.txt");
  CHECK(text.size() == 1115394);
  const TextData data = text_data(text, 64);
  CHECK(data.tokenizer.size() == 65);
  CHECK(data.training.count() == 1003854);
  CHECK(data.validation.count() == 111540);
}

namespace {

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
      CHECK(numbers(text) == tokens);
      const Text part = text.part(10, 900).part(5, 20);
      CHECK(part.count() == 15);
      CHECK(numbers(part) == std::vector<i32>(tokens.begin() + 15, tokens.begin() + 30));
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

namespace {

std::vector<i32> numbers(const Tensor& x) { return {x.data<i32>(), x.data<i32>() + x.count()}; }

// 0, 1, 2, ...
Text counted_text(i32 count) {
  std::vector<i32> tokens;
  for (i32 i = 0; i < count; ++i) tokens.push_back(i);
  return short_text(tokens, std::max(count, 1));
}

}  // namespace

TEST_CASE("random blocks are pieces of the text, each with what follows, from its beginning to its end") {
  const Text text = short_text(std::vector<i32>{10, 11, 12, 13, 14, 15}, 16);
  Rng rng(1);
  std::vector<bool> seen(16);
  for (int i = 0; i < 50; ++i) {
    const TextBatch batch = random_blocks(text, 3, 4, rng);
    CHECK(batch.ids.shape() == Shape{3, 4});
    for (i64 j = 0; j < 12; ++j) {
      CHECK(batch.labels.at(j) == batch.ids.at(j) + 1);
      CHECK((j % 4 == 0 || batch.ids.at(j) == batch.ids.at(j - 1) + 1));
    }
    for (i64 b = 0; b < 3; ++b) seen[static_cast<size_t>(batch.ids.at(b * 4))] = true;
  }
  CHECK(seen[10]);
  CHECK(seen[11]);
  CHECK_FALSE(seen[12]);
  CHECK_THROWS_AS(random_blocks(text, 1, 6, rng), Error);
}

TEST_CASE("blocks in a row cover the text") {
  const Text text = counted_text(7);
  const TextBatch batch = blocks_from(text, 0, 2, 3, 3);
  CHECK(numbers(batch.ids) == std::vector<i32>{0, 1, 2, 3, 4, 5});
  CHECK(numbers(batch.labels) == std::vector<i32>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(blocks_from(text, 1, 2, 3, 3), Error);
  CHECK(numbers(blocks_from(text, 1, 3, 3, 1).ids) == std::vector<i32>{1, 2, 3, 2, 3, 4, 3, 4, 5});
}

TEST_CASE("an epoch of shuffled blocks has each once, one after another from a random beginning, in random order") {
  const Text text = counted_text(43);
  constexpr i64 length = 4;
  ShuffledBlocks shuffled(text, length, Rng(1, 5));
  const i64 count = shuffled.in_epoch();
  REQUIRE(count == 9);  // from whichever beginning: 3 + 9 * 4 + 1 characters fit
  std::vector<std::vector<i32>> orders;
  std::vector<i32> beginnings;
  for (i64 epoch = 0; epoch < 20; ++epoch) {
    const TextBatch batch = shuffled.batch(epoch * count, count);
    std::vector<i32> begins;
    for (i64 b = 0; b < count; ++b) {
      begins.push_back(batch.ids.at(b * length));
      for (i64 j = 0; j < length; ++j) {
        CHECK(batch.ids.at(b * length + j) == begins.back() + j);
        CHECK(batch.labels.at(b * length + j) == begins.back() + j + 1);
      }
    }
    orders.push_back(begins);
    std::sort(begins.begin(), begins.end());
    beginnings.push_back(begins[0]);
    CHECK(begins[0] < length);
    for (size_t b = 1; b < begins.size(); ++b) CHECK(begins[b] == begins[b - 1] + length);
  }
  for (i32 beginning = 0; beginning < length; ++beginning)
    CHECK(std::find(beginnings.begin(), beginnings.end(), beginning) != beginnings.end());
  std::sort(orders.begin(), orders.end());
  CHECK(std::adjacent_find(orders.begin(), orders.end()) == orders.end());
  // A block depends only on its number, also if one begins in the middle, and across epochs.
  ShuffledBlocks other(text, length, Rng(1, 5)), different(text, length, Rng(2, 5));
  const TextBatch across = other.batch(count - 2, 5), again = shuffled.batch(count - 2, 5);
  CHECK(numbers(across.ids) == numbers(again.ids));
  CHECK(numbers(different.batch(count - 2, 5).ids) != numbers(across.ids));
  CHECK(numbers(other.batch(3, 2 * count + 1).ids) == numbers(shuffled.batch(3, 2 * count + 1).ids));  // whole epochs
  ShuffledBlocks single(text, text.count() / 2, Rng(1, 5));
  CHECK(single.in_epoch() == 1);
  CHECK(single.batch(0, 3).ids.size(0) == 3);
  CHECK_THROWS_WITH_AS(ShuffledBlocks(text, 22, Rng(1)), doctest::Contains("too short for blocks of 22"), Error);
}

TEST_CASE("an order that is computed has every number once, and another key gives another order") {
  for (const i64 count : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
    CAPTURE(count);
    std::vector<i64> order;
    i64 in_place = 0;
    for (i64 i = 0; i < count; ++i) {
      order.push_back(permuted(i, count, 12345));
      in_place += order.back() == i;
    }
    if (count >= 1000) CHECK(in_place < 10);
    std::sort(order.begin(), order.end());
    for (i64 i = 0; i < count; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  }
  i64 same = 0;
  for (i64 i = 0; i < 1000; ++i) same += permuted(i, 1000, 1) == permuted(i, 1000, 2);
  CHECK(same < 20);
  CHECK(permuted(7, i64{1} << 40, 3) < i64{1} << 40);
}
