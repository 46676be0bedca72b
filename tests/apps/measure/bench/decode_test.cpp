// Chapter 9. Tests of `orrery bench decode`: what a token costs to read, its lines, its mistakes.
#include "apps/measure/bench/decode.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nn/models/gpt.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

TEST_CASE("a token reads every weight but the tables once, and each stream's cache") {
  const nn::GptConfig config = nn::gpt_preset("nanogpt");
  const double weights = 804096 - 64 * 128, position = 4 * 2 * 128;
  CHECK(bytes_of_step(config, 1, 0) == 4 * weights);
  CHECK(bytes_of_step(config, 3, 10) == 4 * (weights + 3 * 10 * position));
  nn::GptConfig untied = config;
  untied.tied = false;
  CHECK(bytes_of_step(untied, 1, 0) == bytes_of_step(config, 1, 0));  // the head is read, the embedding is not
}

TEST_CASE("a measurement is one line of key=value") {
  CHECK(
      decode_line({.config = "gpt2", .streams = 8, .step_seconds = 0.02, .limit_seconds = 0.016, .bandwidth = 4e10}) ==
      "gpt2 streams=8 tok/s=400.0 limit_tok/s=500.0 of_limit=80% GB/s=40.0");
}

TEST_CASE("bench decode measures one stream and a batch, and keeps both") {
  const TemporaryFolder folder;
  const std::string path = folder / "decode.json";
  const Result result = run("bench decode --config nanogpt --steps 5 --context 9 --batch 3 --threads 1 --json " + path);
  CHECK(result.exit_code == 0);
  std::ifstream file(path);
  const nlohmann::json kept = nlohmann::json::parse(file);
  for (const int row : {0, 1}) {
    double rate = 0, limit = 0, percent = 0;
    int streams = 0;
    CHECK(std::sscanf(line(result.text, row).c_str(), "nanogpt streams=%d tok/s=%lf limit_tok/s=%lf of_limit=%lf%%",
                      &streams, &rate, &limit, &percent) == 4);
    CHECK(streams == (row == 0 ? 1 : 3));
    CHECK(rate > 0);
    CHECK(kept["results"]["rows"][row]["gbyte_per_second"].get<double>() > 0);
    CHECK(percent == doctest::Approx(100 * rate / limit).epsilon(0.1));
  }
  CHECK(kept["bench"] == "decode");
  CHECK(kept["results"]["rows"].size() == 2);
}

TEST_CASE("what does not fit is refused") {
  check_usage_error("bench decode --config gpt3", "'gpt3'", "nanogpt, gpt2, gpt2-medium, gpt2-large");
  check_usage_error("bench decode --batch 0", "--batch", "from 1 to");
  const Result result = errors("bench decode --config nanogpt --context 60");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.text, ", more than the 64 positions of nanogpt"));
}
