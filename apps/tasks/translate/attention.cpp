// Chapter 9. Attention weights of a pair, with its tokens.
#include "apps/tasks/translate/attention.h"

#include "core/error.h"

namespace orrery::translate {
namespace {

std::vector<std::string> tokens_of(const Vocabulary& vocabulary, std::span<const i32> ids) {
  std::vector<std::string> tokens;
  for (const i32 id : ids) tokens.push_back(vocabulary.token(id));
  return tokens;
}

Tensor row_of(std::span<const i32> ids) {
  return Tensor::of<i32>({1, std::ssize(ids)}, std::vector<i32>(ids.begin(), ids.end()));
}

}  // namespace

AttentionPage attention_page(const Translator& translator) {
  TranslationModel& model = *translator.model;
  const std::string name =
      "A " + name_of(model.kind()) + " model of " + std::to_string(model.module().parameter_count()) + " parameters";
  const std::string alone =
                        ". Its weights while it wrote these translations, from one pass through the model for each.",
                    first = ", the first of " + std::to_string(translator.others.size() + 1) +
                            " that wrote these translations together. Its weights are from one pass for each.";
  return {"Attention of a translator", name + (translator.others.empty() ? alone : first)};
}

bool add_attention(AttentionPage& page, const Translator& translator, const std::string& line,
                   std::span<const i32> written) {
  check(!written.empty(), "translate", "there is no attention of a translation without tokens");
  const Vocabulary& vocabulary = translator.vocabulary;
  std::vector<i32> source = vocabulary.ids(line), input{begin_id};
  source.push_back(end_id);
  input.insert(input.end(), written.begin(), written.end() - 1);
  if (!page.has_room(translator.model->attention_weights(std::ssize(source), std::ssize(input)))) return false;
  const AttentionMaps maps = translator.model->attention(row_of(source), row_of(input));
  const bool ended = written.back() == end_id;
  page.add(line, vocabulary.text(written.first(written.size() - (ended ? 1 : 0))),
           shown_attentions(maps, tokens_of(vocabulary, source), tokens_of(vocabulary, input),
                            tokens_of(vocabulary, written)));
  return true;
}

}  // namespace orrery::translate
