// Chapter 0. The toy tasks: drawing sequences, answering them, and writing them for people.
//
// Serves: apps/toy/toy.cpp
#include "apps/toy/task.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/files/hash.h"

namespace orrery {
namespace {
constexpr i64 letters = 26;
}

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
    if (symbols <= letters && !begin_is_symbol)
      result += static_cast<char>('a' + token - first_symbol);
    else
      result += std::to_string(token);
  }
  return result;
}

Sequence ToyTask::parse(const std::string& line) const {
  const bool as_letters = symbols <= letters && !begin_is_symbol;
  Sequence result;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (as_letters) {
      for (char c : word) result.push_back(static_cast<i32>(c - 'a' + first_symbol));
    } else {
      const bool number =
          word.size() <= 6 && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
      result.push_back(number ? static_cast<i32>(std::stoi(word)) : -1);
    }
    const size_t wrong = static_cast<size_t>(
        std::find_if(result.begin(), result.end(), [&](i32 t) { return t < first_symbol || t >= vocab_size(); }) -
        result.begin());
    const std::string last =
        as_letters ? std::string(1, static_cast<char>('a' + symbols - 1)) : std::to_string(vocab_size() - 1);
    check(wrong == result.size(), "toy", "symbol ", wrong + 1, " of '", line, "' is not one of ",
          as_letters ? "a" : std::to_string(first_symbol), " to ", last);
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
  return nlohmann::json{{"name", task.name},
                        {"symbols", task.symbols},
                        {"min_length", task.min_length},
                        {"max_length", task.max_length},
                        {"begin_is_symbol", task.begin_is_symbol},
                        {"begin", task.begin},
                        {"end", task.end},
                        {"first_symbol", task.first_symbol}}
      .dump();
}

ToyTask toy_task(const std::string& json) {
  ToyTask task;
  try {
    const auto fields = nlohmann::json::parse(json);
    fields.at("name").get_to(task.name);
    fields.at("symbols").get_to(task.symbols);
    fields.at("min_length").get_to(task.min_length);
    fields.at("max_length").get_to(task.max_length);
    fields.at("begin_is_symbol").get_to(task.begin_is_symbol);
    fields.at("begin").get_to(task.begin);
    fields.at("end").get_to(task.end);
    fields.at("first_symbol").get_to(task.first_symbol);
  } catch (const nlohmann::json::exception&) { fail("toy", "the file does not describe a toy task"); }
  check(task.name == "reverse" || task.name == "copy" || task.name == "sort", "toy",
        "the file describes a task that is not known");
  check(task.begin >= 0 && task.begin < task.vocab_size() && task.end >= -1 && task.end < task.vocab_size() &&
            task.symbols >= 1 && task.symbols <= 10000 && task.min_length >= 1 && task.min_length <= task.max_length &&
            task.max_length <= 1000 && task.first_symbol >= 1 && task.first_symbol <= 3,
        "toy", "the file describes a task out of range");
  return task;
}

}  // namespace orrery
