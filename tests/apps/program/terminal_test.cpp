// Chapter 9. Tests of text for people: when lines may redraw and colours may show, what fits a column, the name that
// was meant, pages in one file.
#include "apps/program/terminal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "apps/program/command.h"
#include "apps/program/shipped_files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using orrery::edit_distance;
using orrery::nearest;

TEST_CASE("a terminal shows colours unless NO_COLOR is set to something") {
  CHECK(terminal_rule(true, nullptr, "xterm", 80).colours);
  CHECK(terminal_rule(true, "", "xterm", 80).colours);
  CHECK_FALSE(terminal_rule(true, "1", "xterm", 80).colours);
  CHECK(terminal_rule(true, "1", "xterm", 80).live);
}

TEST_CASE("a pipe and a dumb terminal are neither live nor coloured") {
  for (const Terminal& terminal : {terminal_rule(false, nullptr, "xterm", 0), terminal_rule(true, nullptr, "dumb", 80),
                                   terminal_rule(true, nullptr, nullptr, 80)}) {
    CHECK_FALSE(terminal.live);
    CHECK_FALSE(terminal.colours);
  }
}

TEST_CASE("the width is what the terminal answered, 80 if it did not") {
  CHECK(terminal_rule(true, nullptr, "xterm", 132).width == 132);
  CHECK(terminal_rule(true, nullptr, "xterm", 0).width == 80);
}

TEST_CASE("text is coloured only where colours show") {
  CHECK(coloured("FAILED", Colour::red, {.live = true, .colours = true}) == "\033[31mFAILED\033[0m");
  CHECK(coloured("FAILED", Colour::red, {}) == "FAILED");
}

TEST_CASE("a part of the work that takes long says what it is, also into a file; one that takes short does not") {
  const TemporaryFolder folder;
  const int before = dup(STDERR_FILENO), file = open((folder / "errors").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(file >= 0);
  dup2(file, STDERR_FILENO);
  { const Phase phase("resting"); }
  {
    const Phase phase("reading a\x1B", 0);
    for (int i = 0; i < 10'000 && contents(folder / "errors").empty(); ++i) usleep(1000);
  }
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  CHECK(contents(folder / "errors") == "reading a? ...\n");
}

TEST_CASE("text of others is made harmless for a terminal, and stays as it is for anything else") {
  const std::string text = "a\x1B[31m\nb\x07";
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY), null = open("/dev/null", O_WRONLY);
  REQUIRE(terminal >= 0);
  REQUIRE(null >= 0);
  CHECK(for_reader(text, terminal) == "a?[31m\nb?");
  CHECK(for_reader(text, null) == text);
  close(terminal);
  close(null);
}

TEST_CASE("fitted fills, or cuts the end or the beginning") {
  CHECK(fitted("abc", 5) == "abc  ");
  CHECK(fitted("abcdef", 6) == "abcdef");
  CHECK(fitted("abcdefg", 6) == "abcd..");
  CHECK(fitted_end("abcdefg", 6) == "..defg");
  CHECK(fitted_end("abc", 5) == "abc  ");
}

TEST_CASE("fitted_middle keeps both ends, and counts characters, not bytes") {
  CHECK(fitted_middle("abc", 5) == "abc  ");
  CHECK(fitted_middle("abcdef", 6) == "abcdef");
  CHECK(fitted_middle("abcdefghij", 7) == "ab..hij");
  CHECK(fitted_middle("abcdefghij", 6) == "ab..ij");
  const std::string e = "\xC3\xA9";
  CHECK(fitted_middle(e + e, 3) == e + e + " ");
  CHECK(fitted_middle(e + "bcdef" + e, 5) == e + ".." + "f" + e);
  CHECK(fitted_middle("\xFF\xFF", 3) == "\xFF\xFF ");
}

TEST_CASE("text is wrapped at spaces, and indented") {
  CHECK(wrapped("one\ntwo", 2) == "  one\n  two\n");
  CHECK(wrapped("", 2) == "");
  const std::string word(60, 'a');
  CHECK(wrapped(word + " " + word, 1) == " " + word + "\n   " + word + "\n");
  CHECK(wrapped(std::string(250, 'b'), 0) ==
        std::string(100, 'b') + "\n  " + std::string(98, 'b') + "\n  " + std::string(52, 'b') + "\n");
  CHECK(wrapped("a\xC3\xA9\xC3\xA9", 0, 4, 0) == "a\xC3\xA9\n\xC3\xA9\n");
}

TEST_CASE("joined puts the separator between parts, empty ones too") {
  CHECK(joined({}, ", ") == "");
  CHECK(joined({"a"}, ", ") == "a");
  CHECK(joined({"a", "", "b"}, ", ") == "a, , b");
}

TEST_CASE("numbers") { CHECK(numbers("%3ld|%.1f", 7L, 2.25) == "  7|2.2"); }

TEST_CASE("the distance of two words counts characters that are inserted, removed or replaced") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("steps", "steps") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("saturday", "sunday") == 3);
  CHECK(edit_distance("taks", "task") == 2);
}

TEST_CASE("the nearest name is the first of the smallest distance, and none if all are far away") {
  CHECK(nearest("--step", {"--seed", "--steps", "--stop"}) == "--steps");
  CHECK(nearest("--taks", {"--tasks", "--task"}) == "--tasks");
  CHECK(nearest("--learning", {"--seed", "--steps"}) == "");
  CHECK(nearest("-x", {"-h"}) == "");
  CHECK(nearest("--step", {}) == "");
}

TEST_CASE("JSON in a script has no '<', and means the same") {
  CHECK(json_in_script(R"({"a<b":"</script><"})") == R"({"a\u003cb":"\u003c/script>\u003c"})");
  CHECK(json_in_script("{}") == "{}");
}

TEST_CASE("a place is filled once, and one that is missing is an error") {
  std::string page = "a PLACE b PLACE";
  fill_in(page, "PLACE", "PLACE!");
  CHECK(page == "a PLACE! b PLACE");
  CHECK(small::error_of([&] { fill_in(page, "nowhere", ""); }) == "page: there is no place 'nowhere'");
}

TEST_CASE("a page has its style, its script and its data, and no address outside of it") {
  for (const std::string folder : {"apps/show/trace", "apps/show/attention", "apps/show/playground"}) {
    const std::string page = html_page(folder, "{\"some\": \"data\"}");
    CHECK(page.starts_with("<!DOCTYPE html>"));
    for (const std::string part : {"{\"some\": \"data\"}</script>", "--page: #ffffff", "\"use strict\";"})
      CHECK(page.find(part) != page.npos);
    for (const std::string outside : {"http:", "https:", "//cdn", " src=", "<link", "@import", "url(\"", "/* page."}) {
      CAPTURE(outside);
      CHECK(page.find(outside) == page.npos);
    }
  }
  CHECK(small::contains(small::error_of([] { html_page("apps/nowhere", "{}"); }), "apps/nowhere/page.html"));
}
