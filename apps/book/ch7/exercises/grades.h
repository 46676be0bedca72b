// Chapter 7. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // input and labels for teacher forcing

void grade(Grader& g) {
  constexpr i32 bos = 1, eos = 2, pad = 0, ignore = -1;
  const Tensor sentences = Tensor::of<i32>({2, 3}, {7, 8, 9, 5, 6, pad});
  const auto shifted = [=] { return my_shift(sentences, bos, eos, pad, ignore); };
  g.equal("input of a full row", Tensor::of<i32>({1, 4}, {1, 7, 8, 9}),
          "The decoder reads bos first, and never eos: after eos there is nothing to say.",
          [=] { return shifted().input.rows(0, 1); });
  g.equal("labels of a full row", Tensor::of<i32>({1, 4}, {7, 8, 9, 2}),
          "After bos, the model should say the first word; after the last word, eos.",
          [=] { return shifted().labels.rows(0, 1); });
  g.equal("input of a shorter row", Tensor::of<i32>({1, 4}, {1, 5, 6, 0}), "What is behind a sentence stays padding.",
          [=] { return shifted().input.rows(1, 2); });
  g.equal("labels of a shorter row, up to its end", Tensor::of<i32>({1, 3}, {5, 6, 2}),
          "What comes right after the last word of a row?",
          [=] { return slice(shifted().labels.rows(1, 2), 1, 0, 3); });
  g.equal("labels of a shorter row", Tensor::of<i32>({1, 4}, {5, 6, 2, -1}),
          "What is behind the end of a sentence must not count in the loss.",
          [=] { return shifted().labels.rows(1, 2); });
  g.equal("labels of both rows that count in the loss", 7,
          "Three words and eos, two words and eos. All other labels are `ignore`.", [=] {
            double counting = 0;
            for (i64 b = 0; b < 2; ++b)
              for (i64 t = 0; t < 4; ++t) counting += shifted().labels(b, t) != ignore;
            return counting;
          });
}

#elif EXERCISE == 2  // label smoothing

void grade(Grader& g) {
  const Tensor p = Tensor::of<double>({1, 5}, {0.7, 0.1, 0.1, 0.05, 0.05}), label = Tensor::of<i32>({1}, {0});
  const double by_hand = -0.92 * std::log(0.7) - 0.02 * (2 * std::log(0.1) + 2 * std::log(0.05));  // as in the chapter
  g.equal("four equal logits", std::log(4.0),
          "All log p_k are -log 4, so only the sum of all q_k matters. What must it be? By what is it divided?", [] {
            return my_smoothed_loss(constant(zeros({1, 4}, f64)), Tensor::of<i32>({1}, {2}), 0.3).item();
          });
  const Tensor labels = Tensor::of<i32>({3}, {1, 0, 3});
  const auto logits = [] {
    Rng rng(7);
    return randn({3, 4}, rng, f64);
  };
  g.equal("one row of five classes", by_hand,
          "Every class gets eps / K, the label's too. Then the label gets what is left of 1.",
          [=] { return my_smoothed_loss(log(constant(p)), label, 0.1).item(); });
  g.equal("without smoothing", -std::log(0.7), "With eps = 0, q is 1 at the label and 0 elsewhere.",
          [=] { return my_smoothed_loss(log(constant(p)), label, 0).item(); });
  g.equal("three rows", cross_entropy(constant(logits()), labels, {.label_smoothing = 0.1}).item(),
          "The mean over the rows.", [=] { return my_smoothed_loss(constant(logits()), labels, 0.1).item(); });
  g.gradients("the gradient of the logits", "The gradient is (p - q) / n. Is q a constant, and nothing else?", [=] {
    return checkable([=](const Variable& x) { return my_smoothed_loss(x, labels, 0.1); },
                     std::vector<Tensor>{logits()});
  });
}

#elif EXERCISE == 3  // counting the parameters of the Transformer

