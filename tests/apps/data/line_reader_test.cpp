// Chapter 9. Lines as they come: what has arrived is returned at once, and no line is lost or added.
#include "apps/data/line_reader.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "core/error.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using translate::Line;
using translate::LineReader;

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

TEST_CASE("many lines, cut wherever the reads end") {
  std::string contents;
  Texts expected;
  for (int i = 0; i < 30'000; ++i) {
    expected.push_back("line " + std::to_string(i * 7919 % 30'011));
    contents += expected.back() + '\n';
  }
  CHECK(lines_of_file(contents, 999) == expected);
}

TEST_CASE("what cannot be read is an error that names it") {
  const TemporaryFolder folder;
  const int descriptor = ::open((folder / "").c_str(), O_RDONLY);
  LineReader reader(descriptor, "a folder");
  CHECK_THROWS_WITH_AS(reader.read(1, never), "read a folder: Is a directory", Error);
  ::close(descriptor);
}
