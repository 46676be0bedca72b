// Chapter 9. Texts as tokens: alphabets, UTF-8, the split, blocks, and the text that comes with the program.
#include "apps/lm/text_data.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

namespace {

std::vector<i32> numbers(const Tensor& x) { return {x.data<i32>(), x.data<i32>() + x.count()}; }

}  // namespace

TEST_CASE("an alphabet is every character once, in order, and makes tokens of text and back") {
  const Alphabet alphabet("banana\n");
  CHECK(alphabet.size() == 4);
  CHECK(alphabet.text() == "\nabn");
  CHECK(alphabet.tokens("nab\n") == std::vector<i32>{3, 1, 2, 0});
  CHECK(alphabet.character(2) == "b");
  CHECK(Alphabet(alphabet.text()).text() == alphabet.text());
  CHECK_THROWS_WITH_AS(alphabet.tokens("nab it"), "text: character 4, ' ', is not one of the model's 4", Error);
  CHECK_THROWS_AS(alphabet.character(4), Error);
  CHECK_THROWS_AS(alphabet.character(-1), Error);
}

TEST_CASE("characters of several bytes are one token, and broken ones are named") {
  const Alphabet alphabet("z\u00e4\u20ac\U0001F600a");
  CHECK(alphabet.size() == 5);
  CHECK(alphabet.text() == "az\u00e4\u20ac\U0001F600");
  CHECK(alphabet.tokens("\u20ac\u00e4") == std::vector<i32>{3, 2});
  CHECK_THROWS_WITH_AS(Alphabet("ab\xff"), "text: is not UTF-8: byte 2 begins no character", Error);
  for (const std::string broken : {"\x80", "\xc3", "\xc3z", "\xe2\x82", "\xf0\x9f\x98", "\xf8\x88\x80\x80\x80"}) {
    CHECK_THROWS_AS(Alphabet{broken}, Error);
  }
}

TEST_CASE("what has the form of a character and is none is refused: RFC 3629, section 4") {
  for (const std::string none :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf7\xbf\xbf\xbf"}) {
    CHECK_THROWS_WITH_AS(Alphabet("ab" + none), "text: is not UTF-8: byte 2 begins no character", Error);
  }
  // Their neighbours on the other side of each border.
  CHECK(Alphabet("\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf").size() == 6);
}

TEST_CASE("a text begins after a new line, or with what stands first in the alphabet") {
  CHECK(Alphabet("b\na").beginning() == Alphabet("b\na").tokens("\n"));
  CHECK(Alphabet("\tba\n").beginning() == std::vector<i32>{1});
  CHECK(Alphabet("cba").beginning() == std::vector<i32>{0});
}

TEST_CASE("nine tenths are for training") {
  const TextData data = text_data("abcdefghijklmnopqrstuvwxyz", 2);
  CHECK(data.training.count() == 23);
  CHECK(numbers(data.validation) == std::vector<i32>{23, 24, 25});
  CHECK_THROWS_WITH_AS(text_data("abcdefghijklmnopqrstuvwxyz", 3), doctest::Contains("too short"), Error);
}

TEST_CASE("random blocks are pieces of the text, each with what follows, from its begin to its end") {
  const Tensor text = Tensor::of<i32>({6}, {10, 11, 12, 13, 14, 15});
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
  const Tensor text = Tensor::of<i32>({7}, {0, 1, 2, 3, 4, 5, 6});
  const TextBatch batch = blocks_from(text, 0, 2, 3);
  CHECK(numbers(batch.ids) == std::vector<i32>{0, 1, 2, 3, 4, 5});
  CHECK(numbers(batch.labels) == std::vector<i32>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(blocks_from(text, 1, 2, 3), Error);
}

TEST_CASE("an epoch of shuffled blocks has each once, one after another from a random beginning, in random order") {
  std::vector<i32> counted(43);
  for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<i32>(i);
  const Tensor text = Tensor::of<i32>({43}, counted);
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
  // A block is a function of its number: also for who begins in the middle, and across epochs.
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

TEST_CASE("files that cannot be read say why") {
  const TemporaryFolder folder;
  CHECK(small::error_of([&] { read_text(folder / "none"); }).find("No such file") != std::string::npos);
  CHECK(small::error_of([&] { read_text(folder / "."); }).ends_with("is a directory"));
  CHECK(small::error_of([&] { read_text("/dev/zero"); }).ends_with("is not a regular file"));
  std::ofstream(folder / "huge").flush();
  std::filesystem::resize_file(folder / "huge", std::uintmax_t{1} << 42);  // holes alone: takes no place
  CHECK(small::error_of([&] { read_text(folder / "huge"); }).find("too many for this machine's") != std::string::npos);
  std::ofstream(folder / "empty").flush();
  CHECK(small::error_of([&] { orrery::read_text(folder / "empty"); }).ends_with("empty is empty"));
  std::ofstream(folder / "some") << "a\r\nb";
  CHECK(orrery::read_text(folder / "some") == "a\r\nb");
}

TEST_CASE("the text that comes with the program is tinyshakespeare, split as nanoGPT splits it") {
  const std::string text = orrery::read_text(ORRERY_SOURCE_DIR "/apps/data/tinyshakespeare.txt");
  CHECK(text.size() == 1115394);
  const TextData data = text_data(text, 64);
  CHECK(data.alphabet.size() == 65);
  CHECK(data.training.count() == 1003854);
  CHECK(data.validation.count() == 111540);
}
