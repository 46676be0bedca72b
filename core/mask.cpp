// Chapter 6. Mask: its parts, and how they are read.
//
// Serves: core/mask.h
#include "core/mask.h"

#include <algorithm>

#include "core/kernels/reduce.h"
#include "core/machine/parallel.h"

namespace orrery {

Mask Mask::causal() {
  Mask mask;
  mask.after_ = 0;
  return mask;
}

Mask Mask::window(i64 before, i64 after) {
  check(before >= 0 && after >= 0, "mask", "a window reaches 0 positions or more to each side, not ", before, " and ",
        after);
  Mask mask;
  mask.before_ = std::min(before, unlimited);
  mask.after_ = std::min(after, unlimited);
  return mask;
}

Mask Mask::padding(const Tensor& lengths) {
  check(lengths.defined() && lengths.rank() == 1 && lengths.dtype() == Dtype::i32, "mask",
        "lengths must be i32 [B], got shape ", lengths.shape());
  for (i64 b = 0; b < lengths.count(); ++b) {
    check(lengths.data<i32>()[b] >= 0, "mask", "length ", lengths.data<i32>()[b], " of batch row ", b, " is negative");
  }
  Mask mask;
  mask.lengths_ = lengths.clone();
  return mask;
}

Mask Mask::padding(const std::vector<i32>& lengths) {
  return padding(Tensor::of<i32>({static_cast<i64>(lengths.size())}, lengths));
}

Mask Mask::allow(const Tensor& allow) {
  check(allow.defined() && allow.rank() >= 2 && allow.rank() <= 4 && allow.dtype() == Dtype::i32, "mask",
        "a table must be i32 [n, m], [B, n, m] or [B, h, n, m], got shape ", allow.shape());
  const i64 n = allow.size(-2), m = allow.size(-1);
  const i64 B = allow.rank() >= 3 ? allow.size(0) : 1, h = allow.rank() == 4 ? allow.size(1) : 1;
  Mask mask;
  mask.tables_.push_back(allow.clone().reshape({B, h, n, m}));
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.before_ = std::min(a.before_, b.before_);
  both.after_ = std::min(a.after_, b.after_);
  both.tables_.insert(both.tables_.end(), b.tables_.begin(), b.tables_.end());
  if (!a.has_padding() || !b.has_padding()) {
    if (b.has_padding()) both.lengths_ = b.lengths_;
    return both;
  }
  check(a.lengths_.count() == b.lengths_.count(), "mask", "paddings of ", a.lengths_.count(), " and ",
        b.lengths_.count(), " batch rows");
  both.lengths_ = a.lengths_.clone();
  i32* lengths = both.lengths_.write<i32>();
  for (i64 i = 0; i < a.lengths_.count(); ++i) lengths[i] = std::min(lengths[i], b.lengths_.data<i32>()[i]);
  return both;
}

i64 Mask::length(i64 b, i64 m) const {
  if (!has_padding()) return m;
  check(b >= 0 && b < lengths_.count(), "mask", "has lengths for ", lengths_.count(), " batch rows, none for row ", b);
  return std::min<i64>(m, lengths_.data<i32>()[b]);
}

KeyRange Mask::range(i64 b, i64 i, i64 n, i64 m) const {
  const i64 position = i + m - n, limit = std::clamp<i64>(position + after_ + 1, 0, length(b, m));
  return {std::clamp<i64>(position - before_, 0, limit), limit};
}

bool Mask::table_allows(i64 b, i64 h, i64 i, i64 j) const {
  return std::all_of(tables_.begin(), tables_.end(), [&](const Tensor& table) {
    const auto at = [&](int axis, i64 index) { return table.size(axis) == 1 ? 0 : index; };
    const i64 row = (at(0, b) * table.size(1) + at(1, h)) * table.size(2) + at(2, i);
    return table.data<i32>()[row * table.size(3) + at(3, j)] != 0;
  });
}

bool Mask::allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const {
  const KeyRange keys = range(b, i, n, m);
  return j >= keys.first && j < keys.limit && table_allows(b, h, i, j);
}

void Mask::check_padding_fits(i64 B, i64 m) const {
  if (!has_padding()) return;
  check(lengths_.count() == B, "mask", "has lengths for ", lengths_.count(), " batch rows, there are ", B);
  for (i64 b = 0; b < B; ++b) {
    const i64 length = lengths_.data<i32>()[b];
    check(length <= m, "mask", "length ", length, " of batch row ", b, " is beyond the ", m, " keys there are");
  }
}

void Mask::check_fits(i64 B, i64 h, i64 n, i64 m) const {
  check_padding_fits(B, m);
  const std::array<i64, 4> sizes{B, h, n, m};
  for (const Tensor& table : tables_) {
    for (int axis = 0; axis < 4; ++axis) {
      const i64 size = table.size(axis);
      check(size == 1 || size == sizes[static_cast<size_t>(axis)], "mask", "a table of shape ", table.shape(),
            " does not fit scores of shape ", Shape{B, h, n, m});
    }
  }
}

std::ostream& operator<<(std::ostream& out, const Mask& mask) {
  std::string_view joint;
  const auto next_part = [&]() -> std::ostream& {  // the stream, after what joins parts
    out << joint;
    joint = " & ";
    return out;
  };
  const auto reach = [](i64 positions) { return positions == Mask::unlimited ? "all" : std::to_string(positions); };
  if (mask.before_ == Mask::unlimited && mask.is_causal()) {
    next_part() << "causal";
  } else if (mask.before_ != Mask::unlimited || mask.after_ != Mask::unlimited) {
    next_part() << "window(" << reach(mask.before_) << ", " << reach(mask.after_) << ')';
  }
  if (mask.has_padding()) {
    next_part() << "padding(";
    for (i64 b = 0; b < mask.lengths_.count(); ++b) out << (b ? ", " : "") << mask.lengths_.at(b);
    out << ')';
  }
  for (const Tensor& table : mask.tables_) {
    next_part() << "allow" << table.shape();
    for (i64 i = 0; i < table.count() && table.count() <= 1024; ++i) {
      out << (i % table.size(3) == 0 ? "\n  " : "") << (table.at(i) != 0 ? '1' : '.');
    }
  }
  return joint.empty() ? out << "everything" : out;
}

bool padding_is_moderate(const Tensor& x, const Mask& mask) {
  const auto [B, m, d] = dims<3>(x, "attention");
  mask.check_padding_fits(B, m);
  return dispatch_floating(x.dtype(), "attention", [&, B = B, m = m, d = d](auto t) {
    using T = decltype(t);
    const FlushDenormals flushed;
    double nothing = 0;
    for (i64 b = 0; b < B; ++b) {
      const i64 kept = mask.length(b, m);
      const T* rest = x.data<T>() + (b * m + kept) * d;
      nothing += kernels::chunked_sum<T>((m - kept) * d, [=](i64 i) {
        const T scaled = rest[i] * T{1e8F};
        return scaled * scaled * T{0};  // NaN if it is too large or not finite
      });
    }
    return nothing == 0;
  });
}

Tensor lengths_of(const Tensor& ids, i32 pad_id) {
  const auto [B, T] = dims<2>(ids, "ids");
  Tensor lengths = Tensor::empty({B}, Dtype::i32);
  i32* out = lengths.write<i32>();
  for (i64 b = 0; b < B; ++b) {
    i64 length = T;
    while (length > 0 && ids.data<i32>()[b * T + length - 1] == pad_id) --length;
    out[b] = static_cast<i32>(length);
  }
  return lengths;
}

Mask padding_of(const Tensor& ids, i32 pad_id) { return pad_id < 0 ? Mask() : Mask::padding(lengths_of(ids, pad_id)); }

}  // namespace orrery
