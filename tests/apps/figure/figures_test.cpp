// Chapter 9. Pictures: drawn from their data as the repository holds them, and wrong data refused.
#include "apps/figure/figures.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/core/support.h"
#include "tests/style_source.h"

using namespace orrery;

namespace {

std::string data_of(const std::string& name) { return style::read_text(style::root / "apps/data" / (name + ".json")); }
std::string picture_of(const std::string& name) {
  return style::read_text(style::root / "apps/book/figures" / (name + ".svg"));
}

}  // namespace

TEST_CASE("the committed pictures are what the program draws, and there are no others") {
  std::set<std::string> committed, drawn;
  for (const auto& file : std::filesystem::directory_iterator(style::root / "apps/book/figures"))
    committed.insert(file.path().stem().string());
  for (const auto& [name, picture] : pictures()) {
    CAPTURE(name);
    drawn.insert(name);
    if (committed.contains(name)) CHECK(picture.draw(picture.needs_data ? data_of(name) : "") == picture_of(name));
  }
  CHECK(drawn == committed);
}

TEST_CASE("a row of weights is a row of cells") {
  const AttentionFigure figure{.task = "copy",
                               .layer = 1,
                               .head = 2,
                               .written = {"b", "."},
                               .read = {"b", "c", "d"},
                               .weights = {{1, 0, 0.126}, {0, 0.5, 0}}};
  CHECK(attention_figure(to_json(figure)).weights[0][2] == 0.13);
  const std::string picture = draw(figure);
  size_t cells = 0, marks = 0;
  for (size_t at = picture.find("<rect class=\"frame\""); at != picture.npos;
       at = picture.find("<rect class=\"frame\"", at + 1))
    ++cells;
  for (size_t at = picture.find("<rect class=\"mark\""); at != picture.npos;
       at = picture.find("<rect class=\"mark\"", at + 1))
    ++marks;
  CHECK(cells == 6);
  CHECK(marks == 3);
  CHECK(picture.find("fill-opacity=\"0.5\"") != picture.npos);
  CHECK(picture.find("task: copy; decoder layer 1, head 2") != picture.npos);
}

TEST_CASE("data of another kind are one clear error") {
  CHECK(small::error_of([] { attention_figure("[1"); }).starts_with("figure: the data are not those of this picture"));
  CHECK(small::error_of([] { speed_figure("{}"); }).starts_with("figure: the data are not those of this picture"));
  CHECK(small::error_of([] {
          attention_figure(
              R"({"task": "copy", "layer": 0, "head": 0, "written": ["a"], "read": ["a", "b"], "weights": [[1]]})");
        }) == "figure: has a row of 1 weights for 2 symbols read");
}
