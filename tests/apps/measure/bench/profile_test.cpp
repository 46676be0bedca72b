// Chapter 9. Tests of `orrery bench profile`: its rows add up, its table is readable, and calls, operations and bytes
// are known from shapes.
#include "apps/measure/bench/profile.h"

#include <doctest/doctest.h>
#include <sstream>

#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

const ProfileRow* find(const Profile& profile, const std::string& name) {
  for (const ProfileRow& row : profile.rows)
    if (row.name == name) return &row;
  return nullptr;
}

Profile toy_profile() {
  const int before = threads();
  set_threads(1);
  const Profile profile = measure_profile(bench_config("toy"), {.config = "toy", .steps = 3});
  set_threads(before);
  return profile;
}

}  // namespace

TEST_CASE("the rows of a profile are the whole step, the slowest first") {
  const Profile profile = toy_profile();
  double seconds = 0, share = 0;
  for (size_t i = 0; i < profile.rows.size(); ++i) {
    seconds += profile.rows[i].seconds;
    share += profile.rows[i].share;
    CHECK(profile.rows[i].seconds >= 0);
    if (i > 0) CHECK(profile.rows[i].seconds <= profile.rows[i - 1].seconds);
  }
  CHECK(share == doctest::Approx(1).epsilon(1e-9));
  CHECK(seconds == doctest::Approx(profile.seconds).epsilon(1e-9));
  CHECK(profile.observed > 0);
  CHECK(profile.unobserved > 0);
}

TEST_CASE("a profile counts the calls of one step, forward and backward, and what is not an operation") {
  const Profile profile = toy_profile();
  const ProfileRow* loss = find(profile, "linear_cross_entropy");
  REQUIRE(loss);
  CHECK(loss->calls == 1);
  CHECK(loss->flop_per_second > 0);
  REQUIRE(find(profile, "clipping and Adam"));
  REQUIRE(find(profile, "the tape, and the observer"));
  CHECK(find(profile, "clipping and Adam")->direction == "");
  i64 forward = 0, backward = 0, products = 0;
  for (const ProfileRow& row : profile.rows) {
    forward += row.direction == "forward";
    backward += row.direction == "backward";
    products += row.flop_per_second > 0;
    CHECK(row.calls == static_cast<double>(static_cast<i64>(row.calls)));
  }
  CHECK(forward > 0);
  CHECK(forward == backward);
  CHECK(products >= 2);
}

TEST_CASE("a profile prints as a table of at most 100 columns that ends with what looking on cost") {
  Profile profile{.seconds = 0.004, .observed = 0.00402, .unobserved = 0.004};
  profile.rows = {{.name = "linear_with_a_name_that_is_much_too_long_for_this",
                   .direction = "backward",
                   .calls = 123456,
                   .seconds = 0.003,
                   .share = 0.75,
                   .flop_per_second = 4.5e11},
                  {.name = "softmax",
                   .direction = "forward",
                   .calls = 6,
                   .seconds = 0.001,
                   .share = 0.25,
                   .bytes_per_second = 2.5e10}};
  std::ostringstream out;
  print_profile(out, profile);
  std::istringstream lines(out.str());
  std::string line, last;
  while (std::getline(lines, line)) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    last = line;
  }
  CHECK(last == "median step 4.020 ms observed, 4.000 ms not: what the observer costs is 0.5 %");
  profile.noise = 0.0001;  // larger than the difference
  std::ostringstream noisy;
  print_profile(noisy, profile);
  CHECK(noisy.str().ends_with("4.020 ms observed, 4.000 ms not: what the observer costs cannot be told\n"));
  CHECK(out.str().find("450.0 GF/s") != std::string::npos);
  CHECK(out.str().find("  25.0 %     25.0 GB/s\n") != std::string::npos);
}

TEST_CASE("the noise of a median is the middle half of the numbers over the root of their count, unknown of one") {
  CHECK(noise_of_median({1, 2, 4, 3}) == doctest::Approx((3 - 2) / 2.0));
  CHECK(noise_of_median({9, 1, 2, 3, 4, 5, 6, 7, 100}) == doctest::Approx((7 - 3) / 3.0));
  CHECK(noise_of_median({1}) > 1e9);
}

