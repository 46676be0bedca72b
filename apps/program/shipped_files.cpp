// Chapter 9. Finding the files that come with the program, beside the program or in the sources.
#include "apps/program/shipped_files.h"

#include <system_error>

#include "core/files/file.h"

namespace orrery {

std::filesystem::path shipped_folder(const std::filesystem::path& program) {
  const std::filesystem::path installed = (program.parent_path() / ORRERY_SHARED_FOLDER).lexically_normal();
  std::error_code ignored;
  const bool is_installed = !program.empty() && std::filesystem::is_directory(installed, ignored);
  return is_installed ? installed : std::filesystem::path(ORRERY_SOURCE_FOLDER);
}

std::string shipped_path(const std::string& name) {
  std::error_code ignored;
  return (shipped_folder(std::filesystem::read_symlink("/proc/self/exe", ignored)) / name).string();
}

std::string shipped_text(const std::string& name) { return InputFile(shipped_path(name)).text(); }

}  // namespace orrery
