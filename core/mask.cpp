// Chapter 6. Mask: its parts, and how they are read.
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

Mask Mask::global(i64 count) {
  check(count >= 0, "mask", "there are 0 global positions or more, not ", count);
  Mask mask;
  mask.global_ = std::min(count, unlimited);
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

namespace {

constexpr i64 word = MaskBlock::queries_of_word;

// The bits of `count` rows of m elements: bit i of to[j] says whether element j of row i is not 0. If `repeats`, all
// bits are those of the one row.
void pack_rows(const i32* rows, i64 count, i64 m, bool repeats, i32* to) {
  std::fill_n(to, m, 0);
  for (i64 i = 0; i < count; ++i) {
    const u32 bit = repeats ? ~u32{0} : u32{1} << i;
    const i32* row = rows + i * m;
    for (i64 j = 0; j < m; ++j) to[j] |= static_cast<i32>(row[j] != 0 ? bit : 0);
  }
}

}  // namespace

Mask Mask::allow(const Tensor& allow) {
  check(allow.defined() && allow.rank() >= 2 && allow.rank() <= 4 && allow.dtype() == Dtype::i32, "mask",
        "a table must be i32 [n, m], [B, n, m] or [B, h, n, m], got shape ", allow.shape());
  const i64 n = allow.size(-2), m = allow.size(-1);
  const i64 B = allow.rank() >= 3 ? allow.size(0) : 1, h = allow.rank() == 4 ? allow.size(1) : 1;
  const i64 groups = n == 1 ? 1 : (n + word - 1) / word;
  Table table{.shape = {B, h, n, m}, .words = Tensor::empty({B, h, groups, m}, Dtype::i32)};
  const i32* from = allow.data<i32>();
  i32* to = table.words.write<i32>();
  parallel_for(B * h * groups, row_grain(word * m), [=](i64 begin, i64 end) {
    for (i64 g = begin; g < end; ++g) {
      const i64 first = g % groups * word;
      pack_rows(from + (g / groups * n + first) * m, std::min(word, n - first), m, n == 1, to + g * m);
    }
  });
  Mask mask;
  mask.tables_.push_back(std::move(table));
  return mask;
}

namespace {

// lengths of both, chosen for each batch row.
template <class Choice> Tensor joined_lengths(const Tensor& a, const Tensor& b, const Choice& choice) {
  check(a.count() == b.count(), "mask", "paddings of ", a.count(), " and ", b.count(), " batch rows");
  Tensor lengths = a.clone();
  i32* to = lengths.write<i32>();
  for (i64 i = 0; i < a.count(); ++i) to[i] = choice(to[i], b.data<i32>()[i]);
  return lengths;
}

}  // namespace

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.before_ = std::min(a.before_, b.before_);
  both.after_ = std::min(a.after_, b.after_);
  both.global_ = std::min(a.global_, b.global_);
  both.tables_.insert(both.tables_.end(), b.tables_.begin(), b.tables_.end());
  both.one_of_.insert(both.one_of_.end(), b.one_of_.begin(), b.one_of_.end());
  if (!a.has_padding()) both.lengths_ = b.lengths_;
  if (a.has_padding() && b.has_padding())
    both.lengths_ = joined_lengths(a.lengths_, b.lengths_, [](i32 x, i32 y) { return std::min(x, y); });
  return both;
}

// The result has the ranges that contain both; if those are the ranges of one of them, which has no more rules, that
// one is all.
Mask operator|(const Mask& a, const Mask& b) {
  Mask either;
  either.before_ = std::max(a.before_, b.before_);
  either.after_ = std::max(a.after_, b.after_);
  either.global_ = std::max(a.global_, b.global_);
  if (a.has_padding() && b.has_padding())
    either.lengths_ = joined_lengths(a.lengths_, b.lengths_, [](i32 x, i32 y) { return std::max(x, y); });
  for (const Mask* mask : {&a, &b})
    if (!mask->has_table() && mask->same_ranges(either)) return *mask;
  either.one_of_.push_back({a, b});
  return either;
}

bool Mask::same_ranges(const Mask& other) const {
  const auto equal_lengths = [](const Tensor& x, const Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || std::equal(x.data<i32>(), x.data<i32>() + x.count(), y.data<i32>()));
  };
  return before_ == other.before_ && after_ == other.after_ && global_ == other.global_ &&
         equal_lengths(lengths_, other.lengths_);
}

