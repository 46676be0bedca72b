// Chapter 0. A wrong answer to exercise 0.4: the model is shown only the last token.
// Expect: does not begin with the begin mark
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using NextScores = std::function<std::vector<double>(const std::vector<i32>& written)>;

std::vector<i32> my_write(const NextScores& next_scores, i64 most) {
  std::vector<i32> answer;
  i32 last = 1;
  for (i64 said = 0; said < most; ++said) {
    const std::vector<double> scores = next_scores({last});
    last = static_cast<i32>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    if (last == 2) break;
    answer.push_back(last);
  }
  return answer;
}
