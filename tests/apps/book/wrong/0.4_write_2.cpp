// Chapter 0. A wrong answer to exercise 0.4: the end mark is kept in the answer.
// Expect: the shape is [5], should be [4]
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using NextScores = std::function<std::vector<double>(const std::vector<i32>& written)>;

std::vector<i32> my_write(const NextScores& next_scores, i64 most) {
  std::vector<i32> written{1};
  for (i64 said = 0; said < most && written.back() != 2; ++said) {
    const std::vector<double> scores = next_scores(written);
    written.push_back(static_cast<i32>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
  }
  return {written.begin() + 1, written.end()};
}
