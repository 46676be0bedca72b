// Chapter 5. Muon: a matrix moves by the orthogonal matrix that is nearest to the sum of its gradients.
//
// A step of a matrix W [m, n] with the gradient G:
//   M <- momentum M + G                                   the sum of gradients, older ones counting less
//   O  = nearest orthogonal matrix to G + momentum M      ("Nesterov": the newest gradient counts once more)
//   W <- W - learning_rate (0.2 sqrt(max(m, n)) O + weight_decay W)
// Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks" (kellerjordan.github.io/posts/muon).
// An [m, n] matrix is called orthogonal here if its rows or its columns, whichever are fewer, have length 1 and are
// perpendicular to one another. A gradient of a matrix is usually a sum of a few directions, of which one or two are
// much longer than the others. With the singular value decomposition Z = U S V^T, the nearest orthogonal matrix to Z is
// U V^T: all directions become equally long, and the weak ones are learned too. Adam scales each number by itself, and
// does not see directions.
//
// The decomposition would be slow. Five steps of an iteration (Newton and Schulz) come close with products alone. With
// X = Z / |Z|, each replaces every singular value s of X by a s + b s^3 + c s^5:
//   X <- (a I + b A + c A A) X,   A = X X^T,   (a, b, c) = (3.4445, -4.7750, 2.0315)
// These coefficients make small s grow fastest. They bring s to between about 0.7 and 1.2, not to 1. That does no harm.
//
// Entries of an orthogonal [m, n] have root mean square 1 / sqrt(max(m, n)), so those of the step have 0.2. That is
// about what Adam's steps have, so both take the same learning rate (Liu et al. 2025, "Muon is scalable for LLM
// training", arXiv 2502.16982, section 2.2). Everything except matrices inside layers moves by AdamW: rows of an
// embedding are looked up one by one, and weights of norms and biases are vectors. A packed matrix, such as that of
// queries, keys and values, counts as one.
#pragma once

#include "optim/adam.h"

namespace orrery::optim {

struct MuonOptions {
  double momentum = 0.95;                         ///< in [0, 1)
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< AdamW's, for all other parameters
  double weight_decay = 0.01;
};

/// Whether Muon moves this parameter by orthogonal matrices: it has two axes, and its name says that it is in a
/// numbered layer, as in "layers.0.linear1.weight". The names of embeddings and heads must therefore have no number as
/// a part.
bool is_hidden_matrix(const NamedParameter& p);

/// The nearest orthogonal matrix to `m` [rows, columns], f32 or f64, by five steps of the iteration above: all its
/// singular values that are not tiny become about 1. Those of a matrix whose norm is far below `least_norm` stay below
/// 1, and a matrix of zeros stays as it is. Error: anything but a matrix.
Tensor nearest_orthogonal(const Tensor& m, double least_norm = 1e-7);

class Muon final : public Optimizer {
 public:
  /// Errors: those of Optimizer and AdamW; a momentum outside [0, 1); no hidden matrix among the parameters.
  explicit Muon(const ParameterGroups& parameters, const MuonOptions& options = {});
  /// "momentum.NAME" of each hidden matrix; "m.NAME", "v.NAME" and "step.NAME" of the others, as in AdamW.
  std::map<std::string, Tensor> state() const override;

 private:
  Ready update(size_t i, const Update& u) override;

  double momentum_factor_;
  AdamOptions adam_;
  std::vector<Tensor> momentum_;  // of each parameter; not defined for those that AdamW moves
  std::vector<Moments> moments_;  // of each parameter; not defined for hidden matrices
};

}  // namespace orrery::optim