void grade(Grader& g) {
  Rng shapes = Rng::of_shapes();  // the layers take no memory
  const auto count = [](nn::Module&& layer) { return static_cast<double>(layer.parameter_count()); };
  g.equal("attention with d_model = 4", 80,
          "A map from 4 to 4 has 4 * 4 weights and 4 biases. How many maps are there?",
          [] { return static_cast<double>(my_attention_count(4)); });
  g.equal("feed-forward with d_model = 4, d_ff = 16", 148, "The first map has 16 biases, the second one 4.",
          [] { return static_cast<double>(my_feed_forward_count(4, 16)); });
  g.equal("an encoder layer of the base model",
          count(nn::EncoderLayer({.d_model = 512, .num_heads = 8, .d_ff = 2048}, shapes)),
          "Attention, feed-forward and two norms, each norm with a weight and a bias of d_model numbers.",
          [] { return static_cast<double>(my_encoder_layer_count(512, 2048)); });
  g.equal("a decoder layer of the base model",
          count(nn::DecoderLayer({.d_model = 512, .num_heads = 8, .d_ff = 2048}, shapes)),
          "A decoder layer has a sub-layer more than an encoder layer, and each sub-layer has a norm.",
          [] { return static_cast<double>(my_decoder_layer_count(512, 2048)); });
  g.equal("the base model with 37,000 words", static_cast<double>(nn::base(37000).parameter_count()),
          "Which matrices does the model share? And which part outside the layers has a bias?",
          [] { return static_cast<double>(my_model_count(37000, 512, 2048, 6)); });
  g.equal("the big model with 37,000 words", static_cast<double>(nn::big(37000).parameter_count()),
          "The same formula with other sizes.",
          [] { return static_cast<double>(my_model_count(37000, 1024, 4096, 6)); });
}

#elif EXERCISE == 4  // the layers of both stacks

// The parts of a layer of the library, or what a question puts in their place.
struct Parts {
  using Map = std::function<Variable(const Variable&)>;
  using Attention = std::function<Variable(const Variable& queries, const Variable& memory, const Mask& mask)>;
  Attention self, cross;
  Map feed_forward, norm1, norm2, norm3;
  bool norm_first = false;
};

// Parts for numbers: an attention gives twice what is read, the network three times its input, the norms 10, 100 and
// 1000 times theirs. Each call is added to `called`, and an attention's mask to `masks`.
struct Simple {
  std::string called, masks;
  Parts parts(bool norm_first) {
    const auto times = [this](const std::string& name, double factor) {
      return [=, this](const Variable& x) {
        called += name + " ";
        return x * factor;
      };
    };
    const auto attention = [this](const std::string& name) {
      return [=, this](const Variable&, const Variable& memory, const Mask& mask) {
        called += name + " ";
        masks += mask.is_causal() ? "causal " : "visible ";
        return memory * 2.0;
      };
    };
    return {attention("self"),   attention("cross"),   times("network", 3), times("norm1", 10),
            times("norm2", 100), times("norm3", 1000), norm_first};
  }
  double encoder(bool norm_first) {
    return my_encoder_layer(constant(full({1, 1}, 1, f64)), Mask(), parts(norm_first)).item();
  }
  double decoder(bool norm_first) {
    return my_decoder_layer(constant(full({1, 1}, 1, f64)), constant(full({1, 1}, 5, f64)), Mask::causal(), Mask(),
                            parts(norm_first))
        .item();
  }
};

template <class Layer> Parts parts_of(const Layer& layer, nn::Pass& pass) {
  const auto attention = [&pass](const auto& of) {
    return [&](const Variable& queries, const Variable& memory, const Mask& mask) {
      return of(queries, memory, mask, pass);
    };
  };
  Parts parts{attention(layer.self_attn),
              {},
              [&](const Variable& x) { return layer.feed_forward(x, pass); },
              std::cref(layer.norm1),
              std::cref(layer.norm2),
              {},
              layer.norm_first};
  if constexpr (requires { layer.multihead_attn; }) {
    parts.cross = attention(layer.multihead_attn);
    parts.norm3 = std::cref(layer.norm3);
  }
  return parts;
}

