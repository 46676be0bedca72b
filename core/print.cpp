// Chapter 1. Printing a tensor the way one writes it on paper.
#include <iomanip>
#include <sstream>

#include "core/tensor.h"

namespace orrery {
namespace {

constexpr i64 shown = 6;  // longer axes are shortened to their first and last three elements

void print_axis(std::ostream& out, const Tensor& x, int axis, i64 first, i64 stride, const std::string& indent) {
  if (axis == x.rank()) {
    out << x.at(first);
    return;
  }
  const i64 n = x.size(axis), inner = n == 0 ? 0 : stride / n;
  const std::string between = axis == x.rank() - 1 ? ", " : ",\n" + indent + " ";
  out << '[';
  for (i64 i = 0; i < n; ++i) {
    if (i > 0) out << between;
    if (n > shown && i == shown / 2) {
      out << "..." << between;
      i = n - shown / 2;
    }
    print_axis(out, x, axis + 1, first + i * inner, inner, indent + " ");
  }
  out << ']';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  if (!x.defined()) return out << "(no tensor)";
  std::ostringstream text;
  text << std::setprecision(x.dtype() == Dtype::i32 ? 10 : 4);  // whole numbers are shown in full
  print_axis(text, x, 0, 0, x.count(), "");
  return out << text.str() << "  " << x.dtype() << ' ' << x.shape();
}

}  // namespace orrery
