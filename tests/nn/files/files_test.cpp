// Chapter 9. Tests of models in files: what fits is loaded, what does not is listed.
#include "nn/files/files.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::elements;
using small::error_of;

namespace {

// A matrix under two names, and a vector.
struct Model : nn::Module {
  Variable shared, bias;
  Model(u64 seed, i64 width, Dtype dtype = f32) {
    Rng rng(seed);
    shared = parameter(randn({3, width}, rng, dtype));
    bias = parameter(randn({width}, rng, dtype));
  }
  void visit(nn::Visitor& v) override {
    v("embedding.weight", shared);
    v("output.weight", shared);
    v("output.bias", bias);
  }
};

// A parameter, buffers of all dtypes, two of which are one, and a table that is computed again.
struct Buffered : nn::Module {
  Variable weight;
  Tensor mean, again, wide, counts, table;
  explicit Buffered(u64 seed) {
    Rng rng(seed);
    weight = parameter(randn({2}, rng));
    mean = randn({2, 3}, rng);
    again = mean;
    wide = randn({2}, rng, f64);
    counts = randint(0, 1000, {3}, rng);
    table = full({2}, static_cast<double>(seed));
  }
  void visit(nn::Visitor& v) override {
    v("weight", weight);
    v("mean", mean);
    v("again", again);
    v("wide", wide);
    v("counts", counts);
    v.derived("table", table);
  }
};

}  // namespace

TEST_CASE("buffers are saved and loaded like parameters, unless they are derived") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  Buffered model(1), other(2);
  const Tensor handle = other.mean;
  nn::save(model, path);
  const TensorMap stored = read_safetensors(path).tensors;
  CHECK(stored.size() == 5);
  CHECK(stored.at("counts").dtype() == Dtype::i32);
  CHECK(nn::saved_bytes(model) == 2 * 4 + 2 * 6 * 4 + 2 * 8 + 3 * 4);
  nn::load(other, path);
  CHECK(same_bits(other.weight.value(), model.weight.value()));
  CHECK(same_bits(other.mean, model.mean));
  CHECK(same_bits(other.wide, model.wide));
  CHECK(same_bits(other.counts, model.counts));
  CHECK(other.table.at(0) == 2);
  CHECK(handle.shares_memory_with(other.mean));
  to(other, f64);
  nn::load(other, path);
  CHECK(same_bits(other.mean, model.mean.to(f64)));
}

TEST_CASE("a derived buffer in a file is passed over, whatever it holds") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  Buffered model(1), other(2);
  nn::save(model, path);
  TensorMap tensors = read_safetensors(path).tensors;
  for (const Tensor& table : {model.table, zeros({7, 7}, f64), arange(3)}) {
    tensors["table"] = table;
    write_safetensors(path, tensors);
    nn::load(other, path);
    CHECK(same_bits(other.mean, model.mean));
    CHECK(other.table.at(0) == 2);
    nn::load(other, tensors, "test");
    CHECK(other.table.at(0) == 2);
  }
}

TEST_CASE("a buffer that does not fit is listed, and nothing has changed") {
  Buffered model(1), other(2);
  TensorMap tensors;
  for (const auto& [name, value, derived] : other.buffers())
    if (!derived) tensors[name] = value.clone();
  tensors["weight"] = other.weight.value().clone();
  const TensorMap whole = tensors;
  const Tensor before = model.mean.clone();
  tensors.erase("mean");
  tensors["counts"] = zeros({3});
  CHECK(error_of([&] { nn::load(model, tensors, "test"); }) ==
        "test: the file does not fit the model; 1 missing: mean; 1 of another shape or dtype: counts is f32 [3] in the "
        "file, i32 [3] in the model");
  tensors = whole;
  tensors["wide"] = arange(2);
  CHECK(error_of([&] { nn::load(model, tensors, "test"); }) ==
        "test: the file does not fit the model; 1 of another shape or dtype: wide is i32 [2] in the file, f64 [2] in "
        "the model");
  tensors = whole;
  tensors["again"] = zeros({2, 3});
  CHECK(error_of([&] { nn::load(model, tensors, "test"); }) ==
        "test: mean and again are one parameter in the model, and differ in the file");
  CHECK(same_bits(model.mean, before));
}

