// Chapter 9. Tests of files of text: whole and in pieces, cut between characters, as lines, as they come; one spelling
// and small letters are Python's, as tests/fixtures/make_unicode.py wrote them down.
#include "apps/data/text_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "apps/data/unicode.h"
#include "core/error.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

TEST_CASE("a character that the end cuts off is left out, and a whole one stays") {
  for (const std::string character : {"a", "\xC3\xA9", "\xE2\x80\xAE", "\xF0\x9F\x98\x80"}) {
    const std::string text = "x\xC3\xA9" + character;
    CAPTURE(text);
    CHECK(whole_characters(text) == text.size());
    for (size_t cut = 1; cut < character.size(); ++cut)
      CHECK(whole_characters(text.substr(0, text.size() - cut)) == text.size() - character.size());
  }
  CHECK(whole_characters("") == 0);
  CHECK(whole_characters("\xE2\x80") == 0);
  CHECK(whole_characters("\x80\x80\x80\x80") == 4);  // not UTF-8: whoever reads it will say so
}

TEST_CASE("lines have neither what ends them nor a byte order mark, which only the first line can have") {
  using Lines = std::vector<std::string_view>;
  CHECK(lines_of("") == Lines{});
  CHECK(lines_of("a\nb") == Lines{"a", "b"});
  CHECK(lines_of("a\nb\n") == Lines{"a", "b"});
  CHECK(lines_of("a\r\n\r\n\nb\rc\r\n") == Lines{"a", "", "", "b\rc"});
  CHECK(lines_of("\xEF\xBB\xBF"
                 "a\n\xEF\xBB\xBF"
                 "b") == Lines{"a",
                               "\xEF\xBB\xBF"
                               "b"});
}

TEST_CASE("the first byte that begins no character is found at every place") {
  const std::string text = "0123456789\xC3\xA9 and more \xF0\x9F\x98\x80 text";
  CHECK(first_not_utf8(text) == text.npos);
  CHECK(first_not_utf8("") == std::string_view::npos);
  for (const size_t at : {size_t{0}, size_t{7}, size_t{8}, size_t{12}, text.size()}) {
    CAPTURE(at);
    std::string damaged = text;
    damaged.insert(at, "\xFF");
    CHECK(first_not_utf8(damaged) == at);
  }
}

TEST_CASE("a file is read in pieces, each of which begins behind what was used of the one before") {
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < 2'500'000) text += std::to_string(text.size()) + ' ';
  set_contents(folder / "text", text);
  std::string read;
  i64 pieces = 0, last_ones = 0;
  read_in_pieces(folder / "text", [&](const FilePiece& piece) {
    CHECK(piece.offset == read.size());
    ++pieces;
    last_ones += piece.last;
    const size_t used = piece.last ? piece.bytes.size() : piece.bytes.rfind(' ') + 1;
    read += piece.bytes.substr(0, used);
    return used;
  });
  CHECK(read == text);
  CHECK(pieces == 3);
  CHECK(last_ones == 1);
}

TEST_CASE("every character comes once, with its code point, its place and its length") {
  std::vector<std::array<size_t, 3>> found;
  for_each_character("a\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80z", [&](size_t code, size_t at, size_t bytes) {
    found.push_back({code, at, bytes});
  });
  CHECK(found ==
        std::vector<std::array<size_t, 3>>{{'a', 0, 1}, {0xE9, 1, 2}, {0x202E, 3, 3}, {0x1F600, 6, 4}, {'z', 10, 1}});
  for_each_character("", [](size_t, size_t, size_t) { FAIL("there is no character"); });
}

TEST_CASE("a byte that begins no character is an error that names it, after the characters before it") {
  size_t seen = 0;
  CHECK(small::error_of([&] { for_each_character("ab\xFF", [&](size_t, size_t, size_t) { ++seen; }); }) ==
        "text: is not UTF-8: byte 3 begins no character");
  CHECK(seen == 2);
}

