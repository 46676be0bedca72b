// Chapter 6. Every operation's row in the table of proofs, and a row for every operation.
#include "autograd/check/samples.h"

#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>

#include "core/tensor_ops.h"
#include "nn/check/samples.h"
#include "tests/autograd/sample_checks.h"

using namespace orrery;

TEST_CASE("promise 6: promise 8: promise 10: every sample of an operation is proven in every part") {
  samples::check_table(operation_samples());
}

TEST_CASE("walks that keep the tape give the gradients of a fresh tape, for every operation and layer") {
  const auto gradients = [](Checkable& f) {
    std::vector<Tensor> all;
    for (NamedParameter& leaf : f.leaves) {
      all.push_back(leaf.value.gradient());
      leaf.value.clear_gradient();
    }
    return all;
  };
  for (const auto* table : {&operation_samples(), &nn::module_samples()}) {
    for (const Sample& sample : *table) {
      INFO(sample.name, ", ", sample.variant);
      Checkable fresh = sample.build(f32), kept = sample.build(f32);
      const Variable expected = fresh.output(), y = kept.output();
      if (!y.wants_gradient()) continue;
      const Tensor dy = samples::cotangent(y.shape());
      backward(expected, dy);
      const std::vector<Tensor> right = gradients(fresh);
      for (const bool keep : {true, true, false}) {
        backward(y, dy, {.keep = keep});
        const std::vector<Tensor> got = gradients(kept);
        REQUIRE(got.size() == right.size());
        for (size_t i = 0; i < right.size(); ++i) CHECK(same_bits(got[i], right[i]));
      }
    }
  }
}

TEST_CASE("promise 6: every function in autograd/ops.h has a sample, and every sample a function") {
  const std::set<std::string> functions = samples::operations();
  CHECK(functions.size() > 30);
  CHECK(samples::row_differences(functions, samples::names_of(operation_samples()), "autograd/check/samples.cpp") ==
        "");
}

TEST_CASE("autograd/ops.h names beside each header what it declares, and leaves none out") {
  std::set<std::string> lines;
  samples::find_names(ORRERY_SOURCE_DIR "/autograd/ops.h", R"(^#include (.*))", lines);
  for (const std::string& line : lines) {
    CAPTURE(line);
    std::smatch parts;
    REQUIRE(std::regex_match(line, parts, std::regex(R"re("([\w/]+\.h)" +// ([\w ]+)(, and \+ - \* /)?)re")));
    std::istringstream words(parts[2]);
    const std::set<std::string> named{std::istream_iterator<std::string>(words), {}};
    CHECK(samples::row_differences(samples::functions_of(parts[1]), named, "autograd/ops.h") == "");
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(ORRERY_SOURCE_DIR "/autograd/ops")) {
    const std::string path = std::filesystem::relative(file.path(), ORRERY_SOURCE_DIR).string();
    std::set<std::string> calls;
    if (path.ends_with(".cpp"))
      samples::find_names(file.path().string(), R"(^Variable \w+\(.* (apply|elementwise)\()", calls);
    if (calls.empty()) continue;
    const std::string header = path.substr(0, path.size() - 4) + ".h";
    CHECK_MESSAGE(samples::operation_headers().contains(header), "autograd/ops.h does not include ", header);
  }
}

namespace {

// More rows, or more elements on one axis, than the 8,192 that go into one chunk of a loop.
bool is_long(const Tensor& x) { return (x.rank() < 2 ? x.count() : x.count() / std::max<i64>(1, x.size(-1))) > 8192; }

bool is_long(const Sample& sample) {
  const Checkable f = sample.build(f64, 1);
  return std::any_of(f.leaves.begin(), f.leaves.end(), [](const auto& leaf) { return is_long(leaf.value.value()); }) ||
         is_long(f.output().value());
}

}  // namespace

// Loops cut their work into chunks; short samples fit into one. No function is excepted so far.
TEST_CASE("promise 6: every function in autograd/ops.h has a long sample") {
  CHECK_FALSE(is_long(operation_samples().front()));
  std::set<std::string> found;
  for (const Sample& sample : operation_samples())
    if (!found.contains(sample.name) && is_long(sample)) found.insert(sample.name);
  for (const std::string& name : samples::names_of(operation_samples()))
    CHECK_MESSAGE(
        found.contains(name),
        name << " has no row of more than 8,192 elements: add a long row in autograd/check/samples.cpp, or for "
                "a function of single elements use add_unary in simple_samples.cpp");
}

TEST_CASE("rows that a table of samples lacks, and rows of functions that do not exist, are named") {
  CHECK(samples::row_differences({"a", "b"}, {"a", "b"}, "t.cpp") == "");
  CHECK(samples::row_differences({"a", "b"}, {"a", "c"}, "t.cpp") ==
        "\nb has no row in t.cpp\nt.cpp has a row for c, which does not exist");
}

TEST_CASE("the seed decides every input of every sample") {
  for (const std::vector<Sample>* table : {&operation_samples(), &nn::module_samples()}) {
    for (const Sample& sample : *table) {
      CAPTURE(sample.name);
      CAPTURE(sample.variant);
      const Checkable first = sample.build(f64, 1), again = sample.build(f64, 1), other = sample.build(f64, 2);
      for (size_t i = 0; i < first.leaves.size(); ++i) {
        const Tensor &a = first.leaves[i].value.value(), &b = other.leaves[i].value.value();
        CHECK(same_bits(a, again.leaves[i].value.value()));
        // The inputs of max and min are the same numbers always: no two may be near each other.
        if (a.count() > 0 && sample.name != "max" && sample.name != "min") CHECK_FALSE(same_bits(a, b));
      }
    }
  }
}