void grade(Grader& g) {
  g.check("an encoder layer calls each part once, its norms in their order", "Which norm belongs to which sub-layer?",
          [] {
            Simple simple;
            simple.encoder(false);
            return simple.called == "self norm1 network norm2 ";
          });
  g.equal("an encoder layer for x = 1, where attention doubles, the network triples, and norms multiply by 10 and 100",
          12000, "After the first sub-layer there is 10 (1 + 2). What does the second one add its output to?",
          [] { return Simple().encoder(false); });
  g.equal("the same with norm_first", 6321,
          "Pre-norm leaves the sum alone: is f(norm(x)) added to x itself, or to its norm? And does f read its own "
          "argument, or the x outside?",
          [] { return Simple().encoder(true); });
  g.check("a decoder layer calls each part once, in the paper's order",
          "The decoder reads what is written before it looks at the source.", [] {
            Simple simple;
            simple.decoder(false);
            return simple.called == "self norm1 cross norm2 network norm3 ";
          });
  g.check("each attention of the decoder has its own mask",
          "What is still to be written must be hidden. Is there such a thing in the source?", [] {
            Simple simple;
            simple.decoder(false);
            return simple.masks == "causal visible ";
          });
  g.equal("a decoder layer for x = 1 and a memory of 5, the third norm by 1000", 16e6,
          "Which of the two does cross-attention read, what is written or the memory?",
          [] { return Simple().decoder(false); });
  g.equal("the same decoder layer with norm_first", 93031,
          "The memory is the same for all layers of the decoder. Whose input does a norm of the layer change?",
          [] { return Simple().decoder(true); });
  for (const bool norm_first : {false, true}) {
    Rng rng(7);
    const nn::LayerOptions options{.d_model = 8, .num_heads = 2, .d_ff = 16, .norm_first = norm_first};
    nn::EncoderLayer encoder(options, rng);
    nn::DecoderLayer decoder(options, rng);
    nn::to(encoder, f64);
    nn::to(decoder, f64);
    nn::Pass pass = nn::Pass::inference();
    const Variable x = constant(randn({1, 3, 8}, rng, f64)), memory = constant(randn({1, 5, 8}, rng, f64));
    const std::string form = norm_first ? "pre-norm" : "post-norm";
    const Mask causal = Mask::causal(), visible = Mask::padding({3});
    g.equal("the library's encoder layer, " + form, encoder(x, causal, pass).value(),
            "Compare your layer with the chapter's picture of it. Where does its mask go?",
            [&] { return my_encoder_layer(x, causal, parts_of(encoder, pass)).value(); });
    g.equal("the library's decoder layer, " + form, decoder(x, memory, causal, visible, pass).value(),
            norm_first ? "Here cross-attention's queries are a norm's output. Does your lambda use its argument?"
                       : "Compare your layer with the chapter's picture of it. What of the memory is padding?",
            [&] { return my_decoder_layer(x, memory, causal, visible, parts_of(decoder, pass)).value(); });
  }
}

#elif EXERCISE == 5  // greedy decoding

