// Chapter 2. In which order must backward visit the nodes?
// Question: u = 2 a, v = 3 u, y = u + v. So y = 8 a and dy/da = 8. Which walks from y to a find that?
// Answer: the one that visits newest nodes first. A walk that takes nodes in the order in which it meets them visits u
//   before v has added its part, and finds 2; if it visits u again for every part, it counts the first part twice: 10.
#include <deque>
#include <functional>
#include <iostream>
#include <set>
#include <vector>

namespace {

constexpr size_t a = 0, u = 1, v = 2, y = 3;  // the lines of the tape
const std::vector<const char*> names{"a", "u", "v", "y"};

struct Input {
  size_t line;
  double slope;
};
const std::vector<std::vector<Input>> inputs_of{{},                 // a is given
                                                {{a, 2}},           // u = 2 a
                                                {{u, 3}},           // v = 3 u
                                                {{u, 1}, {v, 1}}};  // y = u + v

// Visits one node: adds its part to the gradient of each of its inputs.
void visit(size_t node, std::vector<double>& gradient) {
  std::cout << ' ' << names[node] << " has " << gradient[node] << ',';
  for (const Input& input : inputs_of[node]) gradient[input.line] += gradient[node] * input.slope;
}

double newest_first() {
  std::vector<double> gradient{0, 0, 0, 1};
  std::set<size_t, std::greater<>> waiting{y};
  while (!waiting.empty()) {
    const size_t node = *waiting.begin();
    waiting.erase(waiting.begin());
    visit(node, gradient);
    for (const Input& input : inputs_of[node]) waiting.insert(input.line);
  }
  return gradient[a];
}

double as_met(bool every_time) {
  std::vector<double> gradient{0, 0, 0, 1};
  std::deque<size_t> waiting{y};
  std::set<size_t> met{y};
  while (!waiting.empty()) {
    const size_t node = waiting.front();
    waiting.pop_front();
    visit(node, gradient);
    for (const Input& input : inputs_of[node])
      if (met.insert(input.line).second || every_time) waiting.push_back(input.line);
  }
  return gradient[a];
}

}  // namespace

int main() {
  std::cout << "newest first:   ";
  const double right = newest_first();
  std::cout << " so dy/da = " << right << "\nas met, once:   ";
  const double once = as_met(false);
  std::cout << " so dy/da = " << once << "\nas met, always: ";
  const double always = as_met(true);
  std::cout << " so dy/da = " << always << '\n';
  return right == 8 && once == 2 && always == 10 ? 0 : 1;
}
