// Chapter 9. Grades exercise 9.3.

constexpr int before = 4, after = 4;  // steps, before the state is taken and after it is resumed

void make_steps(MyTraining& training, int steps) {
  for (int i = 0; i < steps; ++i) training.step();
}

Tensor weight_of(MyTraining& training) { return training.layer.weight.value().clone(); }

// What `look` finds in a training that resumes another, which makes `more` steps after its state was taken.
template <class Look>
auto look_at_resumed(int more, const Look& look) {
  MyTraining first, second;
  make_steps(first, before);
  const MyState state = my_state(first);
  make_steps(first, more);
  my_resume(second, state);
  return look(second);
}

Tensor weight_after_more_steps(MyTraining& training) {
  make_steps(training, after);
  return weight_of(training);
}

void grade(Grader& g) {
  MyTraining whole;
  make_steps(whole, before);
  const Tensor halfway = weight_of(whole);
  const double position = static_cast<double>(whole.data.position());
  const Tensor at_the_end = weight_after_more_steps(whole);
  g.equal(
      "the parameters", [] { return look_at_resumed(0, weight_of); }, halfway, "Is every parameter in the state?", 0);
  g.equal(
      "the rate", [] { return look_at_resumed(0, [](MyTraining& training) { return training.rate(); }); },
      optim::noam(before, 4, 6), "The rate is a function of one number.", 0);
  g.equal(
      "the place in the random numbers",
      [] {
        return look_at_resumed(0, [](MyTraining& training) { return static_cast<double>(training.data.position()); });
      },
      position, "Rng(seed, position) makes a generator that goes on where another was.", 0);
  g.equal(
      "four steps, and four more after resuming", [] { return look_at_resumed(0, weight_after_more_steps); },
      at_the_end, "What else does an update need besides the gradient and the rate?", 0);
  g.equal(
      "a state stays what it was while the training goes on", [] { return look_at_resumed(3, weight_of); }, halfway,
      "A tensor that is copied with = shares its memory.", 0);
  g.equal(
      "the same, after four more steps", [] { return look_at_resumed(3, weight_after_more_steps); }, at_the_end,
      "Does the optimiser's state have memory of its own?", 0);
}
