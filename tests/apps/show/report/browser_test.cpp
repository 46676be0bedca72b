// Chapter 9. The report in headless Chromium: its charts are drawn within the page's width.
#include "apps/show/report/report_page.h"
#include "tests/apps/chromium.h"
#include "tests/apps/show/report/written_log.h"

using namespace orrery;

TEST_CASE("browser: a report is dark where the browser prefers dark") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "a.log", small::log_text());
  const std::string page = run_report::report_page(run_report::read_run_files({log}));
  CHECK(browser::corner_of("page.html", page, false) == "255,255,255");
  CHECK(browser::corner_of("page.html", page, true) == "13,17,23");
}

TEST_CASE("browser: the charts of a report are drawn, and nothing is wider than the page") {
  const TemporaryFolder folder;
  const std::string a = written(folder / "a.log", small::log_text()), b = written(folder / "b.log", small::log_text(3));
  std::string page = run_report::report_page(run_report::read_run_files({a, b}));
  page.insert(page.rfind("</body>"), R"(<p id="measured"></p><script>
    const boxes = [...document.querySelectorAll(".charts svg")].map((svg) => svg.getBoundingClientRect());
    const wide = document.documentElement.scrollWidth > window.innerWidth;
    const drawn = boxes.filter((box) => box.width > 300 && box.height > 100 && box.left >= 0).length;
    document.getElementById("measured").textContent = drawn + " of " + boxes.length + ", too wide: " + wide;
  </script>)");
  CHECK(program::contains(browser::dom_of_page(page), "<p id=\"measured\">8 of 8, too wide: false</p>"));
}
