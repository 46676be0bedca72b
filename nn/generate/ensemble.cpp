// Chapter 7. An ensemble: the mean of probabilities, and the same choice for every model.
#include "nn/generate/ensemble.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/softmax.h"
#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

class Ensemble : public StepwiseDecoder {
 public:
  explicit Ensemble(std::vector<std::unique_ptr<StepwiseDecoder>> decoders) : decoders_(std::move(decoders)) {
    check(!decoders_.empty(), "ensemble", "needs a model");
  }

  Tensor next_logits(const Tensor& tokens) override {
    const NoGradient nothing_recorded;
    const auto probabilities = [&](StepwiseDecoder& decoder) {
      return softmax(constant(decoder.next_logits(tokens))).value();
    };
    Tensor sum = probabilities(*decoders_[0]);
    for (size_t m = 1; m < decoders_.size(); ++m) {
      const Tensor next = probabilities(*decoders_[m]);
      check(next.shape() == sum.shape(), "ensemble", "model 1 has probabilities ", sum.shape(), ", model ", m + 1, ' ',
            next.shape());
      sum = sum + next;
    }
    return log(constant(sum * (1.0 / static_cast<double>(decoders_.size())))).value();
  }

  void choose(std::span<const i64> chosen) override {
    for (const auto& decoder : decoders_) decoder->choose(chosen);
  }

 private:
  std::vector<std::unique_ptr<StepwiseDecoder>> decoders_;
};

}  // namespace

std::unique_ptr<StepwiseDecoder> ensemble_of(std::vector<std::unique_ptr<StepwiseDecoder>> decoders) {
  return std::make_unique<Ensemble>(std::move(decoders));
}

}  // namespace orrery::nn