namespace {

Variable ones(const Shape& shape) { return parameter(full(shape, 1.0)); }

// What an observer sees of one evaluation of f, forward and backward.
template <class F> std::vector<OperationTime> seen(const F& f) {
  OperationTimes times;
  const ObserverScope scope(times);
  const Variable y = f();
  backward(y, full(y.shape(), 1.0));
  return times.summed_up();
}

OperationTime find(const std::vector<OperationTime>& all, const std::string& name, bool backward) {
  for (const OperationTime& time : all)
    if (time.name == name && time.backward == backward) return time;
  FAIL("not seen: ", name);
  return {};
}

}  // namespace

TEST_CASE("a product of m x k and k x n takes 2 m n k operations, backward twice as many") {
  const auto check_product = [](const Shape& a, const Shape& b, Trans trans, double flop) {
    const auto all = seen([&] { return matmul(ones(a), ones(b), trans); });
    CHECK(find(all, "matmul", false).flop == flop);
    CHECK(find(all, "matmul", true).flop == 2 * flop);
    CHECK(find(all, "matmul", false).bytes == 0);
  };
  check_product({3, 4}, {4, 5}, Trans::none, 2 * 3 * 4 * 5);
  check_product({3, 4}, {5, 4}, Trans::b, 2 * 3 * 4 * 5);
  check_product({4, 3}, {4, 5}, Trans::a, 2 * 3 * 4 * 5);
  check_product({7, 3, 4}, {5, 4}, Trans::b, 7 * 2 * 3 * 4 * 5);            // a shared right factor
  check_product({2, 7, 3, 4}, {2, 7, 5, 4}, Trans::b, 14 * 2 * 3 * 4 * 5);  // a batch
}

TEST_CASE("fused products are products") {
  const auto all = seen([] { return linear_relu(ones({2, 3, 4}), ones({5, 4}), ones({5})); });
  CHECK(find(all, "linear_relu", false).flop == 2 * 6 * 4 * 5);
  CHECK(find(all, "linear_relu", true).flop == 2 * 2 * 6 * 4 * 5);
}

TEST_CASE("attention is two products of every head") {
  const double flop = 2.0 * 3 * 5 * 5 * (2 * 4 + 2 * 6);  // B n m (h d_k + h d_v), twice
  const auto self = seen([] { return packed_attention(ones({3, 5, 2 * (4 + 4 + 6)}), {2, 4, 6}, Mask()); });
  CHECK(find(self, "packed_attention", false).flop == flop);
  CHECK(find(self, "packed_attention", true).flop == 2 * flop);
  const auto cross = seen([] {
    return packed_attention(ones({3, 7, 2 * 4}), ones({3, 5, 2 * (4 + 6)}), {2, 4, 6}, Mask());
  });
  CHECK(find(cross, "packed_attention", false).flop == flop / 5 * 7);
}

TEST_CASE("other operations move their inputs and outputs") {
  const auto all = seen([] {
    const Variable x = ones({8, 4}), row = ones({4});
    return relu(relu(x)) + row;
  });
  CHECK(find(all, "relu", false).calls == 2);
  CHECK(find(all, "relu", false).bytes == 2 * (128 + 128));
  CHECK(find(all, "relu", true).calls == 2);
  CHECK(find(all, "add", false).bytes == 128 + 16 + 128);
  CHECK(find(all, "add", true).calls == 1);
}

TEST_CASE("what is only handed on is not traffic") {
  const auto all = seen([] { return reshape(relu(ones({8, 4})), {32}); });
  CHECK(find(all, "reshape", false).bytes == 0);
  CHECK(find(all, "relu", true).bytes == 128 + 128);
}

TEST_CASE("a lookup reads as many rows as it writes, and writes a whole gradient") {
  const auto all = seen([] { return embedding(ones({100, 4}), full({8}, 3, Dtype::i32)); });
  CHECK(find(all, "embedding", false).bytes == 2 * 8 * 16);
  CHECK(find(all, "embedding", true).bytes == 8 * 16 + 100 * 16);
}

TEST_CASE("each name stands once for each direction, the slowest first") {
  const auto all = seen([] { return relu(exp(relu(ones({8, 4})))); });
  CHECK(all.size() == 4);
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i].seconds <= all[i - 1].seconds);
}