TEST_CASE("a weight that GPT-2 stores as [in, out] is turned on its way into the file and back") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  struct OfGpt2 : nn::Module {
    Variable weight = parameter(Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    void visit(nn::Visitor& v) override {
      v("layers.0.linear1.weight", weight);
      v("plain", weight);
    }
    std::string_view family() const override { return "gpt2"; }
  } model, other;
  const std::string turned = "h.0.mlp.c_fc.weight";
  nn::save(model, path);
  const Tensor stored = read_safetensors(path).tensors.at(turned);
  CHECK(stored.shape() == Shape{3, 2});
  CHECK(elements(stored) == std::vector<double>{1, 4, 2, 5, 3, 6});
  const auto loads = [&](const std::string& name, const Tensor& tensor) {
    fill(other.weight.mutable_value(), 0.0);
    nn::load(other, {{name, tensor}, {"plain", model.weight.value()}}, "test");
    CHECK(same_bits(other.weight.value(), model.weight.value()));
  };
  fill(other.weight.mutable_value(), 0.0);
  nn::load(other, path);
  CHECK(same_bits(other.weight.value(), model.weight.value()));
  loads(turned, stored);
  loads(turned, model.weight.value());  // all weights as [out, in], as in nanoGPT's files
  loads("layers.0.linear1.weight", model.weight.value());
  CHECK(error_of([&] {
          nn::load(other, {{turned, stored}, {"plain", zeros({2, 3})}}, "test");
        }) == "test: h.0.mlp.c_fc.weight and plain are one parameter in the model, and differ in the file");
  CHECK(error_of([&] {
          nn::load(other, {{turned, zeros({2, 2})}, {"plain", model.weight.value()}}, "test");
        }) ==
        "test: the file does not fit the model; 1 of another shape or dtype: h.0.mlp.c_fc.weight is f32 [2, 2] in the "
        "file, f32 [3, 2] in the model");
}

TEST_CASE("a square weight of a training's state has the layout that another weight shows; else it is refused") {
  struct OfGpt2 : nn::Module {
    Variable square = parameter(Tensor::of<float>({2, 2}, {1, 2, 3, 4})), wide = parameter(zeros({3, 2}));
    void visit(nn::Visitor& v) override {
      v("layers.0.self_attn.out_proj.weight", square);
      v("layers.0.linear1.weight", wide);
    }
    std::string_view family() const override { return "gpt2"; }
  } model;
  const std::string square = "parameter.h.0.attn.c_proj.weight", wide = "parameter.h.0.mlp.c_fc.weight";
  const Tensor kept = model.square.value().clone();
  const auto loaded = [&](const TensorMap& state, bool partial) {
    nn::load(model, state, "test", {.prefix = "parameter.", .partial = partial});
    return elements(model.square.value());
  };
  CHECK(loaded({{square, kept}, {wide, zeros({3, 2})}}, false) == std::vector<double>{1, 2, 3, 4});
  CHECK(loaded({{square, kept}, {wide, zeros({2, 3})}}, false) == std::vector<double>{1, 3, 2, 4});
  CHECK(error_of([&] {
          loaded({{square, kept}, {wide, zeros({5, 5})}}, true);
        }) ==
        "test: " + square + " is square, and no other weight of the file shows whether its rows are outputs or inputs");
  CHECK(elements(model.square.value()) == std::vector<double>{1, 3, 2, 4});
}

TEST_CASE("a partial load says what was missing and what was left over, and changes nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  Model model(1, 4);
  const Tensor before = model.shared.value().clone(), bias = full({4}, 7.0);
  write_safetensors(path, {{"output.bias", bias}, {"output.weight", zeros({5, 4})}, {"more", zeros({1})}},
                    {{"a", "b"}});
  CHECK(error_of([&] { nn::load(model, path); }).find("does not fit the model") != std::string::npos);
  const nn::Loaded loaded = nn::load(model, path, {.partial = true});
  CHECK(loaded.metadata == Metadata{{"a", "b"}});
  CHECK(loaded.missing == std::vector<std::string>{"embedding.weight", "output.weight"});
  CHECK(loaded.left_over == std::vector<std::string>{"more", "output.weight"});
  CHECK(same_bits(model.bias.value(), bias));
  CHECK(same_bits(model.shared.value(), before));
  CHECK(error_of([&] {
          nn::load(model, {{"more", bias}}, "test", {.partial = true});
        }) ==
        "test: nothing in the file fits the model; 3 missing: embedding.weight, output.weight, output.bias; "
        "1 unexpected: 'more'");
}

TEST_CASE("with a prefix only the names that begin so are read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  Model model(1, 4), other(2, 4);
  TensorMap tensors{{"m.output.bias", zeros({4})}, {"losses", zeros({2})}};
  for (const auto& [name, tensor] : nn::tensors_on_disk(model)) tensors["parameter." + name] = tensor;
  write_safetensors(path, tensors);
  const nn::Loaded loaded = nn::load(other, path, {.prefix = "parameter."});
  CHECK(loaded.missing.empty());
  CHECK(loaded.left_over.empty());
  CHECK(same_bits(other.shared.value(), model.shared.value()));
  CHECK(same_bits(other.bias.value(), model.bias.value()));
  tensors.erase("parameter.output.bias");
  tensors["parameter.more"] = zeros({1});
  write_safetensors(path, tensors);
  CHECK(error_of([&] { nn::load(other, path, {.prefix = "parameter."}); }) ==
        "load " + path +
            ": the file does not fit the model; 1 missing: parameter.output.bias; 1 unexpected: 'parameter.more'");
}

