// Chapter 1. Tests of errors: operation, rule, details, the harmless text of others; and of UTF-8.
#include "core/error.h"

#include <doctest/doctest.h>

#include <string>

#include "core/utf8.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("an error says the operation and the rule") {
  CHECK(error_of([] { fail("matmul", "inner sizes differ (", 64, " != ", 128, ")"); }) ==
        "matmul: inner sizes differ (64 != 128)");
}

TEST_CASE("check throws only when the rule is broken") {
  CHECK(error_of([] { check(true, "op", "never"); }).empty());
  CHECK(error_of([] { check(1 + 1 == 3, "op", "two is not ", 3); }) == "op: two is not 3");
}

namespace {
/// Counts how often it is written.
struct Counted {
  int* written;
  friend std::ostream& operator<<(std::ostream& out, const Counted& part) {
    ++*part.written;
    return out << "part";
  }
};
}  // namespace

TEST_CASE("the parts of a message are not written while all is well") {
  int written = 0;
  check(true, "op", Counted{&written});
  CHECK(written == 0);
  CHECK_THROWS_AS(check(false, "op", Counted{&written}), Error);
  CHECK(written == 1);
}

TEST_CASE("details follow the rule, and the rule can still be asked for alone") {
  const Error error("add", "shapes differ", "\n  input 0: [2]");
  CHECK(std::string(error.what()) == "add: shapes differ\n  input 0: [2]");
  CHECK(error.rule() == "shapes differ");
  const std::runtime_error& standard = error;
  CHECK(std::string(standard.what()).starts_with("add: "));
}

TEST_CASE("text of others is one harmless line, and ours keeps its lines") {
  // An escape sequence, a line break, C1's sequence introducer, marks of direction and lines, bytes of no character.
  const std::string bad = "a\x1B[2J\n\xC2\x9B\xE2\x80\xAE\xE2\x80\xA8\xE2\x81\xA6\xD8\x9C\x7F\xFF\xC3";
  const std::string good = "a?[2J\\n????????";
  CHECK(harmless(bad) == good);
  CHECK(harmless("caf\xC3\xA9 \xF0\x9F\x98\x80") == "caf\xC3\xA9 \xF0\x9F\x98\x80");
  CHECK(harmless_lines("a\nb\x1B") == "a\nb?");
  CHECK(error_of([&] { fail(bad, "a rule"); }) == good + ": a rule");
  CHECK(error_of([&] { fail("op", "of ", bad, ":\n", std::string_view(bad)); }) == "op: of " + good + ":\n" + good);
  CHECK(error_of([&] { fail("op", Lines{"two\nlines\x1B"}); }) == "op: two\nlines?");
  const Error error(bad, bad, bad);
  for (const char c : std::string(error.what())) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
}

TEST_CASE("text of others is cut") {
  CHECK(printable("weight") == "'weight'");
  CHECK(printable("a\x1B[2J\n-\x7F") == "'a?[2J\\n-?'");
  CHECK(printable(std::string(101, 'n')) == "'" + std::string(100, 'n') + "...'");
  CHECK(printable(std::string(99, 'n') + "\xC3\xA9") == "'" + std::string(99, 'n') + "...'");
  CHECK(error_of([&] { fail("op", std::string(4096, 'n')); }) == "op: " + std::string(4096, 'n'));
  CHECK(error_of([&] { fail("op", std::string(1 << 20, 'n')); }) == "op: " + std::string(4096, 'n') + "...");
}

TEST_CASE("within puts what was being done in front of an error") {
  CHECK(within("read x", [] { return 3; }) == 3);
  CHECK(error_of([] { within("read x", [] { fail("config", "no ", 7); }); }) == "read x: config: no 7");
}

TEST_CASE("a character of one to four bytes is read with its code and its length") {
  const auto is = [](const std::string& text, size_t code, size_t bytes) {
    const Character c = first_character(text + "rest");
    CHECK(c.code == code);
    CHECK(c.bytes == bytes);
    CHECK(announced_bytes(text[0]) == bytes);
  };
  is("a", 'a', 1);
  is(std::string(1, '\0'), 0, 1);
  is("\xC3\xA9", 0xE9, 2);
  is("\xE2\x80\xAE", 0x202E, 3);
  is("\xF0\x9F\x98\x80", 0x1F600, 4);
}

TEST_CASE("all bytes of a character but the first continue it") {
  const std::string text = "a\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80";
  std::string continues;
  for (const char byte : text) continues += continues_character(byte) ? 'c' : '-';
  CHECK(continues == "--c-cc-ccc");
}

TEST_CASE("bytes that begin no character have length 0") {
  // RFC 3629, section 4: what has the form of a character and is none stands at these borders.
  for (const std::string text :
       {"\x80", "\xFF", "\xC3", "\xC3(", "\xE2\x82", "\xF0\x9F\x98", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF",
        "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xF7\xBF\xBF\xBF", "\xF8\x88\x80\x80\x80"}) {
    CAPTURE(text.size());
    CHECK(first_character(text).bytes == 0);
  }
  for (const std::string text : {"\xC2\x80", "\xE0\xA0\x80", "\xF0\x90\x80\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"})
    CHECK(first_character(text).bytes == text.size());
}
