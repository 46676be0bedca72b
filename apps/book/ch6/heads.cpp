// Chapter 6. Two heads by hand: three tokens, four features, numbers small enough for a calculator.
// Question: what is computed, number by number, when two heads look at three tokens?
// Answer: each head picks features to ask with, to be found by, and to hand over: its Q, K, V. Scores, weights and sums
//   follow; heads stand side by side, and W^O mixes them. Four equations lead back, and backward gives the same.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

void print(const std::string& name, const Tensor& x) {
  for (i64 i = 0; i < x.size(0); ++i) {
    std::cout << (i == 0 ? name : std::string(name.size(), ' '));
    for (i64 j = 0; j < x.size(1); ++j) std::cout << std::setw(9) << x(i, j);
    std::cout << '\n';
  }
}

// L is one number: the first one of the last token's output.
void print_backward(const Tensor& Q, const Tensor& K, const Tensor& V, const Tensor& P) {
  const double factor = 1 / std::sqrt(2.0);
  const Tensor dO = Tensor::of<double>({3, 2}, {0, 0, 0, 0, 1, 0});
  const Tensor dV = matmul(P, dO, Trans::a);
  const Tensor dP = matmul(dO, V, Trans::b);
  const Tensor dS = P * (dP - sum(dP * P, {-1}, true));
  const Tensor dQ = matmul(dS, K) * factor, dK = matmul(dS, Q, Trans::a) * factor;
  print("  dP row 2", dP.rows(2, 3));
  print("  dS row 2", dS.rows(2, 3));
  print("  dQ row 2", dQ.rows(2, 3));
  const Variable q = parameter(Q), k = parameter(K), v = parameter(V);
  backward(sum(matmul(softmax(matmul(q, k, Trans::b) * factor), v) * constant(dO)));
  for (const Tensor& error : {q.gradient() - dQ, k.gradient() - dK, v.gradient() - dV})
    check(sum_of_squares(error) < 1e-24, "heads", "backward gives other gradients");
}

}  // namespace

int main() {
  constexpr i64 n = 3, d_model = 4, h = 2, d_k = 2;
  std::cout << std::fixed << std::setprecision(4);
  const Tensor x = Tensor::of<double>({n, d_model}, {1, 0, 2, 0, 0, 2, 0, 1, 1, 1, 1, 1});
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
    if (i == 0) print_backward(Q, K, V, weights);
  }
  const Tensor y = matmul(concat(heads, -1), WO, Trans::b);
  print("side by side", concat(heads, -1));
  print("times W^O   ", y);

  Rng rng(1);
  constexpr i64 tokens = 1024, width = 64;
  const auto ms_of = [&](i64 count) {
    const Variable head = constant(randn({1, 1, count, width}, rng));
    return book::shortest_ms([&] { attention(head, head, head, Mask()); });
  };
  std::cout << "measured: a head of " << tokens << " tokens, d_k " << width << ": " << 2 * tokens * tokens * width
            << " multiplications and " << tokens * tokens * bytes_of(f32) << " bytes of scores in " << ms_of(tokens)
            << " ms; of half as many tokens, " << ms_of(tokens / 2) << " ms\n";
}
