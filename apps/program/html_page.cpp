// Chapter 9. Putting a page together.
#include "apps/program/html_page.h"

#include "apps/program/shipped_files.h"
#include "core/error.h"

namespace orrery {

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
  fill_in(page, "/* page.css */", shipped_text(folder + "/page.css"));
  fill_in(page, "/* page.js */", shipped_text(folder + "/page.js"));
  fill_in(page, "{\"data\": null}", data);
  return page;
}

}  // namespace orrery
