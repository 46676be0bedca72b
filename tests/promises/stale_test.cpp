// Chapter 8. Promise 11: what an operation saved and somebody changed in place is an error that names the operation.
#include "autograd/check/samples.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/autograd/sample_checks.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// The operations that need neither inputs nor outputs for their derivative, or have computed it in the forward pass.
const std::set<std::string> save_nothing{"add",          "sub",          "neg",
                                         "scale",        "shift",        "by_distance",
                                         "sum",          "mean",         "reshape",
                                         "permute",      "concat",       "slice",
                                         "split",        "split3",       "dropout",
                                         "zero_padding", "residual",     "linear_cross_entropy",
                                         "rotary",       "broadcast_to", "cumulative_sum",
                                         "select"};

// Names of all operations on the tape behind y.
void collect_names(const Variable& y, std::set<std::string>& names) {
  std::vector<const Node*> waiting{y.node().get()};
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    names.insert(std::string(node->name));
    for (const Edge& edge : node->inputs)
      if (edge.node) waiting.push_back(edge.node.get());
  }
}

// What backward throws once `changed` (a leaf's number, or the output where it is the number of leaves) was overwritten
// after forward; "" if nothing. The gradients then have the bits they have without the change.
std::string error_after_change(const Sample& sample, size_t changed) {
  Checkable f = sample.build(f64);
  const Variable y = f.output();
  if (!y.wants_gradient()) return "";
  std::set<std::string> names;
  collect_names(y, names);
  Tensor target = changed < f.leaves.size() ? f.leaves[changed].value.value() : y.value();
  const Tensor u = samples::cotangent(y.shape()).to(f64);
  fill(target, 0.37);
  const std::string error = small::error_of([&] { backward(y, u); });
  if (!error.empty()) {
    CHECK(error.find("(backward): saved tensor: a tensor of shape") != std::string::npos);
    CHECK(names.count(error.substr(0, error.find(" (backward)"))) == 1);
    return error;
  }
  Checkable untouched = sample.build(f64);
  backward(untouched.output(), u);
  for (size_t i = 0; i < f.leaves.size(); ++i) {
    const Tensor &got = f.leaves[i].value.gradient(), &expected = untouched.leaves[i].value.gradient();
    CHECK(got.defined() == expected.defined());
    if (got.defined()) CHECK(same_bits(got, expected));
  }
  return "";
}

}  // namespace

TEST_CASE("promise 11: a value changed in place is an error naming the operation, or was not needed") {
  std::set<std::string> named;  // operations that threw at least once
  i64 changes = 0, errors = 0;
  for (const Sample& sample : operation_samples()) {
    INFO(sample.name, ", ", sample.variant);
    const size_t leaves = sample.build(f64).leaves.size();
    for (size_t changed = 0; changed <= leaves; ++changed) {
      const std::string error = error_after_change(sample, changed);
      ++changes;
      errors += !error.empty();
      if (!error.empty()) named.insert(error.substr(0, error.find(" (backward)")));
    }
  }
  // These save their ids or condition alone: below.
  for (const char* name : {"embedding", "embedding_sum", "index_rows", "where", "gather", "scatter"})
    named.insert(name);
  // These are made of the others.
  for (const char* name :
       {"attention", "variance", "normalize", "log_sum_exp", "mse", "bce_with_logits", "kl_divergence"})
    named.insert(name);
  std::set<std::string> expected = samples::names_of(operation_samples());
  for (const std::string& name : save_nothing) CHECK(expected.erase(name) == 1);
  for (const std::string& name : expected) CHECK_MESSAGE(named.count(name) == 1, name);
  for (const std::string& name : named) CHECK_MESSAGE(expected.count(name) == 1, name);
  MESSAGE(changes, " changes: ", errors, " errors that name the operation, the others change no bit of a gradient");
}

TEST_CASE("promise 11: ids and targets changed in place are errors too") {
  Tensor ids = Tensor::of<i32>({3}, {0, 2, 1});
  const Variable weight = parameter(full({3, 2}, 1.0)), logits = parameter(full({3, 4}, 1.0));
  const Variable rows = sum(embedding(weight, ids)), loss = cross_entropy(logits, ids);
  const Variable sums = sum(embedding_sum(weight, ids.reshape({1, 3}), 2, constant(full({3, 2}, 1.0))));
  const Tensor places = ids.reshape({3, 1});
  const Variable column = sum(logits, {1}, true), picked = sum(gather(column, 0, places)),
                 moved = sum(scatter(column, 0, places, column)), chosen = sum(where(ids, column, 2.0 * column));
  ids.write<i32>()[0] = 1;
  CHECK(small::error_of([&] {
          backward(rows);
        }).starts_with("embedding (backward): saved tensor: a tensor of shape [3]"));
  CHECK(small::error_of([&] { backward(sums); }).starts_with("embedding_sum (backward): saved tensor"));
  CHECK(small::error_of([&] { backward(loss); }).starts_with("cross_entropy (backward): saved tensor"));
  CHECK(small::error_of([&] { backward(picked); }).starts_with("gather (backward): saved tensor"));
  CHECK(small::error_of([&] { backward(moved); }).starts_with("scatter (backward): saved tensor"));
  CHECK(small::error_of([&] { backward(chosen); }).starts_with("where (backward): saved tensor"));
}
