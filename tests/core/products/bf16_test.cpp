// Chapter 8. Products whose factors are rounded to bf16: rounding, every way of a product with all its edges, and a
// whole training step against f64.
#include "core/products/bf16.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "autograd/check/mutation.h"
#include "autograd/check/rounding.h"
#include "autograd/ops.h"
#include "core/products/packed_product.h"
#include "core/products/pairs.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"
#include "tests/core/products.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::products;

namespace {

// Half a unit of the last of 8 digits, as a share of the smallest number that has them; two factors of a product.
constexpr double bf16_unit = 1.0 / 256, bf16_bound = 2 * bf16_unit, f32_unit = 1.0 / (1 << 24);
constexpr double tiny = 1e-30;
constexpr float nan_of_f32 = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();

// The definition: of the two numbers of bf16 around x, the nearer one; in the middle, the one with an even last digit.
float nearest_by_definition(float x) {
  const u32 below = std::bit_cast<u32>(x) & 0xffff0000;
  const double low = std::bit_cast<float>(below), high = std::bit_cast<float>(below + 0x10000), value = x;
  const double down = std::fabs(value - low), up = std::fabs(high - value);
  const bool odd = (below >> 16 & 1) != 0;
  return static_cast<float>(up < down || (up == down && odd) ? high : low);
}

// Factors with NaN in all memory around them, and between their rows.
struct Factor {
  i64 rows, cols;
  std::vector<float> memory;
  static constexpr i64 before = 64, between = 3;

  Factor(i64 rows, i64 cols, Rng& rng)
      : rows(rows), cols(cols), memory(static_cast<size_t>(rows * (cols + between) + 2 * before), nan_of_f32) {
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < cols; ++j) *at(i, j) = static_cast<float>(2 * rng.uniform() - 0.7);
  }
  float* at(i64 i, i64 j) { return memory.data() + before + i * (cols + between) + j; }
  Mat<float> mat() { return {at(0, 0), rows, cols, cols + between}; }
};

using Product = std::function<void(const Mat<const float>& a, const Mat<const float>& b, const Mat<float>& c,
                                   Trans trans, bool accumulate)>;
struct Way {
  std::string name;
  Product product;
};
// All that multiplies bf16: what products are called by, and the kernels of this CPU and their plain forms.
std::vector<Way> ways() {
  std::vector<Way> all;
  all.push_back({"gemm", [](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                   gemm<float>(a, b, c, trans, accumulate);
                 }});
  all.push_back({"gemm_in_task", [](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                   gemm_in_task<float>(a, b, c, trans, accumulate);
                 }});
  all.push_back({"gemm_batch", [](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                   gemm_batch<float>(1, {a, 0}, {b, 0}, {c, 0}, trans, accumulate);
                 }});
  all.push_back({"rounded", [](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                   bf16_product(std::nullopt, a, b, c, trans, accumulate);
                 }});
  for (const auto& kernels : {plain_pair_kernels(), usable_pair_kernels()})
    for (const PairKernel& kernel : kernels) {
      all.push_back({kernel.name, [kernel](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                       bf16_product(kernel, a, b, c, trans, accumulate);
                     }});
      all.push_back({std::string(kernel.name) + " in a task",
                     [kernel](const auto& a, const auto& b, const auto& c, Trans trans, bool accumulate) {
                       multiply_pairs(kernel, a, b, c, trans, accumulate);
                     }});
    }
  return all;
}