bool Mask::is_padding() const { return !has_table() && same_ranges(padding_only()); }

i64 Mask::length(i64 b, i64 m) const {
  if (!has_padding()) return m;
  check(b >= 0 && b < lengths_.count(), "mask", "has lengths for ", lengths_.count(), " batch rows, none for row ", b);
  return std::min<i64>(m, lengths_.data<i32>()[b]);
}

// A later query's range begins and ends later, or at the same keys.
KeyRange Mask::range(const QuerySpan& q) const {
  const i64 position = q.begin + q.m - q.n, last = position + q.count() - 1, keys = length(q.b, q.m);
  const bool has_global = last >= 0 && position < global_;
  const i64 limit = std::clamp<i64>(last + after_ + 1, 0, has_global ? keys : std::min(keys, global_));
  return {std::clamp<i64>(position - before_, 0, limit), limit};
}

// The keys that are in the range of each query; none if the count is negative.
KeyRange Mask::seen_by_all(const QuerySpan& q) const {
  const i64 position = q.begin + q.m - q.n, last = position + q.count() - 1, keys = length(q.b, q.m);
  const bool all_global = position >= 0 && last < global_;
  return {last - before_, std::min(position + after_ + 1, all_global ? keys : std::min(keys, global_))};
}

namespace {

i64 words_of(i64 queries) { return (queries + word - 1) / word; }

// The bits of the queries that exist, in word w of a block.
u32 existing_bits(const QuerySpan& q, i64 w) {
  const i64 count = q.count() - w * word;
  return count >= word ? ~u32{0} : (u32{1} << count) - 1;
}

template <class Change> void for_words(const QuerySpan& q, MaskBlock& block, const Change& change) {
  for (i64 w = 0; w < words_of(q.count()); ++w) change(w, block.words[static_cast<size_t>(w)].data());
}

Seen seen_in(const QuerySpan& q, i64 keys, MaskBlock& block) {
  bool some = false, all = true;
  for_words(q, block, [&](i64 w, const u32* words) {
    u32 any = 0, every = existing_bits(q, w);
    const u32 existing = every;
    for (i64 j = 0; j < keys; ++j) {
      any |= words[j];
      every &= words[j];
    }
    some |= any != 0;
    all &= every == existing;
  });
  return all ? Seen::all : some ? Seen::some : Seen::nothing;
}

}  // namespace

Seen Mask::see(const QuerySpan& q, KeyRange keys, MaskBlock& block) const {
  check(q.count() <= MaskBlock::most_queries && keys.count() <= MaskBlock::most_keys, "mask", "a block has at most ",
        MaskBlock::most_queries, " queries and ", MaskBlock::most_keys, " keys, not ", q.count(), " and ",
        keys.count());
  const KeyRange some = range(q), all = seen_by_all(q);
  if (std::min(some.limit, keys.limit) <= std::max(some.first, keys.first)) return Seen::nothing;
  const bool all_in_range = all.first <= keys.first && keys.limit <= all.limit;
  if (all_in_range && !has_table()) return Seen::all;
  for_words(q, block, [&](i64 w, u32* words) {
    std::fill_n(words, keys.count(), all_in_range ? existing_bits(q, w) : 0);
    const i64 begin = q.begin + w * word;
    for (i64 i = begin; !all_in_range && i < std::min(q.end, begin + word); ++i) {
      const KeyRange seen = range(q.b, i, q.n, q.m);
      const i64 limit = std::min(seen.limit, keys.limit) - keys.first;
      for (i64 j = std::max<i64>(seen.first - keys.first, 0); j < limit; ++j) words[j] |= u32{1} << (i - begin);
    }
  });
  for (const Table& table : tables_) table.keep(q, keys, block);
  for (const std::vector<Mask>& masks : one_of_) keep_one_of(masks, q, keys, block);
  return seen_in(q, keys.count(), block);
}

