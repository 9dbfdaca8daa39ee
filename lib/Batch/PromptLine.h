//===- PromptLine.h - what a line of the file asks for ----------------------===//
#ifndef CTXC_LIB_BATCH_PROMPTLINE_H
#define CTXC_LIB_BATCH_PROMPTLINE_H

#include "Lines.h"
#include "ctxc/Batch/Batch.h"
#include "ctxc/Program/Input.h"
#include <optional>

namespace ctxc::batch {

struct PromptLine {
  int64_t number = 0;
  std::optional<std::string> id;
  std::vector<Input> tokens;
  std::vector<int64_t> kept, positions; ///< ascending
  BatchMake make;
  std::string error; ///< why there is nothing to do; the rest then does not count
};

/// Reads a line; what `request` says holds for what the line does not say. Whether the model can
/// run the tokens is not looked at.
PromptLine readPromptLine(const Line &line, const BatchRequest &request, Model &model);

} // namespace ctxc::batch

#endif // CTXC_LIB_BATCH_PROMPTLINE_H
