// Chapter 1. Comparing elements, choosing among them, and ordering them; ids are i32.
#pragma once

#include <concepts>
#include <type_traits>

#include "core/tensor.h"

namespace orrery {

enum class Relation { less, less_equal, greater, greater_equal, equal, not_equal };
/// i32 of the broadcast shape: 1 where the comparison holds, else 0. Both operands have the same dtype, which may be
/// i32; a number is rounded to the tensor's dtype if that is floating. With NaN, only not_equal holds.
Tensor compare(const Tensor& a, const Tensor& b, Relation how);
Tensor compare(const Tensor& a, double b, Relation how);

/// The right operand of a comparison.
template <class T>
concept Comparable = std::same_as<T, Tensor> || std::is_arithmetic_v<T>;
template <Comparable B> Tensor operator<(const Tensor& a, const B& b) { return compare(a, b, Relation::less); }
template <Comparable B> Tensor operator<=(const Tensor& a, const B& b) { return compare(a, b, Relation::less_equal); }
template <Comparable B> Tensor operator>(const Tensor& a, const B& b) { return compare(a, b, Relation::greater); }
template <Comparable B> Tensor operator>=(const Tensor& a, const B& b) {
  return compare(a, b, Relation::greater_equal);
}
template <Comparable B> Tensor operator==(const Tensor& a, const B& b) { return compare(a, b, Relation::equal); }
template <Comparable B> Tensor operator!=(const Tensor& a, const B& b) { return compare(a, b, Relation::not_equal); }

/// x where `condition` (i32) is not 0, y elsewhere; all three are broadcast. x and y have the same dtype.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);

/// Error of `operation`: `ids` are not i32, or one is outside [0, limit); the message names its position.
void check_ids(const Tensor& ids, i64 limit, std::string_view operation);
/// A row of `classes` numbers for each id, 1 at the id and 0 elsewhere: [ids..., classes]. Errors: those of check_ids.
Tensor one_hot(const Tensor& ids, i64 classes, Dtype dtype = f32);
/// The entries along axis 0 that `ids` select: x [n, rest...] to [ids..., rest...]. Errors: those of check_ids.
Tensor index_rows(const Tensor& x, const Tensor& ids);
/// y[.., j, ..] = x[.., ids[.., j, ..], ..] along `axis`, torch.gather: `ids` has the shape of x, except along `axis`,
/// and so has y. Errors: another shape; those of check_ids.
Tensor gather(const Tensor& x, i64 axis, const Tensor& ids);
/// The reverse: x[.., ids[.., j, ..], ..] = part[.., j, ..], or += with `accumulate`. Errors: those of `gather`; a part
/// of another shape than `ids`; a part or ids that share elements with x; without `accumulate`, an element that is
/// written twice.
void scatter_into(Tensor& x, i64 axis, const Tensor& ids, const Tensor& part, bool accumulate);

/// The order of each row of the last axis, i32 of the shape of x: ids[.., 0] is the index of the smallest number, or of
/// the largest one. Equal numbers keep their order; NaN counts as the largest number, as in PyTorch.
Tensor argsort(const Tensor& x, bool descending = false);
/// The k largest numbers of each row of the last axis, the largest first, and their indices; as in `argsort`. Error: k
/// is outside [0, size of the axis].
struct TopK {
  Tensor values, ids;
};
TopK topk(const Tensor& x, i64 k);

/// The share of the labels (i32 [...]) that have the largest of their logits ([..., K]), 0 to 1. Labels that are
/// `ignore` do not count; if none does, 0. Error: shapes that do not fit.
double accuracy(const Tensor& logits, const Tensor& labels, i32 ignore = -100);

}  // namespace orrery
