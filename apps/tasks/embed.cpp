// Chapter 9. `orrery embed`: sentences as vectors of a BERT, and which sentences of a file are nearest to them.
//
// Reimers and Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks", section 3: "SBERT adds a
// pooling operation to the output of BERT / RoBERTa to derive a fixed sized sentence embedding. [...] computing the
// mean of all output vectors (MEAN-strategy)".
//   e = m / |m|     m: the sum of the encoder's rows for [CLS], the tokens and [SEP], not for padding
// The dot product of two such vectors is the cosine of their angle: near 1 for sentences of one meaning.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/data/line_reader.h"
#include "apps/data/text_file.h"
#include "apps/data/word_piece.h"
#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "core/files/json.h"
#include "core/files/shards.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "nn/files/bert_files.h"

namespace orrery {

/// The vectors of these texts, each of its ids with [CLS] and [SEP]: f64 [N, d_model], of length 1. Texts of similar
/// lengths are read together, at most `batch_tokens` with padding.
Tensor sentence_vectors(const nn::Bert& model, const std::vector<BertText>& texts, i64 batch_tokens) {
  const NoGradient nothing_recorded;
  const i64 N = std::ssize(texts), d_model = model.config.layer.d_model;
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].ids.size() < texts[b].ids.size(); });
  Tensor vectors = zeros({N, d_model}, f64);
  for (i64 begin = 0, end = 0; begin < N; begin = end) {
    const auto length = [&](i64 row) { return std::ssize(texts[order[static_cast<size_t>(row)]].ids); };
    while (end < N && (end == begin || (end + 1 - begin) * length(end) <= batch_tokens)) ++end;
    const i64 B = end - begin, S = length(end - 1);
    Tensor ids = full({B, S}, 0), lengths = full({B}, 0);
    for (i64 b = 0; b < B; ++b) {
      const std::vector<i32>& text = texts[order[static_cast<size_t>(begin + b)]].ids;
      std::copy(text.begin(), text.end(), ids.write<i32>() + b * S);
      lengths.write<i32>()[b] = static_cast<i32>(text.size());
    }
    nn::Pass pass = nn::Pass::inference();
    const Tensor hidden = model.hidden(ids, {}, Mask::padding(lengths), pass).value().to(f64);
    for (i64 b = 0; b < B; ++b) {
      double* const sum = vectors.write<double>() + static_cast<i64>(order[static_cast<size_t>(begin + b)]) * d_model;
      const double* row = hidden.data<double>() + b * S * d_model;
      for (i64 s = 0; s < lengths.data<i32>()[b]; ++s, row += d_model)
        std::transform(sum, sum + d_model, row, sum, std::plus<>());
      const double norm = std::sqrt(std::inner_product(sum, sum + d_model, sum, 0.0));
      std::transform(sum, sum + d_model, sum, [=](double x) { return x / norm; });
    }
  }
  return vectors;
}

namespace {

struct EmbedOptions {
  std::string load, nearest;
  i64 top = 3, most_tokens = 256, threads = 1;
  bool ids = false;
};

constexpr i64 batch_tokens = 4096;
constexpr size_t lines_at_once = 1024;  // read together

// Cuts lines into tokens, and counts.
struct Reader {
  WordPiece pieces;
  i64 most, lines = 0, cut = 0, first_cut = 0;

