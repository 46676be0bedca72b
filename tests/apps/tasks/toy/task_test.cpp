// Chapter 0. Tests of the toy tasks: right answers, fair draws, and text for people.
#include "apps/tasks/toy/task.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;

namespace {
ToyTask task(const std::string& name) {
  ToyTask result;
  result.name = name;
  return result;
}
}  // namespace

TEST_CASE("each task has its answer") {
  const Sequence source{4, 3, 6, 5};
  CHECK(task("reverse").answer(source) == Sequence{5, 6, 3, 4});
  CHECK(task("copy").answer(source) == source);
  CHECK(task("sort").answer(source) == Sequence{3, 4, 5, 6});
  CHECK(task("reverse").target(source) == Sequence{1, 5, 6, 3, 4, 2});
  const ToyTask annotated{.name = "copy", .end = -1, .first_symbol = 1, .begin_is_symbol = true};
  CHECK(annotated.target({1, 9, 4}) == Sequence{1, 9, 4});
}

TEST_CASE("draws have the lengths and symbols of the task, and are held out or not as asked") {
  const ToyTask reverse = task("reverse");
  Rng rng(3);
  std::vector<int> lengths(17), symbols(16);
  for (int i = 0; i < 4000; ++i) {
    const bool held_out = i % 4 == 0;
    const Sequence sequence = reverse.draw(rng, held_out);
    REQUIRE(is_held_out(sequence) == held_out);
    REQUIRE(sequence.size() >= 8);
    REQUIRE(sequence.size() <= 16);
    ++lengths[sequence.size()];
    for (i32 token : sequence) ++symbols.at(static_cast<size_t>(token));
  }
  for (size_t n = 8; n <= 16; ++n) CHECK(lengths[n] == doctest::Approx(4000 / 9.0).epsilon(0.2));
  for (size_t s = 0; s < 3; ++s) CHECK(symbols[s] == 0);
  for (size_t s = 3; s < 16; ++s) CHECK(symbols[s] == doctest::Approx(4000 * 12 / 13.0).epsilon(0.1));
}

TEST_CASE("a task too small to hold anything out says so") {
  ToyTask tiny;
  tiny.symbols = 2;
  tiny.min_length = tiny.max_length = 1;
  Rng rng(1);
  const bool first = is_held_out({3}), second = is_held_out({4});
  REQUIRE(first == second);
  CHECK_THROWS_WITH(tiny.draw(rng, !first), doctest::Contains("use more symbols or longer sequences"));
}

TEST_CASE("one sequence in eight is held out, by content alone") {
  const ToyTask reverse = task("reverse");
  Rng rng(5);
  int held_out = 0;
  for (int i = 0; i < 8000; ++i) {
    Sequence sequence(static_cast<size_t>(rng.integer(8, 17)));
    for (i32& token : sequence) token = static_cast<i32>(rng.integer(3, 16));
    held_out += is_held_out(sequence);
  }
  CHECK(held_out > 900);
  CHECK(held_out < 1100);
}

TEST_CASE("batches are padded, and answers end at the end mark") {
  const Tensor batch = batch_of({{5, 6}, {7}}, 3, 0);
  CHECK(same_bits(batch, Tensor::of<i32>({2, 3}, {5, 6, 0, 7, 0, 0})));
  CHECK(small::error_of([] {
          batch_of({{5}, {5, 6, 7, 8}}, 3, 0);
        }) == "toy: a sequence of 4 tokens does not fit into 3");
  const ToyTask reverse = task("reverse");
  const Tensor tokens = Tensor::of<i32>({2, 4}, {5, 6, 2, 0, 3, 3, 3, 3});
  CHECK(written(tokens, 0, reverse) == Sequence{5, 6});
  CHECK(written(tokens, 1, reverse) == Sequence{3, 3, 3, 3});
  const ToyTask annotated{.name = "copy", .end = -1, .first_symbol = 1, .begin_is_symbol = true};
  CHECK(written(tokens, 0, annotated) == Sequence{1, 5, 6, 2, 0});
}

TEST_CASE("text and parse are inverse, with and without blanks") {
  const ToyTask reverse = task("reverse");
  CHECK(reverse.text({3, 4, 15, 2, 0}) == "a b m");
  CHECK(reverse.parse("a b m") == Sequence{3, 4, 15});
  CHECK(reverse.parse("abm") == Sequence{3, 4, 15});
  ToyTask numbers = task("sort");
  numbers.symbols = 100;
  CHECK(numbers.text({3, 102}) == "3 102");
  CHECK(numbers.parse(" 3  102 ") == Sequence{3, 102});
}

TEST_CASE("what cannot be parsed is named") {
  const ToyTask reverse = task("reverse");
  CHECK_THROWS_WITH(reverse.parse("abz"), "toy: symbol 3 of 'abz' is not one of a to m");
  CHECK_THROWS_WITH(reverse.parse("aB"), "toy: symbol 2 of 'aB' is not one of a to m");
  CHECK_THROWS_WITH(reverse.parse("abcdefghijklmabcd"), "toy: a line needs 1 to 16 symbols, got 17");
  CHECK_THROWS_WITH(reverse.parse(" "), "toy: a line needs 1 to 16 symbols, got 0");
  ToyTask numbers = task("sort");
  numbers.symbols = 100;
  CHECK_THROWS_WITH(numbers.parse("3 x"), "toy: symbol 2 of '3 x' is not one of 3 to 102");
  CHECK_THROWS_WITH(numbers.parse("99999999999999999999"),
                    "toy: symbol 1 of '99999999999999999999' is not one of 3 to 102");
}

TEST_CASE("a task survives its JSON, and other JSON is refused") {
  ToyTask original{.name = "sort", .symbols = 9, .min_length = 2, .max_length = 5};
  const ToyTask copy = toy_task(to_json(original));
  CHECK(to_json(copy) == to_json(original));
  CHECK_THROWS_AS(toy_task("{}"), Error);
  CHECK_THROWS_AS(toy_task("nonsense"), Error);
  original.max_length = 1;
  CHECK_THROWS_AS(toy_task(to_json(original)), Error);
}

TEST_CASE("a task's fields are of their kind and in their range") {
  const std::string good = to_json(ToyTask{});
  const auto with = [&](const std::string& field, const std::string& value) {
    const size_t at = good.find("\"" + field + "\":"), begin = good.find(':', at) + 1,
                 end = good.find_first_of(",}", begin);
    REQUIRE(at != std::string::npos);
    return good.substr(0, begin) + value + good.substr(end);
  };
  for (const std::string field : {"symbols", "min_length", "max_length", "begin", "end", "first_symbol"}) {
    for (const std::string wrong :
         {"1.5", "true", "9223372036854775807", "18446744073709551615", "-9", "\"2\"", "null"}) {
      CAPTURE(field);
      CAPTURE(wrong);
      const std::string rule = "toy task: " + field + " must be a whole number";
      CHECK_THROWS_WITH(toy_task(with(field, wrong)), doctest::Contains(rule.c_str()));
    }
  }
  CHECK_THROWS_WITH(toy_task(with("begin_is_symbol", "0")), "toy task: begin_is_symbol must be true or false, not 0");
  CHECK_THROWS_WITH(toy_task(with("name", "\"a\\nb\"")), "toy task: name must be reverse, copy or sort, not 'a\\nb'");
  CHECK_THROWS_WITH(toy_task("{}"), "toy task: has no field \"name\"");
}
