// Chapter 9. Pages and pictures in headless Chromium, for the tests named "browser: ...".
#pragma once

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

namespace orrery::browser {

/// Runs Chromium on an address, with a profile of its own; the result has what it wrote to stdout.
inline program::Result chromium(const std::string& options, const std::string& address) {
  const TemporaryFolder profile;
  return program::shell("timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage " +
                        options + " --user-data-dir='" + profile.path().string() + "' '" + address + "' 2>/dev/null");
}

/// A page as Chromium leaves it, after its scripts have run; `fragment` is "" or begins with "#".
inline std::string dom_of_page(const std::string& page, const std::string& fragment = "") {
  const TemporaryFolder folder;
  set_contents(folder / "page.html", page);
  const program::Result result =
      chromium("--virtual-time-budget=3000 --dump-dom", "file://" + folder / "page.html" + fragment);
  CHECK(result.exit_code == 0);
  return result.text;
}

/// The text of the element whose tag `at` is in; it has no elements inside.
inline std::string text_behind(const std::string& html, size_t at) {
  const size_t begin = html.find('>', at) + 1;
  std::string text = html.substr(begin, html.find('<', begin) - begin);
  for (const auto& [entity, sign] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (size_t found = text.find(entity); found != text.npos; found = text.find(entity, found + 1))
      text.replace(found, std::string_view(entity).size(), sign);
  return text;
}
inline std::string text_of_id(const std::string& dom, const std::string& id) {
  const size_t at = dom.find("id=\"" + id + "\"");
  REQUIRE_MESSAGE(at != dom.npos, id);
  return text_behind(dom, at);
}

/// The pixel in the upper left corner of a file that is opened by itself, a picture or a page, as "255,255,255", where
/// the browser prefers dark pages or light ones.
inline std::string corner_of(const std::string& name, const std::string& text, bool prefers_dark) {
  const TemporaryFolder folder;
  set_contents(folder / name, text);
  const std::string preference = std::string("--blink-settings=preferredColorScheme=") + (prefers_dark ? "0" : "1");
  // Chromium ends without a picture, and without an error, where the first drawing comes too late.
  std::string png;
  for (int attempt = 0; attempt < 3 && png.empty(); ++attempt) {
    const program::Result result = chromium(
        "--screenshot='" + folder / "screen.png" + "' --window-size=200,200 " + preference, "file://" + folder / name);
    CHECK(result.exit_code == 0);
    png = program::shell("base64 -w 0 '" + folder / "screen.png" + "' 2>/dev/null").text;
  }
  REQUIRE_MESSAGE(!png.empty(), "Chromium took no picture of ", name);
  // The page counts as loaded only after onload, so Chromium does not write it before the pixel is there.
  const std::string dom = dom_of_page(R"html(<p id="corner"></p><script>
    function show(image) {
      const canvas = document.createElement("canvas").getContext("2d");
      canvas.drawImage(image, 0, 0);
      document.getElementById("corner").textContent = canvas.getImageData(0, 0, 1, 1).data.slice(0, 3).join(",");
    }
  </script><img onload="show(this)" src="data:image/png;base64,)html" +
                                      png + "\">");
  return text_of_id(dom, "corner");
}

}  // namespace orrery::browser
