// Chapter 9. `orrery report` as its users type it, on what trainings write: its page, its curves, and in headless
// Chromium its charts.
#include <doctest/doctest.h>
#include <cmath>
#include <filesystem>
#include <set>

#include "apps/program/option_file.h"
#include "apps/show/report/run_log.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/chromium.h"
#include "tests/apps/run_program.h"
#include "tests/apps/show/report/written_log.h"
#include "tests/core/support.h"

using namespace orrery::program;
using namespace orrery;
using namespace orrery::run_report;
using orrery::TemporaryFolder;
using small::times;

namespace {

const std::string quick_training = "toy --steps 6 --evaluate-every 3 " + small_toy_options;

}  // namespace

TEST_CASE("what toy and lm write is reported, each by itself and both in one page") {
  const TemporaryFolder folder;
  const std::string toy = "'" + (folder / "toy.log") + "' ", lm = "'" + (folder / "lm.log") + "' ",
                    page = folder / "page";
  REQUIRE(run(quick_training + "--log " + toy + "--save '" + (folder / "toy.safetensors") + "'").exit_code == 0);
  const std::string text = written(folder / "text", repeated("abc ", 100));
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--log " + lm).exit_code == 0);
  const Result alone = run("report " + toy);
  CHECK(alone.exit_code == 0);
  CHECK(contains(alone.text, "<td>toy</td>"));
  CHECK(contains(alone.text, "<td>exact match</td>"));
  CHECK(contains(alone.text, "<th scope=\"row\">max-length</th><td>9</td>"));
  CHECK(errors("report " + toy).text.empty());
  const Result both = run("report " + toy + lm + "--out '" + page + "'");
  CHECK(both.exit_code == 0);
  CHECK(both.text.empty());
  CHECK(contains(orrery::contents(page), "<h1>2 trainings</h1>"));
  CHECK(contains(orrery::contents(page), "it writes: "));
  const Result all = run("report '" + folder.path().string() + "'");
  CHECK(contains(all.text, "<h1>2 trainings</h1>"));
  CHECK(contains(all.text, "toy.safetensors"));
}

TEST_CASE("a page is not written to a terminal") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "log", orrery::small::log_text());
  const Result shown = shell("script -qec \"" + quoted_program + "report '" + log + "'\" /dev/null </dev/null");
  CHECK(shown.exit_code == 2);
  CHECK(contains(shown.text, "orrery: --out: must name a file for the page"));
  CHECK_FALSE(contains(shown.text, "<html"));
}

TEST_CASE("a damaged log is reported with a note, and any other file is one clear error") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "log", orrery::small::log_text() + "{\"st");
  CHECK(errors("report '" + log + "'").text == log + ": the last line is cut off and left out.\n");
  const std::string report = quoted_program + "report ", text = written(folder / "text", "no log\n");
  check_failure(report + "'" + text + "'", "text is not the log of a training");
  check_failure(report + "'" + log + "' --out '" + log + "'", "would write over what it reports on");
  check_failure(report + "'" + folder.path().string() + "' --out '" + log + "'", "would write over what it reports on");
  check_failure(report + "'" + log + "' --out /nowhere/page", "/nowhere/page");
}

TEST_CASE("one log becomes a page of its numbers, curves, samples, scores and options, without network or markup") {
  const TemporaryFolder folder;
  const std::string page = report_page(read_run_files({written(folder / "run.log", small::log_text())}));
  CHECK(page.starts_with("<!DOCTYPE html>"));
  for (const std::string part :
       {"<td>lm</td>", "<td>1,234,567</td>", "<td>100 of 200</td>", "<td>4,055</td>", "<td>1.0000</td>",
        "<td>1.2500 at step 50</td>", "<th scope=\"row\">layers</th><td>4</td>", "<td>&lt;a&gt;</td>",
        "<td>exact match</td><td>0.8750</td>", "it writes: &lt;100&gt;", "run.log"}) {
    CAPTURE(part);
    CHECK(small::contains(page, part));
  }
  CHECK(times(page, "class=\"charts\"") == 4);
  CHECK(times(page, "class=\"legend\"") == 0);
  for (const std::string outside : {"https:", "//cdn", " src=", "<link", "@import", "<script", "/* page.", "<!-- "}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == page.npos);
  }
}

TEST_CASE("of a score that is better the higher it is the highest is the best, and samples keep their lines") {
  const TemporaryFolder folder;
  const std::string log =
      written(folder / "run.log", R"({"start":"classify","after_step":0,"steps":20,"parameters":5,"unit":"<texts>"}
{"step":5,"validation":0.9,"best":true,"higher":"accuracy","seconds":1}
{"step":10,"validation":0.9,"best":true,"higher":"accuracy","seconds":1}
{"step":20,"validation":0.8,"best":false,"higher":"accuracy","seconds":2}
{"step":20,"sample":"is   <a>\nb      1"}
)");
  const std::string page = report_page(read_run_files({log}));
  for (const std::string part : {"<th>best accuracy</th>", "<td>0.9000 at step 10</td>", ">accuracy<",
                                 "<th>&lt;texts&gt;/s, median</th>", "is   &lt;a&gt;\nb      1</td>"}) {
    CAPTURE(part);
    CHECK(small::contains(page, part));
  }
}

