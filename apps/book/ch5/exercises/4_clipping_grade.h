// Chapter 5. Grades exercise 5.4.

void grade(Grader& g) {
  const auto gradients = [] {
    return std::vector<Tensor>{Tensor::of<double>({1}, {3}), Tensor(), Tensor::of<double>({2}, {0, 4})};
  };
  g.equal(
      "the norm of (3), an undefined gradient and (0, 4)",
      [=] {
        auto all = gradients();
        return my_clip(all, 100);
      },
      5, "Add up the squares of everything that is defined, then take one root.");
  g.equal(
      "the norm before clipping, where it is clipped to 1",
      [=] {
        auto all = gradients();
        return my_clip(all, 1);
      },
      5, "Return what was measured, not what is left of it.");
  g.equal(
      "the first gradient clipped to a norm of 1",
      [=] {
        auto all = gradients();
        my_clip(all, 1);
        return all[0];
      },
      Tensor::of<double>({1}, {0.6}), "One factor for all: clipping keeps the direction of the step.", 1e-5);
  g.equal(
      "the other one",
      [=] {
        auto all = gradients();
        my_clip(all, 1);
        return all[2];
      },
      Tensor::of<double>({2}, {0, 0.8}), "One factor for all: clipping keeps the direction of the step.", 1e-5);
  g.equal(
      "gradients within the bound stay as they are",
      [=] {
        auto all = gradients();
        my_clip(all, 10);
        return all[2];
      },
      Tensor::of<double>({2}, {0, 4}), "max_norm is a bound, not a length that every step should have.");
}
