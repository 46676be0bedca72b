// Chapter 9. Tests of the files that come with the program: beside an installed one, else in the sources.
#include "apps/program/shipped_files.h"

#include <doctest/doctest.h>

#include "tests/core/temporary_folder.h"
#include "tests/style_source.h"

using namespace orrery;

TEST_CASE("a program in PREFIX/bin has its files in PREFIX/share/orrery, if there is such a folder") {
  const TemporaryFolder prefix;
  const std::filesystem::path program = prefix.path() / "bin/orrery";
  CHECK(shipped_folder(program) == style::root);
  std::filesystem::create_directories(prefix.path() / "share/orrery");
  CHECK(shipped_folder(program) == prefix.path() / "share/orrery");
}

TEST_CASE("where the system does not tell where the program stands, its files are the sources, not those nearby") {
  CHECK(shipped_folder("") == style::root);
}

TEST_CASE("files of this program, in a build folder, are those of the repository") {
  CHECK(shipped_path("apps/data/speed.json") == (style::root / "apps/data/speed.json").string());
  CHECK(std::filesystem::exists(shipped_path("nn/models/stack.cpp")));
}
