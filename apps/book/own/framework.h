// Chapter 9. The reader's framework: what the exercises ask for one by one, put together. mine_4_1 is the answer to
// exercise 4.1, from apps/mine; the solution where there is none (apps/book/grade/exercise).
//
// A Tape holds tensors as that of chapter 2 holds numbers. Its walk back goes in the order of 2.3, and every operation
// hands its gradient back by its own backward: the reader's, or that of one of the library's for which there is no
// exercise, such as a sum or a cut.
#pragma once

#include <deque>

#include "apps/book/own/show.h"

namespace own {

/// Numbers to be trained, f64, each with an Adam of its own (5.4).
struct Weight {
  Tensor value;
  std::vector<mine_5_4::MyAdam> adam;
};

/// All weights of a model. Their places in memory stay.
struct Weights {
  Rng rng{1};
  std::deque<Weight> all;

  /// Drawn from [-bound, bound]; 0 without a bound.
  Weight* make(const Shape& shape, double bound = 0) {
    const auto count = static_cast<size_t>(shape.count());
    all.push_back({bound > 0 ? rand_uniform(shape, -bound, bound, rng, f64) : zeros(shape, f64),
                   std::vector<mine_5_4::MyAdam>(count)});
    return &all.back();
  }
};

class Tape;
/// A tensor on a tape, known by its place.
struct Value {
  Tape* tape;
  size_t place;
  const Tensor& tensor() const;
};
using Operation = std::function<Variable(const std::vector<Variable>&)>;

class Tape {
 public:
  Value input(const Tensor& x) { return add({constant(x), {}, {}, {}}); }
  /// A weight stands on the tape once, however often it is used.
  Value weight(Weight* weight) {
    if (!places_.contains(weight)) places_[weight] = input(weight->value).place;
    return {this, places_[weight]};
  }
  /// A new line with what `operation` makes of earlier ones. It knows them by copies, so that its backward stops there.
  Value record(const std::vector<Value>& from, const Operation& operation) {
    Line line;
    for (const Value& value : from) {
      line.from.push_back(value.place);
      line.inputs.push_back(parameter(value.tensor()));
    }
    line.y = operation(line.inputs);
    return add(std::move(line));
  }
  /// dy/d(line) for every line that y leads back to.
  void walk(Value y) {
    mine_2_3::Graph graph;
    for (const Line& line : lines_) graph.push_back(line.from);
    lines_[y.place].gradient = full(y.tensor().shape(), 1, f64);
    for (const size_t place : mine_2_3::visiting_order(graph, y.place)) {
      Line& line = lines_.at(place);
      if (line.from.empty()) continue;
      backward(line.y, line.gradient);  // of this line alone
      for (size_t i = 0; i < line.from.size(); ++i) {
        Tensor& sum = lines_[line.from[i]].gradient;
        const Tensor& part = line.inputs[i].gradient();
        if (part.defined()) sum = sum.defined() ? sum + part : part;
      }
    }
  }
  const Tensor& tensor(size_t place) const { return lines_.at(place).y.value(); }
  /// What the walk left; undefined if it did not come by.
  Tensor gradient(Weight* weight) { return lines_.at(this->weight(weight).place).gradient; }

 private:
  struct Line {
    Variable y;
    std::vector<size_t> from;
    std::vector<Variable> inputs;  // copies of the lines it was computed from
    Tensor gradient;
  };
  Value add(Line line) {
    lines_.push_back(std::move(line));
    return {this, lines_.size() - 1};
  }
  std::vector<Line> lines_;
  std::map<Weight*, size_t> places_;
};

inline const Tensor& Value::tensor() const { return tape->tensor(place); }

inline Value operator+(Value a, Value b) {
  return a.tape->record({a, b}, [](auto& x) { return x[0] + x[1]; });
}
inline Value matmul(Value a, Value b) {
  return a.tape->record({a, b}, [](auto& x) { return mine_4_1::my_matmul(x[0], x[1]); });
}
/// The mean over the rows of logits [rows, classes]; a target of -1 does not count.
inline Value cross_entropy(Value logits, const std::vector<i64>& targets) {
  return logits.tape->record({logits}, [&](auto& x) { return mine_4_4::my_cross_entropy(x[0], targets); });
}

/// y = x W + b, drawn as 5.1 says.
struct Linear {
  Weight *W, *b;
  Linear(Weights& weights, i64 in, i64 out)
      : W(weights.make({in, out}, mine_5_1::xavier_bound(in, out))), b(weights.make({out})) {}
  Value operator()(Value x) const { return matmul(x, x.tape->weight(W)) + x.tape->weight(b); }
};

/// A step of training: the walk back, gradients clipped to a norm of 1 (5.5), and Adam for every number.
inline void step(Weights& weights, Value loss, double rate) {
  loss.tape->walk(loss);
  std::vector<Tensor> gradients;
  for (Weight& weight : weights.all) gradients.push_back(loss.tape->gradient(&weight).clone());
  mine_5_5::my_clip(gradients, 1.0);
  for (size_t i = 0; i < gradients.size(); ++i) {
    Weight& weight = weights.all[i];
    const double* g = gradients[i].data<double>();
    double* p = weight.value.write<double>();
    for (size_t j = 0; j < weight.adam.size(); ++j) p[j] = weight.adam[j].next(p[j], g[j], rate);
  }
}

/// Trains with the paper's rate (5.3), which here also falls to 0 on a straight line. `loss` is that of a new batch on
/// a new tape; `say` tells what has been reached.
inline void teach(Weights& weights, i64 steps, const std::function<Value(Tape&)>& loss,
                  const std::function<std::string()>& say) {
  constexpr i64 width = 32, warmup = 100;
  for (i64 number = 1; number <= steps; ++number) {
    Tape tape;
    const Value of_batch = loss(tape);
    const double left = 1 - static_cast<double>(number - 1) / static_cast<double>(steps);
    step(weights, of_batch, left * mine_5_3::my_noam(number, width, warmup));
    progress(number, steps, of_batch.tensor().item(), say);
  }
}

}  // namespace own