void grade(Grader& g) {
  constexpr i32 bos = 1, no_token = -1;
  constexpr i64 words = 12, max_len = 6;
  Rng rng(3);
  nn::Transformer model({.src_vocab_size = words,
                         .tgt_vocab_size = words,
                         .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 1},
                        rng);
  nn::to(model, f64);
  const Tensor source = Tensor::of<i32>({1, 4}, {3, 9, 4, 7});
  const Tensor expected = nn::greedy_decode(model, source, {.bos = bos, .eos = no_token, .max_len = max_len});
  const auto written = [&](i32 eos, i64 most) {
    const std::vector<i32> tokens = my_greedy_decode(model, source, bos, eos, most);
    return Tensor::of<i32>({1, static_cast<i64>(tokens.size())}, tokens);
  };
  g.equal("one token", slice(expected, 1, 0, 1),
          "The target is bos alone; its row of the logits says what comes first. bos is not part of the answer.",
          [&] { return written(no_token, 1); });
  g.check("six tokens that are not all the same",
          "Which row of the logits do you read? One of them always says what comes after bos.", [&] {
            const std::vector<i32> tokens = my_greedy_decode(model, source, bos, no_token, max_len);
            return std::set<i32>(tokens.begin(), tokens.end()).size() > 1;
          });
  i64 last = max_len - 1;  // the first place of the token that stands there
  for (i64 t = max_len - 1; t >= 0; --t) last = expected(0, t) == expected(0, max_len - 1) ? t : last;
  const i32 eos = expected.data<i32>()[last];
  g.equal("six tokens", expected, "How many of the tokens written so far does the model see as its target?",
          [&] { return written(no_token, max_len); });
  g.equal("it ends at eos", slice(expected, 1, 0, last + 1), "eos is the last token of the answer, and part of it.",
          [&] { return written(eos, 2 * max_len); });
}

#elif EXERCISE == 6  // a cache of keys and values

void grade(Grader& g) {
  constexpr i64 T = 6, d_k = 4, d_v = 3;
  Rng rng(7);
  const Tensor Q = randn({T, d_k}, rng, f64), K = randn({T, d_k}, rng, f64), V = randn({T, d_v}, rng, f64);
  const auto four_axes = [](const Tensor& x) { return constant(x.reshape({1, 1, x.size(0), x.size(1)})); };
  const Tensor whole =
      attention(four_axes(Q), four_axes(K), four_axes(V), Mask::causal()).output.value().reshape({T, d_v});
  const auto after = [=](MyCache& cache, i64 count) {  // the last answer of `count` calls
    Tensor y;
    for (i64 t = 0; t < count; ++t) y = cache.extend(Q.rows(t, t + 1), K.rows(t, t + 1), V.rows(t, t + 1));
    return y;
  };
  const auto answer = [=](i64 count) {
    MyCache cache;
    return after(cache, count);
  };
  g.equal("after six tokens, K", K, "Keys of all positions, in their order.", [=] {
    MyCache cache;
    after(cache, T);
    return cache.K;
  });
  g.equal("after six tokens, V", V, "Values of all positions, in the order of the keys.", [=] {
    MyCache cache;
    after(cache, T);
    return cache.V;
  });
  g.equal("the first token", whole.rows(0, 1), "The first position sees itself alone: its weight is 1.",
          [=] { return answer(1); });
  g.equal("the second token", whole.rows(1, 2), "It sees the first token and itself. What divides its two scores?",
          [=] { return answer(2); });
  g.equal("the sixth token", whole.rows(5, 6), "Row i of K and row i of V belong to the same position.",
          [=] { return answer(6); });
}

#elif EXERCISE == 7  // beam search

constexpr i32 eos = 0;

// Probabilities of the tokens 0 (eos), 1, 2 after each beginning; 1/3 each where nothing else is said.
using Table = std::map<std::vector<i32>, std::vector<double> >;

NextToken model_of(const Table& table) {
  return [table](const std::vector<i32>& tokens) {
    const auto found = table.find(tokens);
    std::vector<double> scores = found == table.end() ? std::vector<double>(3, 1.0 / 3) : found->second;
    for (double& score : scores) score = std::log(score);
    return scores;
  };
}

Tensor searched(const Table& table, i64 width, i64 max_len, double alpha = 0) {
  const std::vector<i32> tokens = my_beam_search(model_of(table), width, eos, max_len, alpha);
  return Tensor::of<i32>({static_cast<i64>(tokens.size())}, tokens);
}

