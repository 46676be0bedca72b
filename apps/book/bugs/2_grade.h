// Chapter 6. Grades bug 2.

// Attention of the same random numbers, by the library or by the copy. Q is V, too.
AttentionResult attended(const Mask& mask, bool by_the_library) {
  Rng rng(2);
  const Variable Q = constant(randn({2, 1, 4, 3}, rng, f64)), K = constant(randn({2, 1, 4, 3}, rng, f64));
  return by_the_library ? attention(Q, K, Q, mask) : my_attention(Q, K, Q, mask);
}

// A sequence that is all padding, so that no query sees a key: the weights and dL/dQ, dL/dK, dL/dV of (sum of the
// output), one after the other.
Tensor without_keys() {
  Rng rng(3);
  std::vector<Variable> heads;
  for (int i = 0; i < 3; ++i) heads.push_back(parameter(randn({1, 1, 2, 2}, rng, f64)));
  const AttentionResult result = my_attention(heads[0], heads[1], heads[2], Mask::padding(Tensor::of<i32>({1}, {0})));
  backward(sum(result.output));
  std::vector<Tensor> all{result.weights.value()};
  for (const Variable& head : heads) all.push_back(head.gradient());
  return concat(all, 0);
}

void grade(Grader& g) {
  const Mask padded = Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {4, 2}));
  g.equal(
      "its output without a mask", [] { return attended(Mask(), false).output.value(); },
      attended(Mask(), true).output.value(),
      "Without a mask every key counts, and the scores are divided by sqrt(d_k).");
  g.equal(
      "each row of weights adds up to 1", [&] { return sum(attended(padded, false).weights.value(), {-1}); },
      full({2, 1, 4}, 1.0, f64), "Over which keys is the softmax's sum taken?");
  g.equal(
      "its weights with a causal mask and padding", [&] { return attended(padded, false).weights.value(); },
      attended(padded, true).weights.value(),
      "Which weight has a hidden key, and what does it do to the weights of the others?");
  g.equal("weights and gradients of queries that see no key", without_keys, zeros({4, 1, 2, 2}, f64),
          "A hidden key has the weight 0, even if no other key is left to share the attention.");
  g.no_leak(
      "no position sees what comes after it",
      [] {
        Rng rng(1);
        const auto output = [](const Tensor& x) {
          const Variable heads = constant(x.reshape({2, 1, 4, 3}));
          return my_attention(heads, heads, heads, Mask::causal()).output.value().reshape({2, 4, 3});
        };
        return nn::LeakCheck{.name = "attention",
                             .input = randn({2, 4, 3}, rng, f64),
                             .output = output,
                             .may_move = nn::within_sequence(true)};
      },
      "A hidden key must not be in any sum: neither that of the values, nor that of the exponentials.");
  g.prove(
      "the whole proof",
      [padded] {
        return sample_of("attention",
                         [padded](const Variable& Q, const Variable& K, const Variable& V) {
                           return my_attention(Q, K, V, padded).output;
                         },
                         {{2, 1, 4, 3}, {2, 1, 4, 3}, {2, 1, 4, 3}});
      },
      "It passed before: what did you change besides the masked scores?");
}
