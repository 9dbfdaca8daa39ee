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

/// a + sign b, whose numbers are `number` together.
static std::optional<Entry> sum(const Line &a, const Line &b, double sign, double number) {
  if ((a.rounded && (b.rounded || b.column)) || (b.rounded && a.column))
    return std::nullopt;
  Line line{a.row + sign * b.row, a.column + sign * b.column, number, a.isShifted || b.isShifted,
            a.rounded + sign * b.rounded};
  if (line.rounded)
    line.column = a.rounded ? a.column : b.column;
  return line;
}

static Entry product(Line line, double factor) {
  if (factor == 0)
    return Line();
  line.row *= factor;
  line.number *= factor;
  (line.rounded ? line.rounded : line.column) *= factor;
  return line;
}

/// Of two lines that differ by a distance.
static std::optional<Entry> compared(const Line &a, const Line &b,
                                     llvm::function_ref<double(double, double)> f) {
  double row = a.row - b.row, column = a.column - b.column, number = a.number - b.number;
  if (a.isShifted || b.isShifted || a.rounded || b.rounded || row != -column)
    return std::nullopt;
  if (row == 0)
    return Line{0, 0, f(number, 0)};
  if (std::abs(row) != 1 || number != std::floor(number) || std::abs(number) > 1e15)
    return std::nullopt;
  return Steps::around(-int64_t(row) * int64_t(number),
                       [&](int64_t d) { return f(row * double(d) + number, 0); });
}

std::optional<Entry> ctxc::pt2::join(const Entry &a, const Entry &b,
                                     llvm::function_ref<double(double, double)> f, Form form) {
  auto *x = std::get_if<Line>(&a), *y = std::get_if<Line>(&b);
  if (x && y && x->isNumber() && y->isNumber())
    return Line{0, 0, f(x->number, y->number)};
  if (x && y && (form == Form::Sum || form == Form::Difference))
    return sum(*x, *y, form == Form::Sum ? 1 : -1, f(x->number, y->number));
  if (x && y && form == Form::Product && (x->isNumber() || y->isNumber()))
    return x->isNumber() ? product(*y, x->number) : product(*x, y->number);
  if (x && y && form == Form::Quotient && y->isNumber() && y->number != 0)
    return product(*x, 1 / y->number);
  if (x && y)
    return form == Form::Comparison ? compared(*x, *y, f) : std::nullopt;
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
