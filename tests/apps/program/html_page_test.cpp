// Chapter 9. Pages in one file: each part in its place, and nothing that ends a script too early.
#include "apps/program/html_page.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;

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
  for (const std::string folder : {"apps/show/trace", "apps/show/attention"}) {
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