// One product in bf16. `rounding`: the largest error next to f64, in 2^-7 of the sum of |a| |b|. `summing`: that next
// to the exact product of rounded factors, in units of what adding up k + 1 numbers of f32 may cost. Infinite if memory
// around C changed.
struct Errors {
  double rounding = 0, summing = 0;
};
Errors errors_of(i64 m, i64 n, i64 k, Trans trans, bool accumulate, const Product& product) {
  Rng rng(static_cast<u64>(m * 10007 + n * 101 + k));
  Factor a(transposes_a(trans) ? k : m, transposes_a(trans) ? m : k, rng),
      b(transposes_b(trans) ? n : k, transposes_b(trans) ? k : n, rng), c(m, n, rng);
  if (!accumulate) std::fill(c.memory.begin(), c.memory.end(), nan_of_f32);  // not read
  const Factor start = c;
  const UseBf16 scope;
  product(a.mat(), b.mat(), c.mat(), trans, accumulate);
  Errors worst;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      double exact = 0, rounded = 0, sum = 0;
      if (accumulate) exact = rounded = start.memory[static_cast<size_t>(c.at(i, j) - c.memory.data())];
      const double of_start = std::fabs(exact);
      for (i64 p = 0; p < k; ++p) {
        const float x = transposes_a(trans) ? *a.at(p, i) : *a.at(i, p),
                    y = transposes_b(trans) ? *b.at(j, p) : *b.at(p, j);
        exact += static_cast<double>(x) * y;
        rounded += static_cast<double>(rounded_to_bf16(x)) * rounded_to_bf16(y);
        sum += std::fabs(static_cast<double>(x) * y);
      }
      const double found = *c.at(i, j), f32_error = static_cast<double>(k + 1) * f32_unit * (1.01 * sum + of_start);
      worst.rounding = small::worse(worst.rounding, std::fabs(found - exact) / (bf16_bound * sum + f32_error + tiny));
      worst.summing = small::worse(worst.summing, std::fabs(found - rounded) / (f32_error + tiny));
      *c.at(i, j) = nan_of_f32;
    }
  for (const float value : c.memory)
    if (!std::isnan(value)) worst.summing = infinite;
  return worst;
}

}  // namespace

TEST_CASE("rounding to bf16 goes to the nearest number, ties to even, and keeps NaN and infinity") {
  i64 wrong = 0;
  for (u32 upper = 0; upper < 0x10000; ++upper)
    for (const u32 lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = std::bit_cast<float>(upper << 16 | lower), y = rounded_to_bf16(x);
      wrong += (std::bit_cast<u32>(y) & 0xffff) != 0;
      if (std::isnan(x))
        wrong += !std::isnan(y);
      else if (std::isinf(x) || (upper & 0x7fff) == 0x7f7f)  // from the largest numbers on, what is above is infinity
        wrong +=
            y != (std::isinf(x) || lower >= 0x8000 ? std::copysign(infinite, x) : std::bit_cast<float>(upper << 16));
      else
        wrong += y != nearest_by_definition(x) || std::signbit(y) != std::signbit(x);
    }
  CHECK(wrong == 0);
  CHECK(rounded_to_bf16(257) == 256);
  CHECK(rounded_to_bf16(259) == 260);
}

TEST_CASE("promise 5: products in bf16 are those of rounded factors, for all remainders, and read no neighbour") {
  const small::Threads one(1);
  const std::vector<Way> all = ways();
  Errors worst;
  const auto check = [&](i64 m, i64 n, i64 k, Trans trans) {
    for (const Way& way : all) {
      if (way.name == "gemm_in_task" && trans == Trans::both) continue;
      const bool accumulate = (m + n + k) % 2 == 0;
      INFO(m, " ", n, " ", k, " ", static_cast<int>(trans), " ", way.name, " ", accumulate);
      const Errors found = errors_of(m, n, k, trans, accumulate, way.product);
      CHECK(found.rounding <= (k > 30 ? 0.5 : 1));  // many errors add up to less
      CHECK(found.summing <= 1);
      worst = {std::max(worst.rounding, found.rounding), std::max(worst.summing, found.summing)};
    }
  };
  for (const Trans trans : every_trans) {
    for (const i64 k : {0, 1, 31, 33, 47, 95}) {
      check(1, 1, k, trans);
      check(5, 70, k, trans);
      check(35, 67, k, trans);
    }
    // Each remainder for A and A^T, and for B and B^T.
    for (i64 m = transposes_b(trans) ? 17 : 18; m <= 17 + 32; m += 2) check(m, 9, 33 + m / 2 % 2, trans);
    for (i64 n = transposes_a(trans) ? 1 : 2; n <= 66; n += 2) check(7, n, 31 + n / 2 % 2, trans);
    check(50, 200, 260, trans);  // several parts of what a task copies
  }
  CHECK(worst.rounding > 0.5);  // it did round
}

