// Chapter 6. Grades exercise 6.5.

void grade(Grader& g) {
  constexpr i64 n = 2, m = 3, d_k = 4, d_v = 5;
  Rng rng(6);
  const Tensor Q = randn({n, d_k}, rng, f64), K = randn({m, d_k}, rng, f64), V = randn({m, d_v}, rng, f64);
  const Tensor dO = randn({n, d_v}, rng, f64);
  // The gradient of input `which` by the student's backward, or by the tape of the operations it is made of.
  const auto gradient = [=](size_t which, bool by_student) {
    const std::vector<Variable> x{parameter(Q.clone()), parameter(K.clone()), parameter(V.clone())};
    const Variable scores = matmul(x[0], x[1], Trans::b) * (1 / std::sqrt(static_cast<double>(d_k)));
    backward(by_student ? my_attention(x[0], x[1], x[2]) : matmul(softmax(scores), x[2]), dO);
    return x[which].gradient();
  };
  g.equal(
      "dV", [=] { return gradient(2, true); }, gradient(2, false), "O = P V: what is dV for this product?");
  g.equal(
      "dQ", [=] { return gradient(0, true); }, gradient(0, false),
      "From dO to dP, from dP to dS by softmax, from dS to dQ. S is Q K^T times a factor.");
  g.equal(
      "dK", [=] { return gradient(1, true); }, gradient(1, false),
      "Which shape has dS, and which dK? The product that fits is the transposed one.");
  g.check(
      "where all keys are equal to 1, dQ is 0: each row of dS adds up to 0",
      [=] {
        const Variable q = parameter(Q.clone());
        backward(my_attention(q, constant(full({m, d_k}, 1, f64)), constant(V)), dO);
        return sum_of_squares(q.gradient()) < 1e-24;
      },
      "The weights of a row always add up to 1. What does softmax subtract from dP?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_attention", my_attention, {{2, 4}, {3, 4}, {3, 5}});
      },
      "Only what is Saved may be read in backward, and nothing may be written to it.");
}
