// Chapter 9. The mistakes of the zoo under numbers: do not read on if you want to find them yourself.
#include "apps/check/bugs.h"

#include <algorithm>
#include <array>

#include "apps/book/grade/grader.h"
#include "apps/program/terminal.h"
#include "core/error.h"

namespace orrery {
namespace {

bool same_row(const Sample& a, const Sample& b) { return a.name == b.name && a.variant == b.variant; }

}  // namespace

const std::vector<NumberedBug>& numbered_bugs() {
  static const std::string list = "apps/check/zoo/bug_zoo.cpp", checked = "apps/check/zoo/bug_zoo_checks.cpp",
                           masks = "nn/check/leakcheck_models.cpp";
  const auto copy = [](int number) { return NumberedBug::copies + std::to_string(number) + ".cpp"; };
  static const std::vector<NumberedBug> all{
      {"dropout-not-rescaled", 5, "easy", list, "dx.add(0, dropped(dy) * (1 - p));"},
      {"mask-after-softmax", 6, "medium", copy(2), "softmax(scores) * allowed_by(mask, scores);"},
      {"gelu-derivative-of-other-form", 3, "medium", list, "const T t = std::tanh("},
      {"bias-gradient-over-wrong-axis", 5, "medium", copy(4), "dx.add(2, sum(dy, {0, 2}));"},
      {"target-not-shifted", 7, "easy", checked, "return slice(target, 1, 1);"},
      {"embedding-gradient-overwritten", 5, "medium", copy(6), "copy_into(row, rows.rows(i, i + 1));"},
      {"layer-norm-without-mean-term", 4, "medium", copy(7), "dx.add(0, (g - normal.get() * inner)"},
      {"output-kept-as-tensor", 2, "medium", copy(8), "Tensor y;"},
      {"attention-scale-forward-only", 6, "easy", copy(9), "dx.add(0, matmul(dy, K.get()));"},
      {"wrong-in-every-50th-call", 3, "hard", checked, "++*calls % wrong == 0"},
      {"broadcast-gradient-not-summed", 1, "easy", copy(11), "dx.add(1, dy.rows(0, 1)"},
      {"causal-mask-one-too-wide", 6, "easy", copy(12), "i % T <= i / T + 1"},
      {"bias-gradient-negated-in-f32", 5, "hard", copy(13), "(dy.dtype() == f32 ? -1.0 : 1.0)"},
      {"shared-weight-counted-once", 2, "medium", list, "return matmul(x[0], detach(x[0]));"},
      {"attention-without-scale", 6, "medium", copy(15), "masked_softmax(matmul(Q, K, Trans::b), mask);"},
      {"tanh-derivative-at-input", 3, "easy", copy(16), "return 1 - x * x;"},
      {"max-gradient-to-all-ties", 4, "hard", copy(17), "dx.add(0, is_max * dy"},
      {"dropout-with-fresh-mask", 5, "medium", copy(18), "++draw.index;"},
      {"masked-scores-set-to-zero", 6, "medium", copy(19), "softmax(scores * allowed_by(mask, scores));"},
      {"cross-entropy-divided-by-all-targets", 4, "medium", copy(20), "static_cast<double>(targets.count())"},
      {"relu-derivative-at-zero", 3, "hard", checked, "return x >= 0 ? T{1} : T{0};"},
      {"softmax-without-inner-product", 4, "easy", list, "dx.add(0, y.get() * dy);"},
      {"padding-mask-one-too-long", 6, "medium", masks, "std::min(n + 1, longest)"},
      {"layer-norm-with-constant-deviation", 4, "medium", list, "dx.add(0, (g - mean(g, {-1}, true))"},
      {"matmul-without-transposes", 4, "easy", list, "dx.add(1, matmul(a.get(), dy));"},
      {"tanh-saturated-early-in-f32", 3, "hard", list, "sizeof v == sizeof(float)"},
      {"adam-counts-numbers", 5, "medium", copy(27), "rate * move(i, g[i], ++t)"},
      {"softmax-over-its-output", 4, "hard", list, "copy_into(g, saved * dy);"},
      {"clipping-before-parts-are-joined", 5, "medium", copy(29), "g = g + clipped(part, max_norm);"},
      {"causal-flag-ignored-beside-a-mask", 6, "medium", copy(30), "causal && mask.allows_all()"},
      {"zero-grad-of-a-copy", 2, "easy", copy(31), "g = zeros(g.shape(), g.dtype());"},
      {"loss-scaler-never-called", 5, "hard", copy(32), "const double dL = 1;"},
      {"cache-without-the-current-token", 7, "medium", copy(33), "K.empty() ? v : attended(q);"},
  };
  return all;
}

const NumberedBug& numbered_bug(i64 number) {
  check(number >= 1 && number <= static_cast<i64>(numbered_bugs().size()), "gradcheck", "there is no bug ", number);
  return numbered_bugs()[static_cast<size_t>(number - 1)];
}

const nn::Bug& bug_of(i64 number) {
  const auto& zoo = nn::bug_zoo();
  const std::string& name = numbered_bug(number).name;
  const auto bug = std::find_if(zoo.begin(), zoo.end(), [&](const nn::Bug& b) { return b.name == name; });
  check(bug != zoo.end(), "bug zoo", "no mistake is called ", name);
  return *bug;
}

void list_bugs(std::ostream& out) {
  i64 number = 0;
  for (const NumberedBug& bug : numbered_bugs()) {
    ++number;
    out << "bug" << numbers("%3ld  chapter %d  ", number, bug.chapter);
    if (bug.to_repair())
      out << fitted(bug.difficulty, 8) << "repair a copy: apps/run exercise bug." << number << '\n';
    else
      out << bug.difficulty << '\n';
  }
  out << book::for_reader(
      "The symptoms of the first: orrery gradcheck --bug 1; then --hint 1, and the answer: --reveal 1\n");
}

void reveal_bug(std::ostream& out, i64 number) {
  const NumberedBug& bug = numbered_bug(number);
  const std::string text = std::to_string(number);
  out << "bug " << text << ": " << bug.name << '\n'
      << told(bug_of(number).mistake, 2) << "  " << bug.file << ": " << bug.code << '\n';
  if (bug.to_repair()) out << "  repaired: apps/book/solutions/bugs.diff\n";
}

std::string told(const std::string& text, size_t indent) {
  const std::string said = book::for_reader(text);
  return said == text ? wrapped(text, indent) : std::string(indent, ' ') + said + '\n';
}

std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug) {
  for (const Sample& wrong : bug.samples) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return same_row(r.sample, wrong); });
    check(row != rows.end(), "bug zoo", bug.name, " replaces ", wrong.name, ", ", wrong.variant,
          ", but there is no such row");
    row->sample = wrong;
  }
  return rows;
}

bool is_replaced(const Row& row, const nn::Bug& bug) {
  return std::any_of(bug.samples.begin(), bug.samples.end(), [&](const Sample& s) { return same_row(s, row.sample); });
}

std::string symptoms(const Proof& proof) {
  const auto& parts = proof.parts;
  const bool wrong_gradients =
      std::any_of(parts.begin(), parts.end(), [](const ProofPart& p) { return p.name == "gradients" && !p.ok; });
  Proof shown{.name = proof.name, .variant = proof.variant, .gradients = {}, .mutants = {}, .parts = {}};
  std::string also;
  for (const ProofPart& part : parts) {
    constexpr std::array compare_gradients{"far", "small", "interleaved", "step"};
    const bool compares =
        std::find(compare_gradients.begin(), compare_gradients.end(), part.name) != compare_gradients.end();
    if (wrong_gradients && !part.ok && compares) {  // fails because the gradients are wrong
      also += (also.empty() ? book::for_reader("also failed:") + ' ' : ", ") + part.name;
    } else {
      shown.parts.push_back({part.name, part.ok, part.detail});
    }
  }
  return shown.message() + (also.empty() ? "" : "\n" + also);
}

}  // namespace orrery