TEST_CASE("factors are rounded, not cut off: errors of positive products cancel in the mean") {
  constexpr i64 m = 40, n = 48, k = 96;
  Rng rng(6);
  Factor a(m, k, rng), b(k, n, rng);
  for (Factor* factor : {&a, &b})
    for (i64 i = 0; i < factor->rows; ++i)
      for (i64 j = 0; j < factor->cols; ++j) *factor->at(i, j) = static_cast<float>(1 + rng.uniform());
  // The mean of (found - exact) / exact; each factor that is cut off is too small by 0.0027 of itself in the mean.
  const auto mean_error = [&](const Product& product, auto rounded) {
    Factor left = a, right = b, c(m, n, rng);
    for (Factor* factor : {&left, &right})
      for (i64 i = 0; i < factor->rows; ++i)
        for (i64 j = 0; j < factor->cols; ++j) *factor->at(i, j) = rounded(*factor->at(i, j));
    const UseBf16 scope;
    product(left.mat(), right.mat(), c.mat(), Trans::none, false);
    double mean = 0;
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) {
        double exact = 0;
        for (i64 p = 0; p < k; ++p) exact += static_cast<double>(*a.at(i, p)) * *b.at(p, j);
        mean += (*c.at(i, j) - exact) / exact / (m * n);
      }
    return mean;
  };
  const auto cut_off = [](float x) { return std::bit_cast<float>(std::bit_cast<u32>(x) & 0xffff0000); };
  for (const Way& way : ways()) {
    INFO(way.name);
    CHECK(std::fabs(mean_error(way.product, [](float x) { return x; })) < 2e-4);
    CHECK(mean_error(way.product, cut_off) < -0.004);
  }
}

TEST_CASE("products in bf16 of several blocks, and their bits for any number of threads") {
  Rng rng(3);
  for (const auto& [m, n, k] : {std::array<i64, 3>{700, 300, 1100}, {3, 700, 300}, {257, 1259, 131}, {1, 1, 1}}) {
    const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng), a_t = permute(a, {1, 0}), b_t = permute(b, {1, 0});
    const auto rounded = [](const Tensor& x) {
      Tensor y = x.clone();
      for (i64 i = 0; i < y.count(); ++i) y.write<float>()[i] = rounded_to_bf16(y.write<float>()[i]);
      return y;
    };
    const Tensor expected = matmul(rounded(a).to(f64), rounded(b).to(f64)), f64_product = matmul(a.to(f64), b.to(f64));
    const UseBf16 scope;
    CHECK(same_bits(matmul(a.to(f64), b.to(f64)), f64_product));  // f64 stays as it is
    for (const PairKernel& kernel : plain_pair_kernels()) {
      const auto product = [&, m = m, n = n, k = k] {
        Tensor c = Tensor::empty({m, n});
        bf16_product(kernel, {a.data<float>(), m, k}, {b.data<float>(), k, n}, {c.write<float>(), m, n}, Trans::none,
                     false);
        return c;
      };
      CHECK(largest_magnitude({sub(product().to(f64), expected)}) <= 2e-6 * std::sqrt(static_cast<double>(k + 1)) * 8);
      if (m * n * k < 1'000'000) CHECK(small::same_for_any_threads(product));  // plain C++ is slow
    }
    for (const Trans trans : every_trans) {
      const auto product = [&] { return matmul(transposes_a(trans) ? a_t : a, transposes_b(trans) ? b_t : b, trans); };
      CHECK(largest_magnitude({sub(product().to(f64), expected)}) <= 2e-6 * std::sqrt(static_cast<double>(k + 1)) * 8);
      CHECK(small::same_for_any_threads(product));
    }
  }
}

