// Chapter 9. Tests of files of text: whole and in pieces, cut between characters, and as lines.
#include "apps/data/text_file.h"

#include <doctest/doctest.h>

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

TEST_CASE("a file that is empty, or of which nothing can be used, is one clear error") {
  const TemporaryFolder folder;
  const std::string empty = folder / "empty", text = folder / "text";
  set_contents(empty, "");
  set_contents(text, "abc");
  const auto use = [](size_t bytes) { return [bytes](const FilePiece&) { return bytes; }; };
  CHECK(small::error_of([&] { read_text(empty); }) == "text: " + empty + " is empty");
  CHECK(small::error_of([&] { read_in_pieces(empty, use(1)); }) == "text: " + empty + " is empty");
  CHECK(small::contains(small::error_of([] { read_text("/nowhere/text"); }), "/nowhere/text: No such file"));
  CHECK(read_text(text) == "abc");
  for (const size_t used : {size_t{0}, size_t{2}, size_t{4}}) {  // of the last piece all must be used
    CAPTURE(used);
    CHECK(small::error_of([&] { read_in_pieces(text, use(used)); }) ==
          "text: " + text + " cannot be used from byte 0 on");
  }
}
