// Chapter 8. Promise 3: every operation on 1,000 random shapes, forward and backward, with equal bits for any threads.
#include <algorithm>
#include <sstream>

#include "tests/autograd/sample_checks.h"
#include "tests/core/support.h"
#include "tests/promises/random_operations.h"
#include "tests/promises/rerun.h"

using namespace orrery;
using namespace orrery::promises;

namespace {

constexpr i64 shapes_per_operation = 1000;
constexpr i64 at_once = 50;  // calls between two changes of the number of threads

// Numbers drawn once, that inputs of any shape are cut from.
class Numbers {
 public:
  Numbers() {
    Rng rng(1);
    for (const Dtype dtype : {f32, f64}) {
      normal_.push_back(randn({count}, rng, dtype));
      positive_.push_back(rand_uniform({count}, 0.5, 2.5, rng, dtype));
    }
  }
  Tensor cut(const Shape& shape, bool positive, Dtype dtype, i64 from) const {
    REQUIRE(shape.count() + from <= count);
    return (positive ? positive_ : normal_)[dtype == f64].rows(from, from + shape.count()).reshape(shape);
  }

 private:
  static constexpr i64 count = 300'000;
  std::vector<Tensor> normal_, positive_;  // f32, f64
};

// The value of a call and the gradients of its inputs.
std::vector<Tensor> results(const Call& call, const Numbers& numbers, Dtype dtype) {
  Variables x;
  for (const Input& input : call.inputs) {
    x.push_back(parameter(numbers.cut(input.shape, input.positive, dtype, 11 * static_cast<i64>(x.size()))));
  }
  const Variable y = call.function(x);
  backward(y, numbers.cut(y.shape(), false, dtype, 5));
  std::vector<Tensor> all{y.value()};
  for (const Variable& input : x) all.push_back(input.gradient());
  return all;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& s, const Tensor& t) {
    return s.defined() == t.defined() && (!s.defined() || same_bits(s, t));
  });
}

// True when some loop of the call is long enough to be cut into chunks or tiles.
bool is_cut(const Call& call, const std::vector<Tensor>& tensors) {
  return call.tasks > 1 || std::any_of(tensors.begin(), tensors.end(),
                                       [](const Tensor& t) { return t.defined() && t.count() > elementwise_grain; });
}

std::string described(const Call& call, Dtype dtype, int threads) {
  std::ostringstream text;
  text << dtype << ", " << threads << " threads:";
  for (const Input& input : call.inputs) text << ' ' << input.shape;
  return text.str();
}

struct Tally {
  i64 compared = 0, cut = 0;
  std::vector<std::string> different;
};

// Draws a few calls, and compares each with 2, 3 and 8 threads to what it gave with one.
void compare(const RandomOperation& operation, const Numbers& numbers, Rng& rng, Tally& tally) {
  std::vector<Call> calls;
  std::vector<std::vector<Tensor>> expected;
  const auto dtype_of = [](size_t i) { return i % 2 == 0 ? f32 : f64; };
  {
    const small::Threads two(2);  // for the number of tiles of a product
    for (i64 i = 0; i < at_once; ++i) calls.push_back(operation.draw(rng));
  }
  for (const int threads : {1, 2, 3, 8}) {
    const small::Threads scope(threads);
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::vector<Tensor> got = results(calls[i], numbers, dtype_of(i));
      if (threads == 1) {
        tally.cut += is_cut(calls[i], got);
        expected.push_back(got);
      } else if (++tally.compared; !equal(got, expected[i])) {
        tally.different.push_back(described(calls[i], dtype_of(i), threads));
      }
    }
  }
}

bool makes_products(const std::string& name) {
  return name == "matmul" || name == "attention" || name == "convolution" || name.starts_with("linear") ||
         name.ends_with("feed_forward");
}

void check_bits(bool products) {
  const Numbers numbers;
  for (const RandomOperation& operation : random_operations()) {
    if (products != makes_products(operation.name)) continue;
    CAPTURE(operation.name);
    Rng rng(3);
    Tally tally;
    for (i64 done = 0; done < shapes_per_operation; done += at_once) compare(operation, numbers, rng, tally);
    CHECK(tally.compared == 3 * shapes_per_operation);
    CHECK(tally.cut >= shapes_per_operation / 4);
    CAPTURE(tally.different.empty() ? "" : tally.different.front());
    CHECK(tally.different.size() == 0);
  }
}

}  // namespace

TEST_CASE("promise 3: every function in autograd/ops.h is compared") {
  std::set<std::string> compared;
  for (const RandomOperation& operation : random_operations()) compared.insert(operation.name);
  CHECK(samples::row_differences(samples::operations(), compared, "tests/promises/random_operations.h") == "");
}

TEST_CASE("slow: promise 3: operations have equal bits for 1, 2, 3 and 8 threads") {
  if (!checked_with_sleeping_threads("slow: promise 3: operations have*")) check_bits(false);
}

TEST_CASE("slow: promise 3: products have equal bits for 1, 2, 3 and 8 threads") {
  if (!checked_with_sleeping_threads("slow: promise 3: products have*")) check_bits(true);
}