TEST_CASE("a saved model is loaded into the memory of another, tied parameters under both names") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  Model model(1, 4), other(2, 4);
  const Variable copy = other.bias;
  nn::save(model, path, {{std::string(nn::config_key), R"({"width": 4})"}});
  CHECK(read_safetensors(path).tensors.size() == 3);
  CHECK(read_safetensors_metadata(path).at("config") == R"({"width": 4})");
  const u64 version = other.bias.value().version();
  CHECK(nn::load(other, path).metadata == Metadata{{"config", R"({"width": 4})"}});
  CHECK(same_bits(other.shared.value(), model.shared.value()));
  CHECK(same_bits(other.bias.value(), model.bias.value()));
  CHECK(copy.value().shares_memory_with(other.bias.value()));
  CHECK(other.bias.value().version() > version);
}

TEST_CASE("saved_bytes counts a tied parameter as often as it is stored") {
  const TemporaryFolder folder;
  for (const Dtype dtype : {f32, f64}) {
    Model model(1, 5, dtype);
    nn::save(model, folder / "a");
    const FileSummary file = summarise_safetensors(folder / "a");
    CHECK(nn::saved_bytes(model) == file.tensors.back().entry.end);
    CHECK(nn::saved_bytes(model) == static_cast<u64>((2 * 15 + 5) * bytes_of(dtype)));
  }
}

TEST_CASE("what does not fit is listed, and the model is unchanged") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  Model model(1, 4);
  const Tensor before = model.bias.value().clone();
  write_safetensors(path, {{"embedding.weight", zeros({4, 3})},
                           {"output.bias", zeros({4})},
                           {"surplus\n", zeros({1})},
                           {"output.bias2", zeros({1})}});
  CHECK(error_of([&] { nn::load(model, path); }) ==
        "load " + path +
            ": the file does not fit the model; 1 missing: output.weight; 2 unexpected: 'output.bias2', 'surplus\\n'; "
            "1 of another shape or dtype: embedding.weight is f32 [4, 3] in the file, f32 [3, 4] in the model");
  TensorMap many = {
      {"embedding.weight", zeros({3, 4})}, {"output.weight", zeros({3, 4})}, {"output.bias", full({4}, 1, Dtype::i32)}};
  for (int i = 0; i < 7; ++i) many["x" + std::to_string(i)] = zeros({1});
  write_safetensors(path, many);
  CHECK(error_of([&] { nn::load(model, path); }) ==
        "load " + path +
            ": the file does not fit the model; 7 unexpected: 'x0', 'x1', 'x2', 'x3', 'x4', ...; "
            "1 of another shape or dtype: output.bias is i32 [4] in the file, f32 [4] in the model");
  CHECK(same_bits(model.bias.value(), before));
}

TEST_CASE("a damaged file or a missing one leaves the model as it was") {
  const TemporaryFolder folder;
  const std::string path = folder / "a", none = folder / "none";
  Model model(1, 4), other(2, 4);
  const Tensor before = other.bias.value().clone();
  nn::save(model, path);
  flip_bit(path, 8 * (contents(path).size() - 1));
  CHECK(error_of([&] { nn::load(other, path); }) ==
        "read " + path + ": tensor 'output.weight' is damaged: its checksum is wrong");
  CHECK(error_of([&] { nn::load(other, none); }) == "read " + none + ": No such file or directory");
  CHECK(same_bits(other.bias.value(), before));
}

TEST_CASE("a Transformer is built from its file, unless that is far too small for it") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  nn::TransformerConfig config{
      .src_vocab_size = 5, .tgt_vocab_size = 6, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12}};
  Rng rng(3);
  nn::Transformer model(config, rng);
  nn::save(model, path);
  nn::Transformer loaded = nn::load<nn::Transformer>(path, config);
  const Parameters ours = model.parameters(), theirs = loaded.parameters();
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(same_bits(ours[i].value.value(), theirs[i].value.value()));
  for (const nn::Positions positions : {nn::Positions::sinusoidal, nn::Positions::learned}) {
    nn::TransformerConfig long_sequences = config;
    long_sequences.positions = positions;
    long_sequences.max_len = 300'000;
    nn::Transformer longer(long_sequences, rng);
    nn::save(longer, path);
    CHECK(nn::load<nn::Transformer>(path, long_sequences).config.max_len == 300'000);
  }
  nn::save(model, path);
  // Each of these would take more memory than there is.
  using Config = nn::TransformerConfig;
  for (i64& (*size)(Config&) : std::initializer_list<i64& (*)(Config&)>{
           [](Config& c) -> i64& { return c.layer.d_model; }, [](Config& c) -> i64& { return c.layer.d_ff; },
           [](Config& c) -> i64& { return c.num_decoder_layers; }, [](Config& c) -> i64& { return c.max_len; },
           [](Config& c) -> i64& { return c.tgt_vocab_size; }}) {
    Config huge = config;
    size(huge) = i64{1} << 30;
    CHECK(error_of([&] { nn::load<nn::Transformer>(path, huge); }).find("too small for the model it describes") !=
          std::string::npos);
  }
}
