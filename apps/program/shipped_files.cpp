// Chapter 9. Finding the files that come with the program, beside it or in the sources; putting a page together.
#include "apps/program/shipped_files.h"

#include <system_error>

#include "core/error.h"
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

std::string json_in_script(std::string json) {
  for (size_t at = json.find('<'); at != json.npos; at = json.find('<', at)) json.replace(at, 1, "\\u003c");
  return json;
}

void fill_in(std::string& page, std::string_view place, std::string_view text) {
  const size_t at = page.find(place);
  check(at != page.npos, "page", "there is no place '", place, "'");
  page.replace(at, place.size(), text);
}

std::string html_page(const std::string& folder, std::string_view data) {
  std::string page = shipped_text(folder + "/page.html");
  fill_in(page, "/* page.js */", shipped_text("apps/program/elements.js") + shipped_text(folder + "/page.js"));
  fill_in(page, "{\"data\": null}", data);
  return page;
}

}  // namespace orrery
