// Chapter 9. Temporary files: what was appended is mapped, nothing is left in the folder, and errors name the folder.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core/files/file.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

TEST_CASE("a temporary file has what was appended, and no name") {
  const TemporaryFolder folder;
  const TemporaryDirectory directory(folder / "");
  ScratchFile file, empty;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string part = "part " + std::to_string(i) + "\n";
    file.append(std::as_bytes(std::span(part)));
    expected += part;
  }
  const std::span<const std::byte> mapped = file.map();
  REQUIRE(mapped.size() == expected.size());
  CHECK(std::memcmp(mapped.data(), expected.data(), expected.size()) == 0);
  CHECK(empty.map().empty());
  CHECK(folder.count() == 0);
}

TEST_CASE("a temporary file that cannot be written names its folder") {
  const TemporaryFolder folder;
  const TemporaryDirectory directory(folder / "none");
  const std::string error = small::error_of([] { ScratchFile file; });
  CHECK(small::contains(error, "write a temporary file in " + (folder / "none")));
  CHECK(small::contains(error, "set TMPDIR to use another folder"));
  CHECK(small::contains(error, "No such file or directory"));
}