TEST_CASE("several logs have a legend, and the options that differ stand out") {
  const TemporaryFolder folder, other;
  const std::string a = written(folder / "a.log", small::log_text(5, R"({"layers":4,"d-model":64})")),
                    b = written(folder / "b.log", small::log_text(4, R"({"layers":6,"d-model":64,"new":1})")),
                    c = written(other / "a.log", small::log_text());
  const std::string page = report_page(read_run_files({a, b}));
  CHECK(small::contains(page, "<h1>2 trainings</h1>"));
  CHECK(times(page, "class=\"legend\"") == 1);
  CHECK(small::contains(page, "<tr class=\"differs\"><th scope=\"row\">layers</th><td>4</td><td>6</td></tr>"));
  CHECK(small::contains(page, "<tr><th scope=\"row\">d-model</th><td>64</td><td>64</td></tr>"));
  CHECK(small::contains(page, "<tr class=\"differs\"><th scope=\"row\">new</th><td>&ndash;</td><td>1</td></tr>"));
  CHECK(times(page, "<path class=\"second line\"") >= 8);
  CHECK(small::contains(report_page(read_run_files({a, c})), " " + c + "</th>"));  // two files of one name
}

TEST_CASE("a model without a log has its options, and says how there would be curves") {
  const TemporaryFolder folder;
  const std::string model = folder / "model";
  write_safetensors(model, {{"a", full({2}, 1.0)}}, {{options_key, R"({"layers":4,"name":"<a>"})"}});
  const std::string page = report_page(read_run_files({model}));
  CHECK(small::contains(page, "Without a log there are no curves"));
  CHECK(small::contains(page, "<th scope=\"row\">layers</th><td>4</td>"));
  CHECK_FALSE(small::contains(page, "class=\"charts\""));
  const std::string log = written(folder / "log", small::log_text());
  const std::string both = report_page(read_run_files({log, model}));
  CHECK(small::contains(both, "<tr><th>option</th><th>log</th></tr>"));  // the model is of this training
  CHECK(small::contains(both, "<h2>Models</h2>"));
  CHECK(small::contains(both, "<th>size</th>"));
  CHECK(small::contains(both, "<td>0.0 MB</td>"));
  RunFiles files = read_run_files({model});
  std::filesystem::remove(model);  // between reading and writing
  CHECK(small::contains(report_page(files), model + "</th><td>&ndash;</td><td>in the file</td>"));
}

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

namespace {

RunLog falling_log(i64 points, double from) {
  RunLog log{.path = "log", .program = "lm"};
  for (i64 i = 1; i <= points; ++i) log.loss.push_back({i, static_cast<double>(60 * i), from / static_cast<double>(i)});
  return log;
}

const CurveKind& kind_of(const std::string& title) {
  for (const CurveKind& kind : curve_kinds())
    if (kind.title == title) return kind;
  FAIL("no kind of curve is called so");
  return curve_kinds()[0];
}

}  // namespace

TEST_CASE("an axis has four to eight ticks at round numbers, and holds what it must") {
  const Axis axis = round_axis("loss", 1.37, 4.2);
  CHECK(axis.low == 1);
  CHECK(axis.high == 4.5);
  CHECK(axis.ticks.front().label == "1");
  CHECK(axis.ticks[1].label == "1.5");
  for (const double high : {0.0007, 0.5, 3.0, 17.0, 99.0, 1234.0, 5e6})
    for (const double low : {0.0, 0.3 * high, 0.9 * high}) {
      const Axis some = round_axis("", low, high);
      CAPTURE(low);
      CAPTURE(high);
      CHECK(some.low <= low + 1e-9 * high);
      CHECK(some.high >= high - 1e-9 * high);
      CHECK(some.ticks.size() >= 4);
      CHECK(some.ticks.size() <= 8);
    }
  for (const double only : {0.0, 2.5, -3.0, 1e300}) {
    for (const double other : {only, std::nextafter(only, 4e300)}) {  // too close for ticks between them
      const Axis single = round_axis("", only, other);
      CHECK(single.low < only);
      CHECK(single.high > other);
      CHECK(single.ticks.size() <= 8);
    }
  }
}

TEST_CASE("many points become the means of neighbours, and few stay as they are") {
  const Curve curve{{1, 1, 4}, {2, 2, 2}, {3, 3, 9}, {4, 4, 1}, {5, 5, 7}};
  const Curve means = thinned(curve, 3);
  REQUIRE(means.size() == 3);
  CHECK(means[0].value == 3);
  CHECK(means[0].seconds == 1.5);
  CHECK(means[1].value == 5);
  CHECK(means[2].value == 7);
  CHECK(means[2].step == 5);
  CHECK(thinned(curve, 5).size() == 5);
  CHECK(thinned({}, 5).empty());
}

TEST_CASE("each of eight logs has a style of its own") {
  std::set<std::string> lines;
  for (size_t i = 0; i < 8; ++i) {
    std::string line = legend_line(i);
    lines.insert(line.substr(line.find("<path")));
  }
  CHECK(lines.size() == 8);
}

TEST_CASE("a chart has a curve for each log, against steps or the unit that fits the time") {
  const CurveKind& loss = kind_of("training loss");
  const std::vector<RunLog> logs{falling_log(100, 5), falling_log(1000, 4)};
  const std::string steps = draw_curves(logs, loss, Against::steps), time = draw_curves(logs, loss, Against::time);
  for (const std::string& svg : {steps, time}) {
    CHECK(small::contains(svg, "<path class=\"mark line\""));
    CHECK(small::contains(svg, "<path class=\"second line\""));
    CHECK(small::contains(svg, ">training loss<"));
  }
  CHECK(small::contains(steps, ">step<"));
  CHECK(small::contains(steps, ">1000<"));
  CHECK(small::contains(time, ">time, hours<"));
  CHECK(small::contains(draw_curves({falling_log(10, 5)}, loss, Against::time), ">time, minutes<"));
  CHECK(small::contains(draw_curves({falling_log(2, 5)}, loss, Against::time), ">time, seconds<"));
  CHECK(draw_curves(logs, kind_of("validation loss"), Against::steps) == "");
}