namespace {

const auto never = [] { return false; };

// Both ends of a pipe.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { REQUIRE(::pipe(ends) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void write(const std::string& text) const { REQUIRE(::write(ends[1], text.data(), text.size()) == std::ssize(text)); }
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
};

std::vector<std::string> texts(const std::vector<Line>& lines) {
  std::vector<std::string> result;
  for (const Line& line : lines) result.push_back(line.is_whole ? line.text : "(too long)");
  return result;
}

// All lines of a file with these contents, in as many calls as it takes.
std::vector<std::string> lines_of_file(const std::string& contents, size_t most) {
  const TemporaryFolder folder;
  set_contents(folder / "lines", contents);
  const int file = ::open((folder / "lines").c_str(), O_RDONLY);
  REQUIRE(file >= 0);
  LineReader reader(file, "lines");
  std::vector<std::string> all;
  while (true) {
    const std::vector<std::string> part = texts(reader.read(most, never));
    CHECK(part.size() <= most);
    if (part.empty()) break;
    all.insert(all.end(), part.begin(), part.end());
  }
  ::close(file);
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("what has arrived is returned at once, and what has not is waited for") {
  Pipe pipe;
  LineReader reader(pipe.ends[0], "a pipe");
  pipe.write("one\n");
  CHECK(texts(reader.read(10, never)) == Texts{"one"});
  pipe.write("two\nthree\nfo");
  CHECK(texts(reader.read(10, never)) == Texts{"two", "three"});
  std::thread writer([&] {
    ::usleep(20'000);
    pipe.write("ur\n");
  });
  CHECK(texts(reader.read(10, never)) == Texts{"four"});
  writer.join();
  pipe.write("five\nsix\nseven\n");
  CHECK(texts(reader.read(2, never)) == Texts{"five", "six"});
  CHECK(texts(reader.read(2, never)) == Texts{"seven"});
  pipe.write("the last");
  pipe.close_writer();
  CHECK(texts(reader.read(2, never)) == Texts{"the last"});
  CHECK(reader.read(2, never).empty());
  CHECK(reader.read(2, never).empty());
}

TEST_CASE("it stops waiting when the run is stopped") {
  const Pipe pipe;
  LineReader reader(pipe.ends[0], "a pipe");
  pipe.write("no line yet");
  CHECK(reader.read(10, [] { return true; }).empty());
}

TEST_CASE("ends of lines: carriage returns, a missing last one, empty lines, zero bytes, a byte order mark") {
  for (const size_t most : {1u, 2u, 100u}) {
    CHECK(lines_of_file("", most).empty());
    CHECK(lines_of_file("\n", most) == Texts{""});
    CHECK(lines_of_file("a\r\nb\n\nc", most) == Texts{"a", "b", "", "c"});
    CHECK(lines_of_file("a\rb\r\n\r\n", most) == Texts{"a\rb", ""});
    CHECK(lines_of_file("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n", most) == Texts{"one", "\xEF\xBB\xBFtwo"});
    CHECK(lines_of_file(std::string("a\0b\n", 4), most) == Texts{std::string("a\0b", 3)});
  }
}

TEST_CASE("a line longer than a megabyte is left out, and the lines around it stay") {
  const std::string longest(LineReader::longest_line, 'x'), longer = longest + 'x', far_longer = longer + longer;
  CHECK(lines_of_file("a\n" + longest + "\nb\n", 10) == Texts{"a", longest, "b"});
  CHECK(lines_of_file("a\n" + longer + "\nb\n", 10) == Texts{"a", "(too long)", "b"});
  CHECK(lines_of_file("a\n" + far_longer + "\r\nb\n" + longer, 10) == Texts{"a", "(too long)", "b", "(too long)"});
}

TEST_CASE("what cannot be read is an error that names it") {
  const TemporaryFolder folder;
  const int descriptor = ::open((folder / "").c_str(), O_RDONLY);
  LineReader reader(descriptor, "a folder");
  CHECK_THROWS_WITH_AS(reader.read(1, never), "read a folder: Is a directory", Error);
  ::close(descriptor);
}

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
template <class Each> void for_each_known(const Each& each) {
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
