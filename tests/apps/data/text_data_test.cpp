// Chapter 9. Texts as tokens: alphabets, UTF-8, the split, and the text that comes with the program.
#include "apps/data/text_data.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/data/text_file.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

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
  for (const std::string broken : {"\x80", "\xc3", "\xc3z", "\xe2\x82", "\xf0\x9f\x98", "\xf8\x88\x80\x80\x80"}) {
    CHECK_THROWS_AS(Alphabet{broken}, Error);
  }
}

TEST_CASE("what has the form of a character and is none is refused: RFC 3629, section 4") {
  for (const std::string none :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf7\xbf\xbf\xbf"}) {
    CHECK_THROWS_WITH_AS(Alphabet("ab" + none), "text: is not UTF-8: byte 3 begins no character", Error);
  }
  // Their neighbours on the other side of each border.
  CHECK(Alphabet("\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf").size() == 6);
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
  const std::string far = std::string(3'000'000, 'a') + "\u00e4";
  struct Broken {
    std::string text, byte;
  };
  const std::vector<Broken> all{{"ab\xff" + std::string(10, 'a'), "byte 3 "},
                                {"ab\xc3", "byte 3 "},  // half a character at the end
                                {far + "\xe4 ", "byte 3000003 "}};
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
    CHECK(numbers(read_tokens({all}, tokenizer, 1000).text) == expected);
    std::string joined;
    for (const i32 token : numbers(read_tokens({one, two}, tokenizer, 1000).text)) joined += tokenizer.text(token);
    CHECK(joined == text);
    const TextLength length = length_of(in_memory, tokenizer);
    CHECK(length.tokens == static_cast<i64>(expected.size()) - 1);
    CHECK(length.bytes == static_cast<i64>(text.size() - tokenizer.text(expected[0]).size()));
    CHECK(length.characters == static_cast<i64>(characters - tokenizer.text(expected[0]).size()));
  }
}

TEST_CASE("pieces are learned from the part for training alone, an alphabet from all") {
  const TemporaryFolder folder;
  const auto lines = [](const std::string& line, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += line + "\n";
    return text;
  };
  // Nine tenths of the bytes have a, the last tenth has z.
  const std::string a = lines("aaaa aaaa", 90), z = lines("zzzz zzzz", 10);
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

TEST_CASE("of a long text a million tokens are for validation") {
  std::vector<i32> tokens(10'000'010, 1);
  const TextData data = split({short_text(tokens, 2)}, Tokenizer(Alphabet("ab")), 64);
  CHECK(data.validation.count() == 1'000'000);
  CHECK(data.training.count() == 9'000'010);
}

TEST_CASE("the text that comes with the program is tinyshakespeare, split as nanoGPT splits it") {
  const std::string text = orrery::read_text(ORRERY_SOURCE_DIR "/apps/data/tinyshakespeare.txt");
  CHECK(text.size() == 1115394);
  const TextData data = text_data(text, 64);
  CHECK(data.tokenizer.size() == 65);
  CHECK(data.training.count() == 1003854);
  CHECK(data.validation.count() == 111540);
}
