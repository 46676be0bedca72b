// Chapter 9. A folder that stands for "/" in a test: the files of some other machine.
#pragma once

#include "apps/program/machine.h"
#include "tests/core/temporary_folder.h"

namespace orrery {

class SystemFolder {
 public:
  /// Makes a file such as "/proc/meminfo", or replaces it.
  void add(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = folder_.path() / path.substr(1);
    std::filesystem::create_directories(whole.parent_path());
    set_contents(whole.string(), text);
  }
  SystemFiles files() const { return SystemFiles(folder_.path().string()); }

 private:
  TemporaryFolder folder_;
};

}  // namespace orrery
