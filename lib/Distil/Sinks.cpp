#include "Sinks.h"
#include <cmath>

using namespace ctxc;

std::optional<int64_t> ctxc::tokenBeforeItself(llvm::ArrayRef<int64_t> prefix,
                                               llvm::ArrayRef<TextSequence> texts) {
  auto begins = [&](const TextSequence &text) {
    return !text.tokens.empty() && text.tokens.front() == prefix.front();
  };
  if (prefix.empty() || !llvm::all_equal(prefix) || llvm::none_of(texts, begins))
    return std::nullopt;
  return prefix.front();
}

std::vector<TextSequence> FittedRows::firstTokens(const Front &front,
                                                  llvm::ArrayRef<TextSequence> texts) {
  std::vector<TextSequence> heads;
  const int64_t room = front.pinned ? 0 : mostSinks - front.end();
  for (const TextSequence &text : texts)
    if (room > 0)
      heads.push_back({llvm::ArrayRef(text.tokens).take_front(room).vec(), 0});
  return heads;
}

void FittedRows::add(const Passage &teacher, const Passage &student, const FittedSequences &some) {
  if (some.weight <= 0)
    return;
  const int64_t all = student.firstRow(some.learned + some.count) - student.firstRow(some.learned);
  for (size_t i = 0; i < some.count; ++i) {
    const int64_t from = teacher.firstRow(some.taught + i), to = student.firstRow(some.learned + i);
    const int64_t length = student.firstRow(some.learned + i + 1) - to;
    for (int64_t at = 0; at < length; ++at) {
      if (const int64_t position = some.position + at; position < mostSinks)
        first.push_back({int64_t(size()), from + at, teacher.firstRow(some.plain + i) + at,
                         position == 0 && length > 1});
      taught.push_back(from + at);
      learned.push_back(to + at);
      weights.push_back(some.weight / all);
    }
  }
}

/// The length of each row.
static std::vector<double> lengthsOf(const std::vector<float> &values, int64_t rows) {
  const int64_t width = values.size() / rows;
  std::vector<double> lengths;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (float x : llvm::ArrayRef(values).slice(row * width, width))
      sum += double(x) * x;
    lengths.push_back(std::sqrt(sum));
  }
  return lengths;
}

void FittedRows::findSinks(const Passage &teacher, llvm::ArrayRef<mlir::Value> goals) {
  constexpr double longer = 3;
  std::vector<bool> found(first.size());
  for (mlir::Value goal : first.empty() ? llvm::ArrayRef<mlir::Value>() : goals) {
    const std::vector<double> lengths = lengthsOf(teacher.values(goal), teacher.rows());
    std::vector<double> usual;
    for (int64_t row : taught)
      usual.push_back(lengths[row]);
    auto middle = usual.begin() + usual.size() / 2;
    std::nth_element(usual.begin(), middle, usual.end());
    for (auto [i, each] : llvm::enumerate(first))
      found[i] = found[i] || each.isSink || lengths[each.without] > longer * *middle;
  }
  sinks.clear();
  for (auto [i, each] : llvm::enumerate(first)) {
    taught[each.row] = found[i] ? each.without : each.with;
    if (found[i])
      sinks.push_back(each.row);
  }
}
