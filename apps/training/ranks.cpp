// Chapter 9. What ranks tell one another, made of exchanged bytes.
#include "apps/training/ranks.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace orrery {

std::vector<std::string> Ranks::each_text(const std::string& mine) {
  std::vector<std::string> all;
  for (const size_t length : each(mine.size())) all.emplace_back(length, '\0');
  all[static_cast<size_t>(rank())] = mine;
  Received from;
  for (std::string& text : all) from.push_back(std::as_writable_bytes(std::span(text)));
  exchange(Sent(all.size(), std::as_bytes(std::span(mine))), from);
  return all;
}

bool Ranks::any(bool mine) {
  const std::vector<char> all = each<char>(mine ? 1 : 0);
  return std::find(all.begin(), all.end(), 1) != all.end();
}

Ranks& Ranks::alone() {
  static Ranks one;
  return one;
}

// Of piece i, rank i % R has the numbers.
std::vector<Ranks::Numbers> Ranks::of_all(i64 count, const std::vector<Numbers>& mine) {
  Numbers row;  // each piece's numbers after how many they are
  for (const Numbers& piece : mine) {
    row.push_back(static_cast<double>(piece.size()));
    row.insert(row.end(), piece.begin(), piece.end());
  }
  std::vector<Numbers> rows, pieces;
  for (const size_t length : each(row.size())) rows.emplace_back(length);
  rows[static_cast<size_t>(rank())] = row;
  Received from;
  for (Numbers& one : rows) from.push_back(std::as_writable_bytes(std::span(one)));
  exchange(Sent(rows.size(), std::as_bytes(std::span(row))), from);
  std::vector<Numbers::const_iterator> next(rows.size());
  std::transform(rows.begin(), rows.end(), next.begin(), [](const Numbers& one) { return one.begin(); });
  for (i64 i = 0; i < count; ++i) {
    auto& at = next[static_cast<size_t>(i % size())];
    const auto begin = at + 1;
    pieces.emplace_back(begin, at = begin + static_cast<std::ptrdiff_t>(*at));
  }
  return pieces;
}

void Ranks::first_does(const std::function<void()>& f) {
  std::exception_ptr failure;
  try {
    if (is_first()) f();
  } catch (...) { failure = std::current_exception(); }
  const bool fails = any(failure != nullptr);
  if (failure) std::rethrow_exception(failure);
  check(!fails, "ranks", "rank 0 has failed");
}

void Ranks::failed(const std::string& why) {
  constexpr double soon = 5;
  if (!std::exchange(failed_, true) && !meet(soon)) end_all(name_of(rank()) + ": " + why);
}

void Ranks::end_all(const std::string& line) { fail("ranks", line); }

}  // namespace orrery