void Mask::keep_one_of(const std::vector<Mask>& masks, const QuerySpan& q, KeyRange keys, MaskBlock& block) const {
  MaskBlock any{}, part;
  for (const Mask& mask : masks) {
    const Seen seen = mask.see(q, keys, part);
    if (seen == Seen::all) return;
    if (seen == Seen::nothing) continue;
    for_words(q, any, [&](i64 w, u32* words) {
      for (i64 j = 0; j < keys.count(); ++j) words[j] |= part.words[static_cast<size_t>(w)][static_cast<size_t>(j)];
    });
  }
  for_words(q, block, [&](i64 w, u32* words) {
    for (i64 j = 0; j < keys.count(); ++j) words[j] &= any.words[static_cast<size_t>(w)][static_cast<size_t>(j)];
  });
}

const i32* Mask::Table::row(i64 b, i64 h, i64 i) const {
  const auto at = [&](int axis, i64 index) { return shape[axis] == 1 ? 0 : index; };
  return words.data<i32>() + ((at(0, b) * shape[1] + at(1, h)) * words.size(2) + at(2, i) / word) * shape[3];
}

bool Mask::Table::allows(i64 b, i64 h, i64 i, i64 j) const {
  return (static_cast<u32>(row(b, h, i)[shape[3] == 1 ? 0 : j]) >> (i % word) & 1U) != 0;
}

void Mask::Table::keep(const QuerySpan& q, KeyRange keys, MaskBlock& block) const {
  const i64 step = shape[3] == 1 ? 0 : 1, shift = shape[2] == 1 ? 0 : q.begin % word;
  for_words(q, block, [&](i64 w, u32* to) {
    const i64 i = q.begin + w * word;
    const i32* from = row(q.b, q.h, i) + keys.first * step;
    // The word of a span that begins inside a word continues in the next one, if there is one.
    const i32* next = shift > 0 && (i / word + 1) * word < shape[2] ? from + shape[3] : nullptr;
    for (i64 j = 0; j < keys.count(); ++j) {
      const u32 rest = next ? static_cast<u32>(next[j * step]) << (word - shift) : 0;
      to[j] &= static_cast<u32>(from[j * step]) >> shift | rest;
    }
  });
}

bool Mask::allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const {
  const KeyRange keys = range(b, i, n, m);
  const auto allows = [&](const Mask& mask) { return mask.allowed(b, h, i, j, n, m); };
  return j >= keys.first && j < keys.limit &&
         std::all_of(tables_.begin(), tables_.end(), [&](const Table& table) { return table.allows(b, h, i, j); }) &&
         std::all_of(one_of_.begin(), one_of_.end(),
                     [&](const std::vector<Mask>& masks) { return std::any_of(masks.begin(), masks.end(), allows); });
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
  for (const Table& table : tables_) {
    for (int axis = 0; axis < 4; ++axis) {
      const i64 size = table.shape[axis];
      check(size == 1 || size == sizes[static_cast<size_t>(axis)], "mask", "a table of shape ", table.shape,
            " does not fit scores of shape ", Shape{B, h, n, m});
    }
  }
  for (const std::vector<Mask>& masks : one_of_)
    for (const Mask& mask : masks) mask.check_fits(B, h, n, m);
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
  if (mask.global_ != Mask::unlimited) next_part() << "global(" << mask.global_ << ')';
  if (mask.has_padding()) {
    next_part() << "padding(";
    for (i64 b = 0; b < mask.lengths_.count(); ++b) out << (b ? ", " : "") << mask.lengths_.at(b);
    out << ')';
  }
  for (const Mask::Table& table : mask.tables_) {
    const Shape& shape = table.shape;
    next_part() << "allow" << shape;
    const i64 rows = shape.count() <= 1024 && shape[3] > 0 ? shape[0] * shape[1] * shape[2] : 0;
    for (i64 row = 0; row < rows; ++row) {
      const i64 b = row / (shape[1] * shape[2]), h = row / shape[2] % shape[1], i = row % shape[2];
      out << "\n  ";
      for (i64 j = 0; j < shape[3]; ++j) out << (table.allows(b, h, i, j) ? '1' : '.');
    }
  }
  const bool is_only_part = joint.empty() && mask.one_of_.size() == 1;
  for (const std::vector<Mask>& masks : mask.one_of_) {
    next_part() << (is_only_part ? "" : "(");
    for (size_t i = 0; i < masks.size(); ++i) out << (i > 0 ? " | " : "") << masks[i];
    out << (is_only_part ? "" : ")");
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
