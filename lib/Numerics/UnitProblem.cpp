#include "UnitProblem.h"
#include "Lanes.h"

using namespace ctxc;
using namespace ctxc::detail;

void detail::solve(Update update, const UnitProblem &p) {
  Lanes lanes{p.size};
  unit_solvers::UnitVectors<Lanes> vectors{
      p.a,
      p.M,
      p.direction,
      p.x,
      {p.work, p.work + p.size, p.work + 2 * p.size, p.work + 3 * p.size}};
  unit_solvers::solveUnitProblem(update, lanes, vectors);
}

double detail::sum(const double *values, int64_t size) {
  return Lanes{size}.reduceOne<Lanes::Sum>([=](int64_t k) { return values[k]; });
}
