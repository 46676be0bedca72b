// Chapter 0. Grades exercise 0.1.

void grade(Grader& g) {
  const Tensor source = Tensor::of<i32>({2, 3}, {5, 6, 7, 9, 9, 4});
  const Tensor target = Tensor::of<i32>({2, 5}, {1, 5, 6, 7, 2, 1, 9, 9, 4, 2});
  g.equal(
      "the target of copy", [&] { return my_target(source); }, target,
      "Each row is the begin mark, the symbols in the order in which the source has them, and the end mark.");
  g.equal(
      "what the decoder reads", [&] { return my_decoder_input(target); },
      Tensor::of<i32>({2, 4}, {1, 5, 6, 7, 1, 9, 9, 4}),
      "It starts with the begin mark. Nothing comes after the end mark, so nobody has to read that one. slice(x, 1, "
      "begin, end) cuts along the second axis; a negative end counts from the right.");
  g.equal(
      "what the decoder should say", [&] { return my_next_tokens(target); },
      Tensor::of<i32>({2, 4}, {5, 6, 7, 2, 9, 9, 4, 2}),
      "Where the decoder reads token t of the target, it should say token t + 1. Nobody says the begin mark.");
}
