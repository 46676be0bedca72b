// Chapter 9. `orrery embed`: sentences as vectors of a BERT, and which sentences of a file are nearest to them.
//
// Reimers and Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks", section 3: "SBERT adds a
// pooling operation to the output of BERT / RoBERTa to derive a fixed sized sentence embedding. [...] computing the
// mean of all output vectors (MEAN-strategy)".
//   e = m / |m|     m: the sum of the encoder's rows for [CLS], the tokens and [SEP], not for padding
// The dot product of two such vectors is the cosine of their angle: near 1 for sentences of one meaning. --attention
// shows what the encoder's heads read.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/show/attention/attention_page.h"
#include "apps/tasks/text_encoder.h"
#include "core/files/json.h"
#include "core/files/shards.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "nn/files/bert_files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

// The vectors of these texts: f64 [N, d_model], of length 1. Texts of similar lengths are read together.
Tensor sentence_vectors(const nn::Bert& model, const EncodedTexts& texts) {
  constexpr i64 most_rows = 1024, most_tokens = 4096;
  const NoGradient nothing_recorded;
  Tensor vectors = zeros({std::ssize(texts), model.config.layer.d_model}, f64);
  const translate::BatchesByLength batches = batches_of(texts, most_rows, Rng(0), most_tokens);
  for (i64 i = 0; i < batches.in_epoch(); ++i) {
    const std::span<const i64> items = batches.sorted_batch(i);
    nn::Pass pass = nn::Pass::inference();
    const Tensor hidden = model.hidden(ids_of(texts, items, model.config.pad_id), Tensor(), pass).value().to(f64);
    for (i64 row = 0; row < std::ssize(items); ++row) {
      const i64 item = items[static_cast<size_t>(row)], length = std::ssize(texts[static_cast<size_t>(item)].ids);
      const Tensor m = sum(slice(hidden.rows(row, row + 1), 1, 0, length), {1});
      slice_into(vectors, m / std::sqrt(sum_of_squares(m)), 0, item, false);
    }
  }
  return vectors;
}

struct EmbedOptions {
  std::string load, nearest, attention;
  i64 top = 3, most_tokens = 256, threads = 1;
  bool ids = false;
};

// Cuts lines into tokens, and counts.
struct Reader {
  TextReader encoded;
  i64 lines = 0, cut = 0, first_cut = 0;

