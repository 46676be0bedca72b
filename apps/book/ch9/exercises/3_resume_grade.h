// Chapter 9. Grades exercise 9.3.
//
// Serves: nn/files/files.h

void grade(Grader& g) {
  constexpr int before = 4, after = 4;
  const auto run = [](MyTraining& training, int steps) {
    for (int i = 0; i < steps; ++i) training.step();
  };
  const auto weight_of = [](MyTraining& training) { return training.layer.weight.value().clone(); };
  MyTraining whole;
  run(whole, before);
  const Tensor halfway = weight_of(whole);
  const i64 position = static_cast<i64>(whole.data.position());
  run(whole, after);
  // What `look` finds in a training resumed after `before` steps; `more` are made after its state was taken.
  const auto resumed = [&](int more, const auto& look) {
    MyTraining first, second;
    run(first, before);
    const MyState state = my_state(first);
    run(first, more);
    my_resume(second, state);
    return look(second);
  };
  g.equal(
      "the parameters", [&] { return resumed(0, weight_of); }, halfway, "Is every parameter in the state?", 0);
  g.equal(
      "the rate", [&] { return resumed(0, [](MyTraining& training) { return training.rate(); }); },
      optim::noam(before, 4, 6), "The rate is a function of one number.", 0);
  g.equal(
      "the place in the random numbers",
      [&] { return resumed(0, [](MyTraining& training) { return static_cast<double>(training.data.position()); }); },
      static_cast<double>(position), "Rng(seed, position) makes a generator that goes on where another was.", 0);
  g.equal(
      "four steps, and four more after resuming",
      [&] {
        return resumed(0, [&](MyTraining& training) {
          run(training, after);
          return weight_of(training);
        });
      },
      weight_of(whole), "What else does an update need besides the gradient and the rate?", 0);
  g.equal(
      "a state stays what it was while the training goes on", [&] { return resumed(3, weight_of); }, halfway,
      "A tensor that is copied with = shares its memory.", 0);
  g.equal(
      "the same, after four more steps",
      [&] {
        return resumed(3, [&](MyTraining& training) {
          run(training, after);
          return weight_of(training);
        });
      },
      weight_of(whole), "Does the optimiser's state have memory of its own?", 0);
}
