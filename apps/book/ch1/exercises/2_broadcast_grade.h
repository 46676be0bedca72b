// Chapter 1. Grades exercise 1.2.

void grade(Grader& g) {
  const auto gives = [&](const std::string& question, const std::vector<i64>& a, const std::vector<i64>& b,
                         const std::vector<i64>& expected, const std::string& hint) {
    const auto wrong = [=]() -> Tensor {
      std::vector<i32> sizes;
      for (const i64 size : my_broadcast(a, b)) sizes.push_back(static_cast<i32>(size));
      return Tensor::of<i32>({static_cast<i64>(sizes.size())}, sizes);
    };
    std::vector<i32> wanted(expected.begin(), expected.end());
    g.equal(question, wrong, Tensor::of<i32>({static_cast<i64>(wanted.size())}, wanted), hint);
  };
  const auto refuses = [&](const std::string& question, const std::vector<i64>& a, const std::vector<i64>& b) {
    g.check(
        question,
        [=] {
          try {
            my_broadcast(a, b);
          } catch (const Error&) { return true; }
          return false;
        },
        "Two sizes that differ fit only if one of them is 1. Anything else is a mistake that must not pass.");
  };
  gives("[3, 1] and [4]", {3, 1}, {4}, {3, 4}, "Write one shape below the other, flush right.");
  gives("[4] and [3, 1]", {4}, {3, 1}, {3, 4}, "The order of the two operands must not matter.");
  gives("[8, 1, 6] and [7, 1]", {8, 1, 6}, {7, 1}, {8, 7, 6},
        "The shapes are aligned at the last axis, not at the first one.");
  gives("[2, 5] and a scalar, []", {2, 5}, {}, {2, 5}, "A scalar has no axes; all of them are filled up with 1.");
  refuses("[3, 1] and [2, 2] do not fit", {3, 1}, {2, 2});
  refuses("[2, 3] and [2] do not fit", {2, 3}, {2});
  refuses("[0] and [3] do not fit", {0}, {3});
  gives("[0, 3] and [1, 3]", {0, 3}, {1, 3}, {0, 3},
        "An axis of size 1 is repeated as often as the other one says, and that may be 0 times.");
}
