// Chapter 6. Grades exercise 6.1.

void grade(Grader& g) {
  g.equal(
      "four queries and four keys", [] { return my_causal_mask(4, 4); },
      Tensor::of<i32>({4, 4}, {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}),
      "1 means that the query may attend. Does query 0 see itself? Does it see key 1?");
  g.equal(
      "later keys that the four queries see",
      [] {
        const Tensor allowed = my_causal_mask(4, 4);
        double later = 0;
        for (i64 i = 0; i < 4; ++i)
          for (i64 j = i + 1; j < 4; ++j) later += allowed(i, j);
        return later;
      },
      0, "1 allows and 0 hides: see the four rows above.");
  g.equal(
      "two queries after three earlier tokens", [] { return my_causal_mask(2, 5); },
      Tensor::of<i32>({2, 5}, {1, 1, 1, 1, 0, 1, 1, 1, 1, 1}),
      "With n = 2 and m = 5, query 0 is the fourth token of five. Which position does query i have?");
  g.equal(
      "the weights of attention under it",
      [] {
        Rng rng(6);
        const Variable scores = constant(randn({1, 1, 3, 4}, rng, f64));
        return masked_softmax(scores, Mask::allow(my_causal_mask(3, 4))).value();
      },
      [] {
        Rng rng(6);
        const Variable scores = constant(randn({1, 1, 3, 4}, rng, f64));
        return masked_softmax(scores, Mask::causal()).value();
      }(),
      "Each row of weights adds up to 1 over the keys that its query sees.");
}
