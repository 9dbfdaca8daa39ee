#include "ctxc/Reference/State.h"

using namespace ctxc::reference;

llvm::ArrayRef<double> OpState::row(unsigned index, int64_t token) const {
  const Tensor &tensor = tensors[index];
  return llvm::ArrayRef(tensor.rows).slice(token * tensor.width, tensor.width);
}

void OpState::append(llvm::ArrayRef<int64_t> stepPositions, llvm::ArrayRef<const Matrix *> step) {
  tensors.resize(step.size());
  for (size_t i = 0; i < step.size(); ++i) {
    tensors[i].width = step[i]->cols();
    tensors[i].rows.insert(tensors[i].rows.end(), step[i]->data(),
                           step[i]->data() + step[i]->size());
  }
  positions.insert(positions.end(), stepPositions.begin(), stepPositions.end());
}

void OpState::truncate(int64_t tokens) {
  if (size() <= tokens)
    return;
  positions.resize(tokens);
  for (Tensor &tensor : tensors)
    tensor.rows.resize(tokens * tensor.width);
}

OpState &BlockState::op(unsigned ordinal) {
  while (ops.size() <= ordinal)
    ops.emplace_back();
  return ops[ordinal];
}

void BlockState::truncate(int64_t tokens) {
  for (OpState &op : ops)
    op.truncate(tokens);
}
