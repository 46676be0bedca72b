// Chapter 9. Pieces of words: SentencePiece's unigram model finds them in a text, and cuts other texts into them.
//
// Each piece has a score, the logarithm of its probability. Of all ways to cut a text into pieces, the model takes the
// one with the largest sum of scores ("Subword Regularization", Kudo 2018).
//
// A model of SentencePiece may contain tables that its library follows without checking them. So no such model is ever
// read from a file. A vocabulary is stored as a list of pieces and scores, and the model is built from that list, after
// training too.
#include "apps/data/vocabulary.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "apps/data/unicode.h"
#include "core/error.h"

namespace orrery {
namespace {

// Fields of a message in the format of Protocol Buffers, in which SentencePiece's models are written. A field begins
// with 8 times its number, plus how its value is written: 0 for a number of any length, 2 for bytes after their count,
// 5 for four bytes.
class Message {
 public:
  void number(u64 field, u64 value) {
    varint(field << 3);
    varint(value);
  }
  void text(u64 field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void real(u64 field, float value) {
    varint(field << 3 | 5);
    for (u32 bits = std::bit_cast<u32>(value), i = 0; i < 4; ++i, bits >>= 8) bytes_ += static_cast<char>(bits & 0xFF);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  // Seven bits a byte, the lowest first; the eighth bit says that more follow.
  void varint(u64 value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// A unigram model; the numbers of fields and of kinds are those of SentencePiece's sentencepiece_model.proto.
std::string sentencepiece_model(const std::vector<std::string>& tokens, const std::vector<float>& scores, bool exact) {
  constexpr u64 normal = 1, unknown = 2, control = 3, byte = 6, unigram = 1;
  Message model;
  for (size_t id = 0; id < tokens.size(); ++id) {
    u64 kind = control;
    if (id >= first_piece_id) kind = byte;
    if (id >= tokens_before_pieces(exact)) kind = normal;
    if (id == unknown_id) kind = unknown;
    Message piece;
    piece.text(1, tokens[id]);
    piece.real(2, scores[id]);
    piece.number(3, kind);
    model.text(1, piece.bytes());
  }
  Message trainer;
  trainer.number(3, unigram);  // model_type
  trainer.number(35, exact);   // byte_fallback
  trainer.number(40, unknown_id);
  trainer.number(41, begin_id);
  trainer.number(42, end_id);
  trainer.number(43, pad_id);
  model.text(2, trainer.bytes());
  Message normalizer;
  normalizer.text(1, "identity");  // name
  normalizer.number(3, !exact);    // add_dummy_prefix
  normalizer.number(4, !exact);    // remove_extra_whitespaces
  model.text(3, normalizer.bytes());
  return model.bytes();
}

void check_status(const sentencepiece::util::Status& status) {
  check(status.ok(), vocabulary_operation, status.message());
}

class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  // Every `stride`-th line; SentencePiece asks for each as a string.
  LineIterator(const std::vector<std::string_view>& lines, size_t stride) : lines_(lines), stride_(stride) { take(); }
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override {
    at_ += stride_;
    take();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void take() {
    if (!done()) line_ = lines_[at_];
  }

  const std::vector<std::string_view>& lines_;
  const size_t stride_;
  size_t at_ = 0;
  std::string line_;
};

i64 different_characters(const std::vector<std::string_view>& lines) {
  std::set<size_t> codes;
  for (const std::string_view line : lines)
    for_each_character(line, [&](size_t code, size_t, size_t) { codes.insert(code); });
  return static_cast<i64>(codes.size());
}

// Whether a line has a character from which SentencePiece surely learns. It leaves out lines with U+2585, which it
// reserves, and in other lines the names of tokens, NUL, tabs, and spaces, also as U+2581.
bool has_something_to_learn(std::string line) {
  for (const std::string_view name : token_names)
    for (size_t at = 0; (at = line.find(name, at)) != line.npos;) line.replace(at, name.size(), name.size(), '\t');
  bool reserved = false, learnt = false;
  for_each_character(line, [&](size_t code, size_t, size_t) {
    reserved = reserved || code == 0x2585;
    learnt = learnt || (code != '\0' && code != '\t' && code != ' ' && code != 0x2581);
  });
  return learnt && !reserved;
}

// Error: every `stride`-th line has nothing to learn from. SentencePiece would then end the program.
void check_learnable(const std::vector<std::string_view>& lines, size_t stride) {
  bool any = false;
  for (size_t i = 0; i < lines.size() && !any; i += stride) any = has_something_to_learn(std::string(lines[i]));
  check(any, vocabulary_operation, "SentencePiece finds nothing to learn from");
}

// The most bytes of a line, or 10, the least that SentencePiece takes for it.
size_t most_bytes_of_a_line(const std::vector<std::string_view>& lines) {
  size_t longest = 10;
  for (const std::string_view line : lines) longest = std::max(longest, line.size());
  return longest;
}

using TrainerOptions = std::unordered_map<std::string, std::string>;  // of SentencePiece

// To learn `tokens` tokens, the named ones among them. `whole`: every character gets a piece.
TrainerOptions trainer_options(i64 tokens, size_t longest_line, bool whole, bool exact) {
  const std::string unify_spaces = exact ? "false" : "true";
  return {{"model_type", "unigram"},
          {"vocab_size", std::to_string(tokens)},
          {"hard_vocab_limit", "false"},
          {"max_sentence_length", std::to_string(longest_line)},
          {"max_sentencepiece_length", std::to_string(longest_piece)},
          {"character_coverage", whole ? "1.0" : "0.9995"},
          {"normalization_rule_name", "identity"},
          {"add_dummy_prefix", unify_spaces},
          {"remove_extra_whitespaces", unify_spaces},
          {"pad_id", std::to_string(pad_id)},
          {"unk_id", std::to_string(unknown_id)},
          {"bos_id", std::to_string(begin_id)},
          {"eos_id", std::to_string(end_id)},
          {"control_symbols", "[CLS],[SEP],[MASK]"},
          {"num_threads", "4"},   // sums depend on their number
          {"minloglevel", "4"}};  // nothing is printed
}

ScoredPieces pieces_of(const std::string& model) {
  sentencepiece::SentencePieceProcessor processor;
  check_status(processor.LoadFromSerializedProto(model));
  ScoredPieces found;
  for (int id = first_piece_id; id < processor.GetPieceSize(); ++id) {
    found.pieces.push_back(processor.IdToPiece(id));
    found.scores.push_back(processor.GetScore(id));
  }
  return found;
}

}  // namespace

size_t tokens_before_pieces(bool exact) { return first_piece_id + (exact ? bytes_in_all : 0); }

ScoredPieces learn_pieces(const std::vector<std::string_view>& lines, i64 size, bool exact) {
  const i64 before = static_cast<i64>(tokens_before_pieces(exact)), learned = size - before - (exact ? 1 : 0);
  check(size > before && size <= largest_vocabulary, vocabulary_operation, "a vocabulary has from ", before + 1, " to ",
        largest_vocabulary, " tokens, not ", size);
  // An alphabet is learned whole if it takes at most a quarter of the tokens. Of a script with thousands of characters,
  // the rarest are left out. A very large text is sampled, because training keeps all of it in memory several times.
  constexpr size_t most_lines = 2'000'000;
  const i64 characters = different_characters(lines), tokens = learned + first_piece_id;
  const bool whole = 4 * characters <= tokens;
  const size_t stride = (lines.size() + most_lines - 1) / most_lines;
  check_learnable(lines, stride);
  LineIterator sample(lines, stride);
  std::string model;
  const sentencepiece::util::Status status = sentencepiece::SentencePieceTrainer::Train(
      trainer_options(tokens, most_bytes_of_a_line(lines), whole, exact), &sample, &model);
  check(status.ok() || characters + before < size, vocabulary_operation, "a vocabulary of ", size,
        " tokens does not hold the ", characters, " different characters of the text",
        exact ? ", besides the 256 bytes" : "");
  check(status.ok(), vocabulary_operation, "SentencePiece cannot learn from this text. It says: ", status.message());
  ScoredPieces found = pieces_of(model);
  if (exact && std::find(found.pieces.begin(), found.pieces.end(), space_mark) == found.pieces.end()) {
    const auto lowest = std::min_element(found.scores.begin(), found.scores.end());
    found.scores.push_back(lowest == found.scores.end() ? 0 : *lowest);
    found.pieces.emplace_back(space_mark);
  }
  return found;
}

PieceModel::PieceModel(const std::vector<std::string>& tokens, const std::vector<float>& scores, bool exact)
    : exact_(exact), processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  check_status(processor_->LoadFromSerializedProto(sentencepiece_model(tokens, scores, exact)));
}

PieceModel::~PieceModel() = default;

void PieceModel::add_pieces(std::string_view text, std::vector<i32>& ids) const {
  std::vector<int> found;
  check_status(processor_->Encode(absl::string_view(text.data(), text.size()), &found));
  ids.insert(ids.end(), found.begin(), found.end());
}

void PieceModel::add_ids(std::string_view text, std::vector<i32>& ids) const {
  if (!exact_) return add_pieces(text, ids);
  // SentencePiece takes U+2581 for a space, and knows no pieces of several lines: these become bytes here.
  while (!text.empty()) {
    const size_t mark = std::min(text.find(space_mark), text.size());
    const size_t end = std::min(mark, text.find_first_of(std::string_view("\n\0", 2)));
    if (end > 0) add_pieces(text.substr(0, end), ids);
    text.remove_prefix(end);
    const size_t as_bytes = std::min(text.size(), end == mark ? space_mark.size() : 1);
    for (const char c : text.substr(0, as_bytes)) ids.push_back(first_piece_id + static_cast<unsigned char>(c));
    text.remove_prefix(as_bytes);
  }
}

i64 PieceModel::unknown_letters(std::string_view text) const {
  i64 count = 0;
  // The pieces are parts of it.
  const auto encoded = processor_->EncodeAsImmutableProto(absl::string_view(text.data(), text.size()));
  for (const auto& piece : encoded.pieces())
    if (static_cast<i32>(piece.id()) == unknown_id)
      for_each_character(piece.surface(), [&](size_t, size_t, size_t) { ++count; });
  return count;
}

std::string PieceModel::joined(const std::vector<int>& ids) const {
  std::string text;
  check_status(processor_->Decode(ids, &text));
  return text;
}

}  // namespace orrery
