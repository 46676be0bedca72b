// Chapter 6. Grades bug 9.

void grade(Grader& g) {
  Rng rng(9);
  const Variable Q = constant(randn({2, 3, 4}, rng, f64)), K = constant(randn({2, 5, 4}, rng, f64));
  g.equal(
      "its value", [&] { return my_scores(Q, K).value(); }, matmul(Q, K, Trans::b).value() * 0.5,
      "The forward was right: d_k is 4 here.");
  g.prove(
      "the whole proof, d_k = 4",
      [] {
        return sample_of("scores", my_scores, {{2, 3, 4}, {2, 5, 4}});
      },
      "Is the ratio the same everywhere? Which number of the forward is it?");
  g.prove(
      "the whole proof, d_k = 3",
      [] {
        return sample_of("scores", my_scores, {{2, 3, 3}, {2, 5, 3}});
      },
      "How does the ratio change with d_k?");
}
