// Chapter 9. Tests of the files that commands write, which ones they refuse, and of those that come with the program.
#include "apps/program/output_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <filesystem>

#include "apps/program/shipped_files.h"
#include "apps/training/run.h"
#include "core/files/file.h"
#include "tests/core/temporary_folder.h"
#include "tests/style_source.h"

using namespace orrery;

TEST_CASE("a file that the system cannot read now may be a model, so nothing is written over it") {
  const orrery::TemporaryFolder folder;
  const std::string text = folder / "text", none = folder / "none";
  orrery::set_contents(text, "no model");
  CHECK_FALSE(orrery::holds_model(text));
  CHECK_FALSE(orrery::holds_model(none));
  CHECK_FALSE(orrery::holds_model(folder.path().string()));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit no_files{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &no_files) == 0);
  // The sanitizers need files to look at an error, so it is kept until there may be files again.
  const std::exception_ptr failure = orrery::failure_of([&] { orrery::check_can_write_text("test", "--out", text); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(static_cast<bool>(failure));
  const std::string message = "read " + text + ": Too many open files";
  CHECK_THROWS_WITH_AS(std::rethrow_exception(failure), message.c_str(), orrery::SystemError);
}

TEST_CASE("paths of one file are recognised: other spellings, also before it exists, hard links and symbolic links") {
  const orrery::TemporaryFolder folder;
  const std::string one = folder / "one", other = folder / "other";
  using orrery::is_same_file;
  CHECK(is_same_file(one, folder / "./one"));
  CHECK_FALSE(is_same_file(one, other));
  CHECK(is_same_file("no such file", "./no such file"));
  CHECK_FALSE(is_same_file("", ""));
  CHECK_FALSE(is_same_file(one, ""));
  orrery::set_contents(one, "text");
  std::filesystem::create_hard_link(one, other);
  CHECK(is_same_file(one, other));
  std::filesystem::create_symlink(one, folder / "link");
  CHECK(is_same_file(folder / "link", other));
}

TEST_CASE("a program in PREFIX/bin has its files in PREFIX/share/orrery, if there is such a folder") {
  const TemporaryFolder prefix;
  const std::filesystem::path program = prefix.path() / "bin/orrery";
  CHECK(shipped_folder(program) == style::root);
  CHECK(shipped_folder("") == style::root);  // the system does not tell where the program stands
  std::filesystem::create_directories(prefix.path() / "share/orrery");
  CHECK(shipped_folder(program) == prefix.path() / "share/orrery");
}

TEST_CASE("files of this program, in a build folder, are those of the repository") {
  CHECK(shipped_path("apps/data/speed.json") == (style::root / "apps/data/speed.json").string());
  CHECK(std::filesystem::exists(shipped_path("nn/models/stack.cpp")));
}
