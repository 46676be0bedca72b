// Chapter 5. Grades exercise 5.3.

void grade(Grader& g) {
  g.equal(
      "the first step is one learning rate long", [] { return MyAdam().next(1, -20, 0.1); }, 1.1,
      "m_hat and sqrt(v_hat) are both |g| at the first step. What must m = (1 - beta1) g be divided by for that?",
      1e-7);
  g.equal(
      "a gradient as small as eps makes half a step", [] { return MyAdam().next(1, 1e-9, 0.1); }, 0.95,
      "eps is added to the root, not to what stands under it.", 1e-7);
  g.equal(
      "six steps, as optim::Adam makes them",
      [] {
        MyAdam mine;
        double p = 1;
        for (const double gradient : {0.5, 0.4, -0.2, 1.0, 0.0, -0.3}) p = mine.next(p, gradient, 0.1);
        return p;
      },
      [] {
        const Variable p = parameter(Tensor::of<double>({1}, {1}), "p");
        optim::Adam adam({p}, {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9});
        for (const double gradient : {0.5, 0.4, -0.2, 1.0, 0.0, -0.3}) {
          backward(sum(p * gradient));
          adam.step(0.1);
        }
        return p.value().item();
      }(),
      "The corrections depend on the number of the step, counted from 1, and fade with it.");
}
