// Chapter 9. The list of all tasks.
#include "apps/tasks/tasks.h"

#include "apps/program/options.h"
#include "apps/tasks/lm/training.h"
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "nn/models/bert.h"
#include "nn/models/config_json.h"
#include "nn/models/transformer.h"

namespace orrery {

void add_toy(CLI::App& program, int& exit_code);
void add_lm(CLI::App& program, int& exit_code);
void add_translate(CLI::App& program, int& exit_code);
void add_embed(CLI::App& program, int& exit_code);
void add_pretrain(CLI::App& program, int& exit_code);
void add_classify(CLI::App& program, int& exit_code);
void add_tag(CLI::App& program, int& exit_code);
void add_answer(CLI::App& program, int& exit_code);
void add_summarise(CLI::App& program, int& exit_code);

namespace {
template <class Config>
constexpr SavedModel model{&nn::config_json::describes<Config>,
                           [](const std::string& config) { return Config::of_json(config).parameter_count(); }};
}  // namespace

// A new task is one more line.
std::vector<ListedTask> all_tasks() {
  using namespace translate;
  return {
      {add_toy, {model<nn::TransformerConfig>}},
      {add_lm, {model<LanguageModelConfig>}},
      {add_translate, {model<RecurrentTranslatorConfig>, model<ConvolutionalTranslatorConfig>}},
      {add_embed, {}},
      {add_pretrain, {}},  // the same models as those of classify
      {add_classify, {model<nn::BertConfig>}},
      {add_tag, {}},  // the same models as those of classify
      {add_answer, {}},
      {add_summarise, {}},  // those of translate
  };
}

void add_constraints(CLI::App& command, nn::Constraints& constraints) {
  add_number(command, "--repetition-penalty", constraints.repetition_penalty, 1, 1000,
             "Make tokens that are written already less likely: positive scores are divided by this number, negative "
             "ones multiplied; 1: none");
  add_whole_number(command, "--no-repeat-ngram", constraints.no_repeat_ngram, 0, 1000,
                   "Never write the same N tokens in a row twice; 0: repeat anything");
}

}  // namespace orrery
