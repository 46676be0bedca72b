// Chapter 9. The page of a report: it shows what the files hold, and markup in them appears as plain text.
#include "apps/show/report/report_page.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/show/report/written_log.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::run_report;
using small::times;

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

TEST_CASE("a log without a step is a page without curves") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "log", R"({"start":"toy","after_step":0,"steps":9,"parameters":7})"
                                                  "\n");
  const std::string page = report_page(read_run_files({log}));
  CHECK(small::contains(page, "no step is logged yet."));
  CHECK_FALSE(small::contains(page, "<h2>Curves</h2>"));
}