  EncodedText read(std::string_view line, const std::string& source) {
    ++lines;
    EncodedText read = within("read " + source + ": line " + std::to_string(lines),
                              [&] { return encoded(LabelledText{.words = {std::string(line)}}); });
    if (read.is_cut && cut++ == 0) first_cut = lines;
    return read;
  }
  void warn(const std::string& source) const {
    if (cut > 0)
      std::cerr << "warning: " << cut << (cut == 1 ? " line of " : " lines of ") << source << " (line " << first_cut
                << (cut == 1 ? ") was" : " is the first) were") << " cut to " << encoded.most_tokens << " tokens\n";
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
  EncodedTexts texts;
  for (const std::string_view line : known.lines) texts.push_back(reader.read(line, path));
  reader.warn(harmless(path));
  const Phase phase("computing the vectors of " + path);
  known.vectors = sentence_vectors(model, texts);
  return known;
}

// One line for each of the nearest: the sentence, the cosine, the near one.
void print_nearest(const std::string& line, const Tensor& vector, const Known& known, i64 top) {
  const TopK near = topk(matmul(vector, known.vectors, Trans::b), std::min(top, std::ssize(known.lines)));
  for (i64 i = 0; i < near.ids.count(); ++i)
    std::cout << for_reader(line, STDOUT_FILENO) << numbers("\t%.6f\t", near.values.at(i))
              << for_reader(known.lines[static_cast<size_t>(near.ids.data<i32>()[i])], STDOUT_FILENO) << '\n';
}

// Cuts, computes and prints what `answer` makes of each batch of lines, until the input ends or Ctrl-C.
template <class Answer> int for_lines_of_input(Reader& reader, const Answer& answer) {
  constexpr size_t lines_at_once = 1024;
  const std::string source = "standard input";
  if (isatty(STDIN_FILENO) == 1) std::cerr << "Type a sentence and Enter; Ctrl-D ends.\n";
  const Interrupt interrupt;
  LineReader input(STDIN_FILENO, source);
  const auto stopped = [&] { return interrupt.requested(); };
  while (std::cout.good() && !stopped()) {
    const std::vector<Line> lines = input.read(lines_at_once, stopped);
    if (lines.empty()) break;
    EncodedTexts texts;
    for (const Line& line : lines) {
      check(line.is_whole, "read " + source, "line ", reader.lines + 1, " has more than ", LineReader::longest_line,
            " bytes");
      texts.push_back(reader.read(line.text, source));
    }
    answer(lines, texts);
    std::cout.flush();
  }
  reader.warn(source);
  return interrupt.requested() ? interrupted : done;
}

// Adds what the heads read in a sentence. Returns false if the page has no room for it.
bool add_attention(AttentionPage& page, const nn::Bert& model, const TextTokens& tokens, const std::string& line,
                   const EncodedText& text) {
  const i64 S = std::ssize(text.ids), layers = model.config.repeats * model.config.num_layers;
  if (!page.has_room(layers * model.config.layer.num_heads * S * S)) return false;
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  model.hidden(Tensor::of<i32>({1, S}, text.ids), Tensor(), pass);
  ShownAttention shown;
  shown.name = "self-attention";
  shown.note = "A row is a token; its columns are the tokens that it reads, on both sides of it.";
  for (const i32 id : text.ids) shown.rows.push_back(tokens.token(id));
  shown.columns = shown.rows;
  // In the order of the pass, in which a layer may come more than once.
  for (const nn::AttentionRecorder::Recorded& each : seen.all) shown.layers.push_back(each.weights);
  page.add(line, "", {shown});
  return true;
}

// The page of --attention instead of vectors: the first lines, as many as it holds.
int write_attention(const EmbedOptions& options, const nn::Bert& model, Reader& reader) {
  AttentionPage page("Attention of a BERT", "A BERT of " + std::to_string(model.config.parameter_count()) +
                                                " parameters: what every head of every layer reads in a sentence.");
  bool is_full = false;
  const int exit_code = for_lines_of_input(reader, [&](const std::vector<Line>& lines, const EncodedTexts& texts) {
    for (size_t i = 0; i < lines.size() && !is_full; ++i)
      is_full = !add_attention(page, model, reader.encoded.tokens, lines[i].text, texts[i]);
  });
  const std::string path = harmless(options.attention);
  check(page.pairs() > 0, "embed", path, " is not written: there is no line, or the first is too long for it");
  write_text(options.attention, page.html());
  if (is_full) std::cerr << path << " shows the first " << page.pairs() << " of " << reader.lines << " lines\n";
  return exit_code;
}

// Error: the model's folder says that its vectors are not means, as sentence-transformers writes it.
void check_pooling(const std::string& path) {
  const auto said = std::filesystem::path(model_file(path)).parent_path() / "1_Pooling" / "config.json";
  if (!std::filesystem::exists(said)) return;
  const std::string operation = "read " + said.string();
  const Json json = parse_json_object(read_text(said.string()), operation);
  bool is_mean = false;
  nn::config_json::Reader(operation, json)("pooling_mode_mean_tokens", is_mean);
  check(is_mean, operation, "only pooling_mode_mean_tokens is known");
}

int embed(const EmbedOptions& options) {
  set_threads(static_cast<int>(options.threads));
  check_can_write_text("embed", "--attention", options.attention);
  check(!is_same_file(options.attention, "/dev/stdin"), "embed", "--attention ", options.attention,
        " would write over the lines to read");
  const TextTokens tokens = TextTokens::of_model(read_safetensors_metadata(options.load), options.load);
  Reader reader{.encoded = {tokens, nn::BertConfig(), options.most_tokens}};
  if (options.ids)
    return for_lines_of_input(reader, [](const auto&, const EncodedTexts& texts) {
      for (const EncodedText& text : texts)
        for (const i32& id : text.ids) std::cout << id << (&id == &text.ids.back() ? '\n' : ' ');
    });
  if (options.attention.empty()) check_pooling(options.load);
  nn::BertConfig config = nn::bert_config(options.load);
  check(!config.sentence_sums, "embed", options.load, " reads sentences as sums of words: it has no vectors of tokens");
  config.head = nn::BertHead::none;
  config.labels.clear();
  config.pad_id = tokens.pad();
  tokens.check_fit(config, options.load);
  Rng zeros = Rng::of_zeros();
  nn::Bert model = nn::load_bert(options.load, config, zeros);
  reader.encoded.most_tokens = std::min(options.most_tokens, config.max_positions);
  if (!options.attention.empty()) return write_attention(options, model, reader);
  std::optional<Known> known;
  if (!options.nearest.empty()) known = known_sentences(options.nearest, model, reader);
  print_start(std::cerr, {.parameters = model.parameter_count()});
  return for_lines_of_input(reader, [&](const std::vector<Line>& lines, const EncodedTexts& texts) {
    const Tensor vectors = sentence_vectors(model, texts);
    for (size_t i = 0; i < lines.size(); ++i) {
      const Tensor vector = vectors.rows(static_cast<i64>(i), static_cast<i64>(i) + 1);
      if (known)
        print_nearest(lines[i].text, vector, *known, options.top);
      else
        for (i64 k = 0; k < vector.count(); ++k)
          std::cout << numbers("%.7g", vector.at(k)) << (k + 1 < vector.count() ? ' ' : '\n');
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
      "  echo a man plays music | orrery embed --load minilm/ --nearest sentences.txt\n"
      "  echo a man plays music | orrery embed --load minilm/ --attention heads.html");
  require(add_file(command, "--load", options->load, "The model: a folder, or a file with its vocabulary", "FOLDER"));
  CLI::Option* nearest = add_file(command, "--nearest", options->nearest,
                                  "Print the nearest lines of this file instead: SENTENCE, cosine, LINE, between tabs");
  add_whole_number(command, "--top", options->top, 1, 1000, "How many of them");
  add_whole_number(command, "--max-tokens", options->most_tokens, 3, 65536,
                   "What is longer loses its end; at most the positions of the model");
  CLI::Option* ids = add_flag(command, "--ids", options->ids, "Print the ids of the tokens instead");
  CLI::Option* attention = add_output_file(
      command, "--attention", options->attention,
      "Write a page for a browser instead: what each head of each layer reads in the first lines, at most " +
          std::to_string(AttentionPage::most_pairs));
  exclude(ids, {nearest, attention});
  exclude(attention, {nearest});
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return embed(*options); });
}

}  // namespace orrery
