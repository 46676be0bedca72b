// Chapter 0. The toy tasks: drawing sequences, answering them, and converting them to text and back.
#include "apps/tasks/toy/task.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/files/hash.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

// "8 to 16", or "8" if both are the same.
template <class T> std::string range_of(const T& low, const T& high) {
  std::ostringstream text;
  text << low;
  if (low != high) text << " to " << high;
  return text.str();
}

}  // namespace

Sequence ToyTask::answer(const Sequence& source) const {
  Sequence result = source;
  if (name == "reverse") std::reverse(result.begin(), result.end());
  if (name == "sort") std::sort(result.begin(), result.end());
  return result;
}

Sequence ToyTask::target(const Sequence& source) const {
  Sequence result = answer(source);
  if (!begin_is_symbol) result.insert(result.begin(), begin);
  if (end >= 0) result.push_back(end);
  return result;
}

Sequence ToyTask::draw(Rng& rng, bool held_out) const {
  Sequence sequence;
  i64 draws = 0;
  do {
    check(++draws < 10000, "toy", "nearly every sequence of ", symbols, " symbols and length ", min_length, " to ",
          max_length, held_out ? " is trained on" : " is held out", "; use more symbols or longer sequences");
    sequence.resize(static_cast<size_t>(rng.integer(min_length, max_length + 1)));
    for (i32& token : sequence) token = static_cast<i32>(rng.integer(first_symbol, first_symbol + symbols));
    if (begin_is_symbol) sequence[0] = begin;
  } while (is_held_out(sequence) != held_out);
  return sequence;
}

std::string ToyTask::text(const Sequence& tokens) const {
  std::string result;
  for (i32 token : tokens) {
    if (token < first_symbol || token == pad) continue;
    if (!result.empty()) result += ' ';
    if (as_letters())
      result += static_cast<char>('a' + token - first_symbol);
    else
      result += std::to_string(token);
  }
  return result;
}

std::string ToyTask::alphabet() const {
  return as_letters() ? range_of('a', static_cast<char>('a' + symbols - 1))
                      : range_of<i64>(first_symbol, vocab_size() - 1);
}

std::string ToyTask::lengths() const { return range_of(min_length, max_length); }

Sequence ToyTask::parse(const std::string& line) const {
  Sequence result;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const auto before = static_cast<std::ptrdiff_t>(result.size());
    if (as_letters()) {
      for (char c : word) result.push_back(static_cast<i32>(c - 'a' + first_symbol));
    } else {
      const bool number =
          word.size() <= 6 && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
      result.push_back(number ? static_cast<i32>(std::stoi(word)) : -1);
    }
    const size_t wrong =
        static_cast<size_t>(std::find_if(result.begin() + before, result.end(),
                                         [&](i32 t) { return t < first_symbol || t >= vocab_size(); }) -
                            result.begin());
    check(wrong == result.size(), "toy", "symbol ", wrong + 1, " of ", printable(line), " is not one of ", alphabet());
  }
  const i64 length = static_cast<i64>(result.size());
  check(length >= 1 && length <= max_length, "toy", "a line needs 1 to ", max_length, " symbols, got ", length);
  return result;
}

bool is_held_out(const Sequence& source) {
  Fingerprint fingerprint;
  for (i32 token : source) fingerprint.add(token);
  return fingerprint.mixed() % 8 == 0;
}

Tensor batch_of(const std::vector<Sequence>& sequences, i64 length, i32 pad) {
  const i64 B = static_cast<i64>(sequences.size());
  Tensor batch = full({B, length}, pad, Dtype::i32);
  i32* out = batch.write<i32>();
  for (i64 b = 0; b < B; ++b) {
    const Sequence& sequence = sequences[static_cast<size_t>(b)];
    check(std::ssize(sequence) <= length, "toy", "a sequence of ", sequence.size(), " tokens does not fit into ",
          length);
    std::copy(sequence.begin(), sequence.end(), out + b * length);
  }
  return batch;
}

Sequence written(const Tensor& tokens, i64 row, const ToyTask& task) {
  const i64 T = tokens.size(1);
  const i32* begin = tokens.data<i32>() + row * T;
  Sequence result(begin, task.end < 0 ? begin + T : std::find(begin, begin + T, task.end));
  if (task.begin_is_symbol) result.insert(result.begin(), task.begin);
  return result;
}

std::string to_json(const ToyTask& task) {
  return ObjectText()
      .add("begin", task.begin)
      .add("begin_is_symbol", task.begin_is_symbol)
      .add("end", task.end)
      .add("first_symbol", task.first_symbol)
      .add("max_length", task.max_length)
      .add("min_length", task.min_length)
      .add("name", task.name)
      .add("symbols", task.symbols)
      .text();
}

ToyTask toy_task(const std::string& json) {
  constexpr std::string_view operation = "toy task";
  constexpr i64 most_symbols = 10000, most_length = 1000;
  const Json fields = parse_json_object(json, operation);
  nn::config_json::Reader read(operation, fields, nn::config_json::Fields::all);
  ToyTask task;
  read("name", task.name);
  check(task.name == "reverse" || task.name == "copy" || task.name == "sort", operation,
        "name must be reverse, copy or sort, not ", printable(task.name));
  read("symbols", task.symbols, 1, most_symbols);
  read("first_symbol", task.first_symbol, 1, 3);
  read("max_length", task.max_length, 1, most_length);
  read("min_length", task.min_length, 1, task.max_length);
  read("begin_is_symbol", task.begin_is_symbol);
  read("begin", task.begin, 0, task.vocab_size() - 1);
  read("end", task.end, -1, task.vocab_size() - 1);
  read.check_all_known();
  return task;
}

}  // namespace orrery