void grade(Grader& g) {
  // Greedy: 1, 2, eos with 0.5 * 0.4 = 0.2; likeliest: 2, 1, eos with 0.4 * 0.9 = 0.36.
  const Table misled{{{}, {0.1, 0.5, 0.4}},
                     {{1}, {0.3, 0.3, 0.4}},
                     {{2}, {0.05, 0.9, 0.05}},
                     {{1, 2}, {0.98, 0.01, 0.01}},
                     {{2, 1}, {0.98, 0.01, 0.01}}};
  g.equal("a beam of one is greedy decoding", Tensor::of<i32>({3}, {1, 2, 0}),
          "With width 1, how many hypotheses are kept at each length?", [=] { return searched(misled, 1, 5); });
  g.equal("a beam of two finds a likelier sentence", Tensor::of<i32>({3}, {2, 1, 0}),
          "Both beginnings stay after the first token. Are extensions of both compared with each other?",
          [=] { return searched(misled, 2, 5); });
  // 1, eos with 0.8 * 0.5 = 0.4; 2, eos with 0.15 * 0.9 = 0.135.
  const Table sure{{{}, {0.05, 0.8, 0.15}}, {{1}, {0.5, 0.25, 0.25}}, {{2}, {0.9, 0.05, 0.05}}};
  g.equal("a sure end does not make up for an unlikely beginning", Tensor::of<i32>({2}, {1, 0}),
          "Hypotheses are compared by the sum over all of their tokens.", [=] { return searched(sure, 2, 2); });
  // 1, eos with 0.5 * 0.5 = 0.25 ends first; 2, 1, eos with 0.48 * 0.9 * 0.9 = 0.39 is likelier.
  const Table late{
      {{}, {0.02, 0.5, 0.48}}, {{1}, {0.5, 0.25, 0.25}}, {{2}, {0.05, 0.9, 0.05}}, {{2, 1}, {0.9, 0.05, 0.05}}};
  g.equal("what ends first need not win", Tensor::of<i32>({3}, {2, 1, 0}),
          "A finished hypothesis waits, while others of the beam may still become likelier sentences.",
          [=] { return searched(late, 2, 5); });
  // 1, eos with 0.6 * 0.5 = 0.3; 1, 1, eos with 0.6 * 0.45 * 0.9 = 0.243, of which each token is likelier on average.
  const Table sum{{{}, {0.15, 0.6, 0.25}}, {{1}, {0.5, 0.45, 0.05}}, {{1, 1}, {0.9, 0.05, 0.05}}};
  g.equal("with alpha 0 only the sum counts", Tensor::of<i32>({2}, {1, 0}), "What is n^0?",
          [=] { return searched(sum, 2, 5); });
  // eos at once with 0.35, behind 1 with 0.4: what goes on becomes less likely than 0.35.
  const Table early{{{}, {0.35, 0.4, 0.25}}};
  g.equal("what ended stays in the race", Tensor::of<i32>({1}, {0}),
          "A finished hypothesis is never extended, and is compared with all others at the end.",
          [=] { return searched(early, 2, 5); });
  // 1, 1 with 0.98 * 0.98 is far likelier than eos at once, with 0.01.
  const Table endless{{{}, {0.01, 0.98, 0.01}}, {{1}, {0.01, 0.98, 0.01}}};
  g.equal("nothing is longer than max_len", Tensor::of<i32>({2}, {1, 1}),
          "A hypothesis of max_len tokens is finished without eos, and is compared with the others.",
          [=] { return searched(endless, 3, 2); });
  // eos at once with 0.3, log -1.204; 1, eos with 0.6 * 0.45 = 0.27, log -1.309, of which half is -0.655.
  const Table shorter{{{}, {0.3, 0.6, 0.1}}, {{1}, {0.45, 0.3, 0.25}}};
  g.equal("a length penalty of 1", Tensor::of<i32>({2}, {1, 0}),
          "Divide each sum of logarithms by its number of tokens, to the power of alpha.",
          [=] { return searched(shorter, 2, 2, 1); });
  // The chapter's picture: 2 tokens of 1/4, and 4 of 1/3. What is missing in a row is said by other, unlikely words.
  const double few = 1e-4, third = 1.0 / 3;
  const Table picture{{{}, {few, 0.25, third}},
                      {{1}, {0.25, few, few}},
                      {{2}, {few, few, third}},
                      {{2, 2}, {few, few, third}},
                      {{2, 2, 2}, {third, few, few}}};
  g.equal("2 tokens of 1/4 against 4 of 1/3, alpha 1", Tensor::of<i32>({4}, {2, 2, 2, 0}),
          "Did you stop before the long one ended? With alpha 1 means are compared. The paper's penalty is another.",
          [=] { return searched(picture, 2, 5, 1); });
  g.equal("2 tokens of 1/4 against 4 of 1/3, alpha 1/2", Tensor::of<i32>({2}, {1, 0}),
          "A sum over 4 tokens is divided by 4^alpha. Which number is that, if alpha is 1/2?",
          [=] { return searched(picture, 2, 5, 0.5); });
  // 1, 1 with 0.3 leaves no place for 1, eos with 0.27, but only 1, 1, eos with 0.18 comes of it.
  const Table crowded{{{}, {0.2, 0.6, 0.2}}, {{1}, {0.45, 0.5, 0.05}}, {{1, 1}, {0.6, 0.2, 0.2}}};
  g.equal("what ends needs a place in the beam", Tensor::of<i32>({3}, {1, 1, 0}),
          "The `width` likeliest are kept of all that were extended, whether they end or go on.",
          [=] { return searched(crowded, 1, 5); });
  // eos at once with 0.15; both 1, 1 and 1, 2 with 0.3675 are likelier, until a third token makes it 0.1225.
  const Table overtaken{{{}, {0.15, 0.75, 0.1}}, {{1}, {0.02, 0.49, 0.49}}};
  g.equal("what is finished is never pruned", Tensor::of<i32>({1}, {0}),
          "Finished hypotheses are set aside. Are they still compared with those that are extended?",
          [=] { return searched(overtaken, 2, 3); });
  // eos at once with 0.2; then 1, 1 with 0.35 and, in the second place, 1, 2 with 0.315, which ends with 0.299.
  const Table second{{{}, {0.2, 0.7, 0.1}}, {{1}, {0.05, 0.5, 0.45}}, {{1, 2}, {0.95, 0.03, 0.02}}};
  g.equal("what is finished takes no place in the beam", Tensor::of<i32>({3}, {1, 2, 0}),
          "How many of the extended hypotheses are kept at the next length, after one has ended?",
          [=] { return searched(second, 2, 3); });
  // After 1, eos with 0.2 and 1, 1 with 0.175, 2, 1 with 0.16 is the third of all; 2, 1, eos has the largest mean.
  const Table narrow{{{}, {0.02, 0.5, 0.48}}, {{1}, {0.4, 0.35, 0.25}}, {{2, 1}, {0.98, 0.01, 0.01}}};
  g.equal("two are kept of all, not two behind each beginning", Tensor::of<i32>({2}, {1, 0}),
          "With width 2, how many hypotheses of two tokens are kept?", [=] { return searched(narrow, 2, 3, 1); });
}

