#include "Steps.h"
#include <cmath>

using namespace ctxc::pt2;

Steps Steps::around(int64_t edge, llvm::function_ref<double(int64_t)> at) {
  Steps steps(at(edge - 1));
  steps.set(edge, at(edge));
  steps.set(edge + 1, at(edge + 1));
  return steps;
}

Steps Steps::merged(const Steps &a, const Steps &b,
                    llvm::function_ref<double(double, double)> join) {
  Steps steps;
  for (const Steps *one : {&a, &b})
    for (auto [place, value] : one->from)
      steps.from[place] = join(a.at(place), b.at(place));
  return steps;
}

std::optional<Entry> ctxc::pt2::join(const Entry &a, const Entry &b,
                                     llvm::function_ref<double(double, double)> f, Form form) {
  auto *x = std::get_if<Line>(&a), *y = std::get_if<Line>(&b);
  if (x && y && x->isNumber() && y->isNumber())
    return Line{0, 0, f(x->number, y->number)};
  if (x && y) {
    int64_t sign = form == Form::Difference ? -1 : 1;
    if (form == Form::Sum || form == Form::Difference)
      return Line{x->row + sign * y->row, x->column + sign * y->column, f(x->number, y->number)};
    int64_t row = x->row - y->row, column = x->column - y->column;
    double number = x->number - y->number;
    if (form != Form::Comparison || row != -column || std::abs(row) > 1)
      return std::nullopt;
    if (row == 0)
      return Line{0, 0, f(number, 0)};
    if (number != std::floor(number) || std::abs(number) > 1e15)
      return std::nullopt;
    return Steps::around(-row * int64_t(number),
                         [&](int64_t d) { return f(double(row * d) + number, 0); });
  }
  if ((x && !x->isNumber()) || (y && !y->isNumber()))
    return std::nullopt;
  return Steps::merged(x ? Steps(x->number) : std::get<Steps>(a),
                       y ? Steps(y->number) : std::get<Steps>(b), f);
}

std::optional<Sight> ctxc::pt2::sightOf(const Steps &seen) {
  bool all = true;
  int64_t window = 0;
  for (auto [place, value] : seen.parts())
    all &= value == 1;
  if (all)
    return Sight{true, 0};
  for (auto [place, value] : seen.parts()) {
    if (place > 0 && seen.at(place) == 0 && !window)
      window = place;
    if (place > 0 && value == 1 && window)
      return std::nullopt; // again, behind a gap
    if (place < 0 && value == 1 && seen.at(place) == 1)
      return std::nullopt; // what comes after
  }
  if (seen.at(-1) != 0 || seen.at(0) != 1)
    return std::nullopt;
  return Sight{false, window};
}
