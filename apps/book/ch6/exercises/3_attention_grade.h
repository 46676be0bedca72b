// Chapter 6. Grades exercise 6.3.

// For random queries and keys of 256 columns. Where V is the identity, the result is the weights.
double largest_weight() {
  Rng rng(6);
  const Variable q = constant(randn({8, 256}, rng, f64)), k = constant(randn({16, 256}, rng, f64));
  Tensor identity = zeros({16, 16}, f64);
  for (i64 i = 0; i < 16; ++i) identity(i, i) = 1;
  return max(my_attention(q, k, constant(identity)).value()).item();
}

void grade(Grader& g) {
  const Tensor Q = Tensor::of<double>({3, 2}, {1, 0, 0, 2, 1, 1}), V = Tensor::of<double>({3, 2}, {2, 0, 0, 1, 1, 1});
  const double e = std::exp(1 / std::sqrt(2.0)), total = 2 * e + 1;  // scores 1, 0, 1 before they are divided
  g.equal(
      "the first of three queries",
      [&] { return my_attention(constant(Q), constant(Q), constant(V)).value().rows(0, 1); },
      Tensor::of<double>({1, 2}, {3 * e / total, (1 + e) / total}),
      "These are the numbers of head 0 in the chapter. What are the scores divided by before softmax?");
  const double log2 = std::log(2.0), log3 = std::log(3.0);
  const Tensor queries = Tensor::of<double>({2, 4}, {2, 0, 0, 0, 0, 2, 0, 0});
  const Tensor keys =
      Tensor::of<double>({5, 4}, {log3, 0, 0, 0, log2, 0, 0, 0, 0, 0, 0, 0, 0, 2 * log2, 0, 0, 0, 0, 0, 0});
  const Tensor values = Tensor::of<double>({5, 3}, {8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 8, 0, 0});
  g.equal(
      "two queries, five keys, d_k = 4, d_v = 3",
      [&] { return my_attention(constant(queries), constant(keys), constant(values)).value(); },
      Tensor::of<double>({2, 3}, {4, 2, 2, 2, 1, 5}),
      "The dot products are 2 log 3, 2 log 2, 0, 0, 0 and 0, 0, 0, 4 log 2, 0. Which size is d_k?");
  g.check(
      "with 256 columns no key gets nearly all of the weight", [] { return largest_weight() < 0.9; },
      "The dot product of two long vectors is large, so that softmax is nearly one-hot. What does the paper do about "
      "it?");
  g.equal(
      "where all values are equal, the result is that value",
      [] {
        Rng rng(6);
        const Variable q = constant(randn({2, 4}, rng, f64)), k = constant(randn({5, 4}, rng, f64));
        return my_attention(q, k, constant(full({5, 3}, 1, f64))).value();
      },
      full({2, 3}, 1, f64), "The weights of one query add up to 1. Which axis does softmax run over?");
  g.gradients(
      "the gradients of Q, K and V",
      [] {
        Rng rng(6);
        const auto random = [&](i64 rows, i64 columns) { return randn({rows, columns}, rng, f64); };
        const std::vector<Tensor> inputs{random(2, 4), random(5, 4), random(5, 3)};
        return checkable([](const Variable& q, const Variable& k, const Variable& v) { return my_attention(q, k, v); },
                         inputs);
      },
      "Stay with Variables from beginning to end: a Tensor taken out of one has no gradient.");
}
