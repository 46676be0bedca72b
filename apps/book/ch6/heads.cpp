// Chapter 6. Two heads by hand: three tokens, four features, numbers small enough for a calculator.
// Question: what is computed, number by number, when two heads look at three tokens?
// Answer: each head picks features to ask with, to be found by, and to hand over: its Q, K, V. Scores, weights and sums
//   follow; heads stand side by side, and W^O mixes them. MultiHeadAttention with the same weights gives the same.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"

using namespace orrery;

namespace {

void print(const std::string& name, const Tensor& x) {
  for (i64 i = 0; i < x.size(0); ++i) {
    std::cout << (i == 0 ? name : std::string(name.size(), ' '));
    for (i64 j = 0; j < x.size(1); ++j) std::cout << std::setw(9) << x(i, j);
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  constexpr i64 n = 3, d_model = 4, h = 2, d_k = 2;
  std::cout << std::fixed << std::setprecision(4);
  const Tensor x = Tensor::of<double>({n, d_model}, {1, 0, 2, 0,    //
                                                     0, 2, 0, 1,    //
                                                     1, 1, 1, 1});  //
  // Each row of a weight picks one feature: head 0 compares features 0, 1 and hands over 2, 3; head 1 asks with 2, 3,
  // finds by 0, 1, and hands those over.
  const Tensor first = Tensor::of<double>({d_k, d_model}, {1, 0, 0, 0, 0, 1, 0, 0});
  const Tensor second = Tensor::of<double>({d_k, d_model}, {0, 0, 1, 0, 0, 0, 0, 1});
  const std::array<Tensor, h> WQ{first, second}, WK{first, first}, WV{second, first};
  const Tensor WO = Tensor::of<double>({d_model, d_model}, {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, -1, 0, 0, 1, 0, -1});

  std::vector<Tensor> heads;
  for (size_t i = 0; i < h; ++i) {
    const Tensor Q = matmul(x, WQ[i], Trans::b), K = matmul(x, WK[i], Trans::b), V = matmul(x, WV[i], Trans::b);
    const Tensor scores = matmul(Q, K, Trans::b) * (1 / std::sqrt(2.0));
    const Tensor weights = softmax(constant(scores)).value();
    heads.push_back(matmul(weights, V));
    std::cout << "head " << i << '\n';
    print("  Q      ", Q);
    print("  K      ", K);
    print("  V      ", V);
    print("  scores ", scores);
    print("  e^score", exp(constant(scores)).value());
    print("  weights", weights);
    print("  output ", heads.back());
  }
  const Tensor y = matmul(concat(heads, -1), WO, Trans::b);
  print("side by side", concat(heads, -1));
  print("times W^O   ", y);

  Rng rng(1);
  nn::MultiHeadAttention layer(d_model, h, rng);  // biases start at 0
  nn::to(layer, f64);
  layer.in_proj.weight.mutable_value() = concat({WQ[0], WQ[1], WK[0], WK[1], WV[0], WV[1]}, 0);
  layer.out_proj.weight.mutable_value() = WO;
  nn::Pass pass = nn::Pass::inference();
  const NoGradient nothing_recorded;
  const Tensor by_layer = layer(constant(x.reshape({1, n, d_model})), Mask(), pass).value().reshape({n, d_model});
  const double difference = std::sqrt(sum_of_squares(by_layer - y));
  std::cout << "MultiHeadAttention gives the same: " << (difference < 1e-12 ? "yes" : "no") << '\n';

  constexpr i64 tokens = 1024, width = 64;
  const auto ms_of = [&](i64 count) {
    const Variable head = constant(randn({1, 1, count, width}, rng));
    return book::shortest_ms([&] { attention(head, head, head, Mask()); });
  };
  std::cout << "measured: a head of " << tokens << " tokens, d_k " << width << ": " << 2 * tokens * tokens * width
            << " multiplications and " << tokens * tokens * bytes_of(f32) << " bytes of scores in " << ms_of(tokens)
            << " ms; of half as many tokens, " << ms_of(tokens / 2) << " ms\n";
  return difference < 1e-12 ? 0 : 1;
}
