// Chapter 9. What a translator attends to while it translates a line, for the page of `decode --attention`.
//
// The translation is found by beam search. Then the whole pair goes through the model once, as in training, and the
// attention weights of this pass are kept.
#pragma once

#include <span>

#include "apps/show/attention/attention_page.h"
#include "apps/tasks/translate/saved.h"

namespace orrery::translate {

/// An empty page for the attention of the translator's model; of the first, if several translate together.
AttentionPage attention_page(const Translator& translator);

/// Adds a line and its translation. `written` are the tokens that the model wrote, at least one: the last is the end
/// mark, unless the translation was cut off. Returns false if the page has no room for the pair. Error: no tokens.
bool add_attention(AttentionPage& page, const Translator& translator, const std::string& line,
                   std::span<const i32> written);

}  // namespace orrery::translate
