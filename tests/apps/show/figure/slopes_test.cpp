// Chapter 9. Pictures of derivatives: their curves are all there.
#include <doctest/doctest.h>

#include "apps/show/figure/figures.h"

using namespace orrery;

namespace {

// Lines of more than two points that are not frames: what is drawn through data.
size_t curves(const std::string& picture) {
  size_t found = 0;
  for (size_t at = picture.find("<path"); at != picture.npos; at = picture.find("<path", at + 1)) {
    const std::string path = picture.substr(at, picture.find("/>", at) - at);
    const size_t first = path.find(" L");
    found += first != path.npos && path.find(" L", first + 1) != path.npos && path.find("frame") == path.npos;
  }
  return found;
}

}  // namespace

TEST_CASE("the error of numeric derivatives: three stencils in f64, one of them in f32 too") {
  CHECK(curves(draw_eps()) == 4);
}

TEST_CASE("five activations: a value each, and a slope on either side of 0") {
  CHECK(curves(draw_activations()) == 15);
}