#elif EXERCISE == 8  // top-p sampling

void grade(Grader& g) {
  // How often each token is drawn, for 100 numbers u that are spread evenly.
  const auto drawn = [](double top_p) {
    const std::vector<double> p{0.1, 0.5, 0.25, 0.15};
    Tensor counts = zeros({4}, f64);
    for (int i = 0; i < 100; ++i) counts(static_cast<i64>(my_sample(p, top_p, (i + 0.5) / 100))) += 1;
    return counts;
  };
  g.equal("with top_p 1 each token comes with its own probability", Tensor::of<double>({4}, {10, 50, 25, 15}),
          "Lay the probabilities side by side from 0 to 1: u falls into one of them.", [=] { return drawn(1); });
  g.check("with top_p 0.7 tokens 0 and 3, the least likely, never come",
          "In which order are the tokens kept? And is one of those kept returned for every u below 1?",
          [=] { return drawn(0.7)(0) + drawn(0.7)(3) == 0; });
  g.check("with top_p 0.7 two tokens come", "0.5 alone does not add up to 0.7 or more. Who is kept as well?",
          [=] { return drawn(0.7)(2) > 0; });
  g.check("with top_p 0.75 token 3 never comes", "0.5 and 0.25 add up to exactly 0.75. Is a third token needed?",
          [=] { return drawn(0.75)(3) == 0; });
  g.equal("with top_p 0.7 one is drawn twice as often as the other", Tensor::of<double>({4}, {0, 67, 33, 0}),
          "0.5 and 0.25 have to add up to 1 again, as two thirds and a third.", [=] { return drawn(0.7); });
  g.equal("with top_p 0.01 the likeliest token always comes", Tensor::of<double>({4}, {0, 100, 0, 0}),
          "One token is always kept.", [=] { return drawn(0.01); });
  g.equal("with top_p 1 and u = 0.05 token 1 comes, the likeliest", 1,
          "Tokens are drawn in the order in which they are kept, not in that of their numbers.", [] {
            return static_cast<double>(my_sample({0.1, 0.5, 0.25, 0.15}, 1, 0.05));
          });
  g.equal("of four equally likely tokens, with top_p 0.5 and u = 0.6, token 1 comes", 1,
          "Of tokens that are equally likely, which comes first?", [] {
            return static_cast<double>(my_sample({0.25, 0.25, 0.25, 0.25}, 0.5, 0.6));
          });
}