TEST_CASE("parts of the inner index and of C: bias and finish come once, and sums go on") {
  const UseBf16 scope;
  Rng rng(4);
  for (const auto& [m, n, k] : {std::array<i64, 3>{600, 40, 4200}, {600, 1100, 2100}, {5, 300, 0}}) {
    const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng), bias = randn({n}, rng);
    Tensor expected = Tensor::empty({m, n}), found = Tensor::empty({m, n});
    const auto fill_in = [&, n = n](Tensor& c) {
      return [&bias, n, to = c.write<float>()](const Tile& t) {
        for (i64 i = t.row; i < t.row_end; ++i)
          std::copy(bias.data<float>() + t.column, bias.data<float>() + t.column_end, to + i * n + t.column);
      };
    };
    const auto negate_in = [n = n](Tensor& c) {
      return [n, to = c.write<float>()](const Tile& t) {
        for (i64 i = t.row; i < t.row_end; ++i)
          for (i64 j = t.column; j < t.column_end; ++j) to[i * n + j] = -to[i * n + j];
      };
    };
    const Tile whole{0, m, 0, n};
    const Mat<const float> left(a.data<float>(), m, k), right(b.data<float>(), k, n);
    fill_in(expected)(whole);
    gemm<float>(left, right, {expected.write<float>(), m, n}, Trans::none, true);
    negate_in(expected)(whole);
    const auto fill = fill_in(found);
    const auto finish = negate_in(found);
    gemm<float>(left, right, {found.write<float>(), m, n}, Trans::none, fill, finish);
    CHECK(same_bits(found, expected));
    if (k == 0) continue;
    const double error = std::fabs(found.at(m * n - 1) + bias.at(n - 1) + [&, k = k, n = n, m = m] {
      double sum = 0;
      for (i64 p = 0; p < k; ++p)
        sum += static_cast<double>(rounded_to_bf16(static_cast<float>(a.at((m - 1) * k + p)))) *
               rounded_to_bf16(static_cast<float>(b.at(p * n + n - 1)));
      return sum;
    }());
    CHECK(error <= 2e-6 * std::sqrt(static_cast<double>(k)) * 8);
  }
}

