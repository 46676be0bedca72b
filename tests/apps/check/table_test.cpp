// Chapter 9. Tests of the table of proofs as text and as JSON.
#include "apps/check/table.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

namespace {

ProvenRow made_up(bool ok) {
  ProvenRow proven{{"nn/SomethingWithALongName", {"SomethingWithALongName", "and a long variant", {}, {}}}, {}};
  proven.proof.gradients = {.inputs = 64,
                            .coordinates = 294,
                            .skipped = 3,
                            .worst_error = 5e-9,
                            .worst_at = "decoder.layers.0.linear1.weight[10, 1]",
                            .gradient_norm = 30,
                            .zeros = {{"bias", std::string(90, 'w') + " it must be"}},
                            .failures = {},
                            .problems = {},
                            .message = ""};
  proven.proof.f32_error = 4e-7;
  proven.proof.seconds = 1.2;
  proven.proof.parts = {{"gradients", true, ""}, {"f32", ok, "too far off, and said " + std::string(90, 'y')}};
  return proven;
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

}  // namespace

TEST_CASE("a row is one line of at most 100 columns under its header, and what failed stands below") {
  std::ostringstream header, right, wrong;
  print_proof_header(header);
  print_proof(right, made_up(true), {}, "");
  print_proof(wrong, made_up(false), {}, made_up(false).proof.message());
  CHECK(right.str() ==
        "nn/SomethingWithALongName, and .. 64    294 5e-09 ..ight[10, 1] 3.0e+01     3     1 4e-07  1200 ok\n"
        "    nn/SomethingWithALongName, and a long variant: worst at decoder.layers.0.linear1.weight[10, 1]\n");
  const size_t kinks = header.str().find(" kinks");
  REQUIRE(kinks != std::string::npos);
  CHECK(right.str().find("     3 ") == kinks);  // as wide as its title
  CHECK(wrong.str().find(" FAIL\n    nn/SomethingWithALongName, and a long variant: worst at ") != std::string::npos);
  CHECK(wrong.str().find("[10, 1]\n  f32: too far off") != std::string::npos);
  for (const auto* text : {&header, &right, &wrong}) check_width(text->str());
}

TEST_CASE("colours only where the terminal shows them") {
  std::ostringstream out;
  print_proof(out, made_up(false), {.live = true, .colours = true}, "");
  CHECK(out.str().find("\033[31mFAIL") != std::string::npos);
}

TEST_CASE("declared zeros are listed with their reasons, if there are any") {
  std::ostringstream out, none;
  print_zeros(out, {made_up(true)});
  CHECK(out.str().find("declared to be zero") != std::string::npos);
  CHECK(out.str().find("wwww") != std::string::npos);
  check_width(out.str());
  print_zeros(none, {});
  CHECK(none.str().empty());
}

TEST_CASE("JSON holds everything, uncut, and is written whole") {
  const TemporaryFolder folder;
  write_text(folder / "proofs.json", proofs_as_json({made_up(true), made_up(false)}, 7, 2));
  const auto json = nlohmann::json::parse(contents(folder / "proofs.json"));
  CHECK(json["seed"] == 7);
  CHECK(json["checked"] == 2);
  CHECK(json["failed"] == 1);
  CHECK(json["rows"][0]["worst_at"] == "decoder.layers.0.linear1.weight[10, 1]");
  CHECK(json["rows"][1]["parts"][1]["ok"] == false);
  CHECK(json["rows"][0]["zeros"][0]["name"] == "bias");
}