  BertText read(std::string_view line, const std::string& source) {
    ++lines;
    BertText text = within("read " + source, [&] {
      return within("line " + std::to_string(lines), [&] { return pieces.read(line, most); });
    });
    if (text.left_out > 0 && cut++ == 0) first_cut = lines;
    return text;
  }
  void warn(const std::string& source) const {
    if (cut > 0)
      std::cerr << "warning: " << cut << (cut == 1 ? " line of " : " lines of ") << source << " (line " << first_cut
                << (cut == 1 ? ") was" : " is the first) were") << " cut to " << most << " tokens\n";
  }
};

// The sentences to compare with.
struct Known {
  std::string text;
  std::vector<std::string_view> lines;
  Tensor vectors;
};

Known known_sentences(const std::string& path, const nn::Bert& model, Reader reader) {
  Known known{.text = read_text(path), .lines = {}, .vectors = {}};
  known.lines = lines_of(known.text);
  std::vector<BertText> texts;
  for (const std::string_view line : known.lines) texts.push_back(reader.read(line, path));
  reader.warn(harmless(path));
  const Phase phase("computing the vectors of " + path);
  known.vectors = sentence_vectors(model, texts, batch_tokens);
  return known;
}

void print_vector(const double* vector, i64 d_model) {
  for (i64 i = 0; i < d_model; ++i) std::cout << (i > 0 ? " " : "") << numbers("%.7g", vector[i]);
  std::cout << '\n';
}

// One line for each of the nearest: the sentence, the cosine, the near one.
void print_nearest(const std::string& line, const double* vector, const Known& known, i64 top) {
  const i64 d_model = known.vectors.size(1);
  std::vector<std::pair<double, size_t>> cosines;
  for (size_t i = 0; i < known.lines.size(); ++i)
    cosines.emplace_back(-std::inner_product(vector, vector + d_model,
                                             known.vectors.data<double>() + static_cast<i64>(i) * d_model, 0.0),
                         i);
  const auto end = cosines.begin() + std::min(top, std::ssize(cosines));
  std::partial_sort(cosines.begin(), end, cosines.end());
  std::for_each(cosines.begin(), end, [&](const auto& near) {
    std::cout << for_reader(line, STDOUT_FILENO) << numbers("\t%.6f\t", -near.first)
              << for_reader(known.lines[near.second], STDOUT_FILENO) << '\n';
  });
}

// Cuts, computes and prints what `answer` makes of each batch of lines, until the input ends or Ctrl-C.
template <class Answer> int for_lines_of_input(Reader& reader, const Answer& answer) {
  const std::string source = "standard input";
  if (isatty(STDIN_FILENO) == 1) std::cerr << "Type a sentence and Enter; Ctrl-D ends.\n";
  const Interrupt interrupt;
  translate::LineReader input(STDIN_FILENO, source);
  const auto stopped = [&] { return interrupt.requested(); };
  while (std::cout.good() && !stopped()) {
    const std::vector<translate::Line> lines = input.read(lines_at_once, stopped);
    if (lines.empty()) break;
    std::vector<BertText> texts;
    for (const translate::Line& line : lines) {
      check(line.is_whole, "read " + source, "line ", reader.lines + 1, " has more than ",
            translate::LineReader::longest_line, " bytes");
      texts.push_back(reader.read(line.text, source));
    }
    answer(lines, texts);
    std::cout.flush();
  }
  reader.warn(source);
  return interrupt.requested() ? interrupted : done;
}

// Error: the model's folder says that its vectors are not means, as sentence-transformers writes it.
void check_pooling(const std::string& path) {
  const auto said = std::filesystem::path(model_file(path)).parent_path() / "1_Pooling" / "config.json";
  if (!std::filesystem::exists(said)) return;
  const Json json = parse_json_object(read_text(said.string()), "read " + said.string());
  check(json.value("pooling_mode_mean_tokens", false), "read " + said.string(),
        "only pooling_mode_mean_tokens is known");
}

int embed(const EmbedOptions& options) {
  set_threads(static_cast<int>(options.threads));
  Reader reader{.pieces = WordPiece::of_model(options.load), .most = options.most_tokens};
  if (options.ids)
    return for_lines_of_input(reader, [](const auto&, const std::vector<BertText>& texts) {
      for (const BertText& text : texts)
        for (const i32& id : text.ids) std::cout << id << (&id == &text.ids.back() ? '\n' : ' ');
    });
  check_pooling(options.load);
  nn::BertConfig config = nn::bert_config(options.load);
  config.head = nn::BertHead::none;
  config.labels.clear();
  Rng zeros = Rng::of_zeros();
  nn::Bert model = nn::load_bert(options.load, config, zeros);
  check(reader.pieces.size() <= config.vocab_size, "load " + options.load, "the vocabulary has ", reader.pieces.size(),
        " tokens, the model only ", config.vocab_size);
  reader.most = std::min(reader.most, config.max_positions);
  std::optional<Known> known;
  if (!options.nearest.empty()) known = known_sentences(options.nearest, model, reader);
  print_start(std::cerr, {.parameters = model.parameter_count()});
  return for_lines_of_input(reader, [&](const std::vector<translate::Line>& lines, const std::vector<BertText>& texts) {
    const Tensor vectors = sentence_vectors(model, texts, batch_tokens);
    for (size_t i = 0; i < lines.size(); ++i) {
      const double* const vector = vectors.data<double>() + static_cast<i64>(i) * vectors.size(1);
      if (known)
        print_nearest(lines[i].text, vector, *known, options.top);
      else
        print_vector(vector, vectors.size(1));
    }
  });
}

}  // namespace

void add_embed(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App& command = add_command(
      program, "embed", "Turn sentences into vectors, or find those of a file that mean nearly the same",
      "Reads a sentence from each line of standard input. A model is a BERT of Hugging Face's with its config.json and "
      "vocab.txt, such as all-MiniLM-L6-v2, or one that a task of this program saved.\n"
      "Examples:\n  orrery embed --load minilm/ < sentences.txt > vectors.txt\n"
      "  echo a man plays music | orrery embed --load minilm/ --nearest sentences.txt");
  require(add_file(command, "--load", options->load, "The model: a folder, or a file with its vocabulary", "FOLDER"));
  CLI::Option* nearest = add_file(command, "--nearest", options->nearest,
                                  "Print the nearest lines of this file instead: SENTENCE, cosine and LINE, with tabs "
                                  "between them");
  add_whole_number(command, "--top", options->top, 1, 1000, "How many of them");
  add_whole_number(command, "--max-tokens", options->most_tokens, 3, 65536,
                   "What is longer loses its end; at most the positions of the model");
  CLI::Option* ids = add_flag(command, "--ids", options->ids, "Print the ids of the tokens instead");
  exclude(ids, {nearest});
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return embed(*options); });
}

}  // namespace orrery
