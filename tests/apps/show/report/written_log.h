// Chapter 9. What the tests of the report read: the log of a training of 100 steps.
#pragma once

#include <string>

#include "tests/core/temporary_folder.h"

namespace orrery::small {

/// A start, a line for each tenth step, an evaluation and a sample for each fiftieth, and a score. Losses begin at
/// `loss` and fall to 1.
inline std::string log_text(double loss = 5, const std::string& options = R"({"layers":4,"name":"<a>"})") {
  std::string text = R"({"start":"lm","after_step":0,"steps":200,"parameters":1234567,"options":)" + options + "}\n";
  for (int step = 10; step <= 100; step += 10) {
    const double now = 1 + (loss - 1) * (100 - step) / 90, seconds = step * 0.5;
    text += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(now) +
            ",\"rate\":0.001,\"tokens_per_s\":" + std::to_string(4000 + step) +
            ",\"seconds\":" + std::to_string(seconds) + "}\n";
    if (step % 50 != 0) continue;
    text += "{\"step\":" + std::to_string(step) + ",\"validation\":" + std::to_string(step == 50 ? 1.25 : 1.5) +
            ",\"best\":" + (step == 50 ? "true" : "false") + ",\"seconds\":" + std::to_string(seconds + 0.25) + "}\n";
    text += "{\"step\":" + std::to_string(step) + ",\"sample\":\"  it writes: <" + std::to_string(step) + ">\"}\n";
  }
  return text + "{\"step\":100,\"score\":\"exact match\",\"value\":0.875}\n";
}

}  // namespace orrery::small