TEST_CASE("a NaN or an infinity in a factor reaches what is computed from it, in bf16 too") {
  const Tensor ones = full({40, 50}, 1.0), weights = full({50, 30}, 1.0);
  for (const float bad : {nan_of_f32, std::bit_cast<float>(0x7f800001u), infinite}) {
    Tensor x = ones.clone();
    x.write<float>()[7 * 50 + 3] = bad;
    const UseBf16 scope;
    const Tensor y = matmul(x, weights);
    i64 wrong = 0;
    for (i64 i = 0; i < y.count(); ++i)
      wrong += i / 30 == 7 ? std::isnan(y.at(i)) != std::isnan(bad) || std::isfinite(y.at(i)) : y.at(i) != 50;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a kernel is used only if its products are those of its plain form") {
  for (PairKernel kernel : plain_pair_kernels()) {
    CHECK(agrees_with_plain_form(kernel));
    kernel.block = [](const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool add) {
      plain_dots(a, b, c, stride, std::max<i64>(0, steps - 1), add);  // forgets the end of each sum
    };
    CHECK_FALSE(agrees_with_plain_form(kernel));
    kernel.block = [](const u32* a, const u32* b, float* c, i64 stride, i64 steps, bool) {
      plain_dots(a, b, c, stride, steps, false);  // forgets what is there
    };
    CHECK_FALSE(agrees_with_plain_form(kernel));
  }
  PairKernel kernel = plain_pair_kernels()[0];
  kernel.pack = [](const Strided<float>& from, i64 rows, i64 depth, bool by_pairs, u32* to, i64 stride) {
    plain_pack(from, rows, std::min<i64>(depth, 31), by_pairs, to, stride);  // forgets the last number
  };
  CHECK_FALSE(agrees_with_plain_form(kernel));
  const Bf16Kernel& used = bf16_kernel();
  CHECK(used.wrong == "");
  const std::vector<PairKernel> usable = usable_pair_kernels();
  CHECK(used.kernel.has_value() == (!usable.empty() && usable[0].pays));
}

TEST_CASE("OpenBLAS computes no product in bf16: whoever asks for both gets an error, and nothing changes") {
  const std::string rule = "products: OpenBLAS computes them in f32; with bf16, the library has to";
  {
    const UseBf16 scope;
    CHECK(small::error_of([] { use_blas(true); }) == rule);
    CHECK_FALSE(uses_blas());
  }
  const UseBlas by_blas;
  CHECK(small::error_of([] { use_bf16(true); }) == rule);
  CHECK_FALSE(uses_bf16());
}

namespace {

// sum(relu(x W1^T) W2^T) of positive numbers: every sum of |a| |b| is the product itself, so that its bound is one of
// the relative error of each number.
std::vector<Tensor> gradients_of_positive_layers(Dtype dtype) {
  Rng rng(5);
  const auto positive = [&](const Shape& shape) { return rand_uniform(shape, 0.1, 1, rng).to(dtype); };
  const Checkable f = checkable([](const Variable& x, const Variable& W1,
                                   const Variable& W2) { return sum(linear(linear_relu(x, W1, {}), W2, {})); },
                                {positive({33, 47}), positive({95, 47}), positive({31, 95})});
  return gradients_of(f, full({}, 1.0, dtype));
}

constexpr i64 layers = 2;

// The loss of a Transformer of odd sizes, dropout on, and the gradient of each parameter.
std::vector<Tensor> gradients_of_transformer(Dtype dtype) {
  Rng rng(6);
  nn::Transformer model({.src_vocab_size = 37,
                         .tgt_vocab_size = 31,
                         .layer = {.d_model = 51, .num_heads = 3, .d_ff = 95, .dropout = 0.1},
                         .num_encoder_layers = layers,
                         .num_decoder_layers = layers,
                         .max_len = 20},
                        rng);
  nn::to(model, dtype);
  const Tensor source = randint(1, 37, {5, 17}, rng), target = randint(1, 31, {5, 14}, rng);
  std::vector<Tensor> found;
  const auto loss = [&] {
    nn::Pass pass = nn::Pass::training(1, 1);
    const Variable y = cross_entropy(model(source, slice(target, 1, 0, -1), pass), slice(target, 1, 1), {});
    found.assign(1, y.value());
    return y;
  };
  const std::vector<Tensor> gradients =
      gradients_of({.output = loss, .leaves = model.parameters()}, full({}, 1.0, dtype));
  found.insert(found.end(), gradients.begin(), gradients.end());
  return found;
}

double norm(const Tensor& x) { return std::sqrt(sum_of_squares(x)); }

}  // namespace

TEST_CASE("a training step in bf16 is that of f64 within the bound of its products, for any number of threads") {
  const std::vector<Tensor> exact = gradients_of_positive_layers(f64), exact_model = gradients_of_transformer(f64);
  const UseBf16 scope;
  // dx = (dy W2) W1, dW1 = (dy W2)^T x, dW2 = dy^T relu(x W1^T): two products each, and f32's own rounding.
  const double of_a_product = bf16_bound + 100 * f32_unit, bound = std::pow(1 + of_a_product, 2) - 1;
  const std::vector<Tensor> found = gradients_of_positive_layers(f32);
  double worst = 0;
  for (size_t leaf = 0; leaf < exact.size(); ++leaf)
    for (i64 i = 0; i < exact[leaf].count(); ++i)
      worst = small::worse(worst, std::fabs(found[leaf].at(i) / exact[leaf].at(i) - 1));
  CHECK(worst <= bound);
  CHECK(worst > bound / 100);
  // The longest way through an encoder's layer has 5 products, queries and keys counted once, through a decoder's 7,
  // and the head adds one. Backward goes the same way, and ends with the product for a weight. To first order, and by
  // norms, their errors add up.
  const double products = 2 * (layers * (5 + 7) + 1) + 1;
  const std::vector<Tensor> model = gradients_of_transformer(f32);
  double largest = 0;
  for (size_t i = 0; i < model.size(); ++i) {
    CAPTURE(i);
    const double error = norm(sub(model[i].to(f64), exact_model[i]));
    CHECK(error <= products * bf16_unit * norm(exact_model[i]) + 1e-6);
    largest = std::max(largest, error / (norm(exact_model[i]) + 1e-6));
  }
  CHECK(largest > bf16_unit);
  MESSAGE("the gradients of positive layers are off by ", worst, " at most, of a Transformer by ", largest);
  for (const int count : {2, 3, 4, 8}) {
    const small::Threads scope_of_threads(count);
    const std::vector<Tensor> again = gradients_of_transformer(f32);
    for (size_t i = 0; i < model.size(); ++i) CHECK(same_bits(again[i], model[i]));
  }
}
