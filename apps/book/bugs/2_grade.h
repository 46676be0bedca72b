// Chapter 6. Grades bug 2.
//
// Serves: autograd/ops/attention.cpp

// What the library gives for the same random numbers.
AttentionResult attended(const Mask& mask, bool by_the_library) {
  Rng rng(2);
  const Variable Q = constant(randn({2, 1, 4, 3}, rng, f64)), K = constant(randn({2, 1, 4, 3}, rng, f64));
  return by_the_library ? attention(Q, K, Q, mask) : my_attention(Q, K, Q, mask);
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