#elif EXERCISE == 9  // LoRA, and how it is merged

void grade(Grader& g) {
  Rng rng(7);
  const Tensor W = randn({5, 4}, rng, f64), x = randn({3, 4}, rng, f64);
  const Tensor A = randn({2, 4}, rng, f64), B = randn({5, 2}, rng, f64);
  const auto fresh = [=] {
    Rng draws(8);
    return MyLora(W.clone(), 2, 6, draws);
  };
  const auto trained = [=] {
    MyLora layer = fresh();
    layer.A = parameter(A.clone());
    layer.B = parameter(B.clone());
    return layer;
  };
  const Tensor whole = W + matmul(B, A) * 3.0, y = matmul(x, whole, Trans::b);  // 6 / 2
  g.equal("at first y is x W^T", matmul(x, W, Trans::b),
          "One of the two matrices has to start at 0: which of them? If a product fails: which factors are transposed "
          "in x A^T B^T?",
          [=] { return fresh()(constant(x)).value(); });
  g.check("at first A or B has a gradient",
          "The gradient of B is a product with A x, and that of A one with B. What if both are 0?", [=] {
            const MyLora layer = fresh();
            backward(sum(layer(constant(x))));
            const auto squares = [](const Tensor& d) { return d.defined() ? sum_of_squares(d) : 0; };
            return squares(layer.A.gradient()) + squares(layer.B.gradient()) > 0;
          });
  g.equal("y for given A and B", y, "By which number is x A^T B^T multiplied?",
          [=] { return trained()(constant(x)).value(); });
  g.equal("one matrix gives the same y", whole, "x W^T + 3 x A^T B^T is x M^T for every x. Which matrix is M?",
          [=] { return trained().merged(); });
  g.check("after merging, W is as it was", "Copies of a Tensor share its memory. Make a new one.", [=] {
    const MyLora layer = trained();
    layer.merged();
    return same_bits(layer.W, W);
  });
  g.gradients("the gradients of x, A and B", "Stay with Variables in the forward, for all but W.", [=] {
    return checkable(
        [=](const Variable& input, const Variable& a, const Variable& b) {
          MyLora layer = fresh();
          layer.A = a;
          layer.B = b;
          return layer(input);
        },
        std::vector<Tensor>{x, A, B});
  });
}

#endif
