#include "ReachableSet.h"
#include "Random.h"
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

Vector ctxc::joined(const Activations &outputs) {
  int64_t size = 0, at = 0;
  for (const Matrix &m : outputs)
    size += m.size();
  Vector all(size);
  for (const Matrix &m : outputs) {
    std::copy_n(m.data(), m.size(), all.data() + at); // row by row
    at += m.size();
  }
  return all;
}

//===----------------------------------------------------------------------===//
// The walk back from the outputs
//===----------------------------------------------------------------------===//

namespace {

int64_t sizeOf(Value v) { return cast<RankedTensorType>(v.getType()).getNumElements(); }

class Tracer {
public:
  Tracer(xf::BlockOp block, const Moved &moved, const ZeroRange &facts, const Sample &sample,
         const RunSource &from)
      : block(block), moved(moved), facts(facts), sample(sample), from(from),
        position(sample.contextSize()),
        environment{from.weights, from.layer, token, position, {{std::nullopt, &state}}},
        base(environment) {
    environment.parameters = from.parameters;
  }

  llvm::Expected<ConvexSum> trace();
  ArrayRef<Value> getEnds() const { return ends; }

private:
  void add(Value value, const Map &map);
  llvm::Error visit(Operation *op, const Map &map);
  llvm::Error pass(const Map &map, const Eigen::MatrixXd &J, ArrayRef<Value> variables);
  llvm::Expected<std::optional<Eigen::MatrixXd>> jacobian(Operation *op, ArrayRef<Value> variables);
  llvm::Expected<Matrix> probe(Operation *op, ArrayRef<Value> variables, const Matrix &rows);
  bool isFreeAssignment(Operation *op) const;
  ConvexSet imageOf(Operation *op);
  void end(Value value, const Map &map, ConvexSet set);
  void endIn(Value value, const Map &map, const Vector &from, const Map &directions, ConvexSet set);

  xf::BlockOp block;
  const Moved &moved;
  const ZeroRange &facts;
  const Sample &sample;
  RunSource from;
  int64_t token = 0, position;
  BlockState state;
  Environment environment;
  Evaluation base; ///< the reduced run
  llvm::DenseMap<Value, Map> maps;
  llvm::StringMap<Value> parameters;
  ConvexSum sum;
  SmallVector<Value> ends; ///< of each term
};

} // namespace

/// The block's first op that names the parameter.
static Value firstOf(xf::ParamOp param) {
  for (xf::ParamOp other : param->getBlock()->getOps<xf::ParamOp>())
    if (other.getName() == param.getName() && other.getType() == param.getType())
      return other.getResult();
  return param.getResult();
}

void Tracer::add(Value value, const Map &map) {
  // One parameter may be read in several places.
  if (auto param = value.getDefiningOp<xf::ParamOp>())
    value = parameters.try_emplace(param.getName(), firstOf(param)).first->second;
  auto [entry, isNew] = maps.try_emplace(value, map);
  if (!isNew)
    entry->second = Map(entry->second + map);
}

/// Ends the walk at `value`, which patches move within `set`.
void Tracer::end(Value value, const Map &map, ConvexSet set) {
  sum.constant -= map * Vector(base.rows(value).row(0).transpose());
  sum.terms.push_back({map, std::move(set)});
  ends.push_back(value);
}

/// Ends the walk at `value`, which is `from` and a combination of `directions`, in proportions of
/// `set`, for all patches.
void Tracer::endIn(Value value, const Map &map, const Vector &from, const Map &directions,
                   ConvexSet set) {
  sum.constant += map * Vector(from - base.rows(value).row(0).transpose());
  sum.terms.push_back({Map(map * directions), std::move(set)});
  ends.push_back(value);
}

/// The directions in which the entries of `n` numbers change and their sum does not.
static Map withoutSum(int64_t n) {
  Map directions(n, n - 1);
  for (int64_t i = 0; i + 1 < n; ++i) {
    directions.insert(i, i) = 1;
    directions.insert(i + 1, i) = -1;
  }
  return directions;
}

/// Numbers of which the first is not negative.
static ConvexSet halfLine(int64_t n) {
  ConvexSet set = ConvexSet::free(n);
  set.low[0] = 0;
  return set;
}

/// Orthonormal directions, of which the first is that of `u`.
static Map withFirst(const Vector &u) {
  Eigen::HouseholderQR<Eigen::MatrixXd> qr{Eigen::MatrixXd(u)};
  Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(u.size(), u.size());
  if (q.col(0).dot(u) < 0)
    q.col(0) = -q.col(0);
  return q.sparseView();
}

bool ctxc::isHalfSpace(const Moved &moved, Value value) {
  Operation *op = value.getDefiningOp();
  Value u = xf::findGramVector(op);
  auto outer = dyn_cast_or_null<xf::LinearOp>(op);
  return u && !moved.moves(u) && moved.moves(outer.getData()) &&
         moved.moves(outer, outer.getWeight());
}

/// The results of `op`, one for each row of `rows`, which has the values of `variables` side by
/// side; everything else is as in the reduced run.
llvm::Expected<Matrix> Tracer::probe(Operation *op, ArrayRef<Value> variables, const Matrix &rows) {
  std::vector<int64_t> tokens(rows.rows(), 0), positions(rows.rows(), position);
  Environment own{from.weights, from.layer, tokens, positions};
  Evaluation evaluation(own);
  for (Value operand : op->getOperands()) {
    auto at = llvm::find(variables, operand);
    if (at == variables.end()) {
      if (base.isShared(operand))
        evaluation.set(operand, base.stored(operand, 0));
      else
        evaluation.set(operand, Matrix(base.rows(operand).replicate(rows.rows(), 1)));
      continue;
    }
    int64_t first = 0;
    for (Value before : ArrayRef(variables.begin(), at))
      first += sizeOf(before);
    evaluation.set(operand, Matrix(rows.middleCols(first, sizeOf(operand))));
  }
  auto meaning = dyn_cast<ReferenceOpInterface>(op);
  if (!meaning)
    return errorAt(op, "has no meaning in the reference");
  if (llvm::Error error = meaning.evaluate(evaluation))
    return std::move(error);
  return Matrix(evaluation.rows(op->getResult(0)));
}

/// J, where the result is affine in the variables together: result = const + J x.
llvm::Expected<std::optional<Eigen::MatrixXd>> Tracer::jacobian(Operation *op,
                                                                ArrayRef<Value> variables) {
  int64_t n = 0;
  for (Value v : variables)
    n += sizeOf(v);
  if (n > 4096 || isa<xf::ContextualOpInterface>(op) || op->getNumResults() != 1)
    return std::nullopt;
  // Both signs of each: a relu of one entry is affine on either side of zero.
  // Beside a large constant a small column would be rounded away.
  const double large = 0x1p100;
  Random random(n);
  Matrix rows = Matrix::Zero(n + 5, n);
  rows.topRows(n).diagonal().setConstant(large);
  rows.row(n + 1) = random.normal(1, n);
  rows.row(n + 2) = -rows.row(n + 1);
  rows.row(n + 3) = 100 * random.normal(1, n);
  rows.row(n + 4) = -rows.row(n + 3);
  auto results = probe(op, variables, rows);
  if (!results)
    return results.takeError();
  if (!results->allFinite())
    return std::nullopt;
  Eigen::RowVectorXd constant = results->row(n);
  Eigen::MatrixXd J = (results->topRows(n).rowwise() - constant).transpose() / large;
  for (int64_t i = n + 1; i < rows.rows(); ++i) {
    Eigen::RowVectorXd wanted = constant + (J * rows.row(i).transpose()).transpose();
    double size = 1 + wanted.cwiseAbs().maxCoeff() + rows.row(i).cwiseAbs().maxCoeff();
    if ((results->row(i) - wanted).cwiseAbs().maxCoeff() > 1e-9 * size)
      return std::nullopt;
  }
  return J;
}

/// Whether `op` is a patchable matrix, read here alone, times one known nonzero vector: its result
/// is then free.
bool Tracer::isFreeAssignment(Operation *op) const {
  auto site = dyn_cast<xf::AssignableOpInterface>(op);
  if (!site || site.getChangeForm() != xf::ChangeForm::Rank1)
    return false;
  Value data = site.getDataOperand().get();
  auto param = site.getParameterOperand().get().getDefiningOp<xf::ParamOp>();
  for (xf::ParamOp other : op->getBlock()->getOps<xf::ParamOp>())
    if (param && other.getName() == param.getName() &&
        llvm::any_of(other->getUsers(), [&](Operation *user) {
          return user != op && moved.moves(user, other.getResult());
        }))
      return false;
  return moved.moves(op, site.getParameterOperand().get()) && !moved.moves(data) &&
         sizeOf(data) == cast<RankedTensorType>(data.getType()).getShape().back() &&
         !base.rows(data).isZero(0);
}

/// Orthonormal directions to which all results of `op` are orthogonal, whatever it reads.
static Eigen::MatrixXd flatDirections(const Matrix &images) {
  int64_t n = images.cols();
  Eigen::MatrixXd moments = images.transpose() * images / double(images.rows());
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(moments);
  int64_t flat = 0;
  while (flat < n && solver.eigenvalues()[flat] <= 1e-20 * solver.eigenvalues()[n - 1])
    ++flat;
  return solver.eigenvectors().leftCols(flat);
}

/// The closed convex hull of what `op` can give, by its facts.
ConvexSet Tracer::imageOf(Operation *op) {
  Value result = op->getResult(0);
  int64_t n = sizeOf(result);
  const xf::Facts &f = facts.facts(result);
  ConvexSet set = ConvexSet::free(n);
  if (f.length) {
    set.kind = ConvexSet::Ball;
    set.radius = *f.length;
    set.normals.resize(n, 0);
    // A layer norm's values sum to zero: a ball in a hyperplane, which evaluation finds.
    SmallVector<Value> variables;
    int64_t width = 0;
    for (Value operand : op->getOperands())
      if (moved.moves(op, operand) && !llvm::is_contained(variables, operand)) {
        variables.push_back(operand);
        width += sizeOf(operand);
      }
    if (width <= 1024) {
      Random random(width);
      if (auto images = probe(op, variables, random.normal(2 * n + 8, width)))
        set.normals = flatDirections(*images);
      else
        llvm::consumeError(images.takeError());
    }
    return set;
  }
  if (f.bound) {
    set.low.setConstant(-*f.bound);
    set.high.setConstant(*f.bound);
  }
  if (f.floor)
    set.low = set.low.cwiseMax(*f.floor);
  if (f.ceiling)
    set.high = set.high.cwiseMin(*f.ceiling);
  return set;
}

/// Passes `map`, from the result of `op` to the outputs, on to the op's operands, or ends there.
/// Whether more is known of the image of `op` than of those of the values that it adds: x + x² has
/// a least value, and x has none.
static bool saysMore(const ZeroRange &facts, Operation *op, ArrayRef<Value> variables) {
  auto isLimited = [&](Value value) {
    const xf::Facts &f = facts.facts(value);
    return f.bound || f.floor || f.ceiling || f.length;
  };
  return variables.size() > 1 && isLimited(op->getResult(0)) && !llvm::all_of(variables, isLimited);
}

llvm::Error Tracer::visit(Operation *op, const Map &map) {
  Value result = op->getResult(0);
  if (isa<xf::ParamOp>(op) || isFreeAssignment(op)) {
    end(result, map, ConvexSet::free(sizeOf(result)));
    return llvm::Error::success();
  }
  SmallVector<Value> variables;
  for (Value operand : op->getOperands())
    if (moved.moves(op, operand) && !llvm::is_contained(variables, operand))
      variables.push_back(operand);
  llvm::Expected<std::optional<Eigen::MatrixXd>> J = std::nullopt;
  if (!saysMore(facts, op, variables))
    J = jacobian(op, variables);
  if (!J)
    return J.takeError();
  if (*J)
    return pass(map, **J, variables);
  int64_t n = sizeOf(result);
  if (std::optional<double> total = facts.facts(result).total; total && !facts.facts(result).bound)
    endIn(result, map, Vector::Constant(n, *total / n), withoutSum(n), ConvexSet::free(n - 1));
  else if (Value u = xf::findGramVector(op); isHalfSpace(moved, result) && !base.rows(u).isZero(0))
    endIn(result, map, Vector::Zero(n), withFirst(base.rows(u).row(0).transpose()), halfLine(n));
  else
    end(result, map, imageOf(op));
  return llvm::Error::success();
}

/// Passes `map` on to the variables, in which the result is affine with the derivative J.
llvm::Error Tracer::pass(const Map &map, const Eigen::MatrixXd &J, ArrayRef<Value> variables) {
  int64_t first = 0;
  for (Value v : variables) {
    Map part = J.middleCols(first, sizeOf(v)).sparseView();
    Map through = (map * part).pruned();
    add(v, through);
    first += sizeOf(v);
  }
  return llvm::Error::success();
}

llvm::Expected<ConvexSum> Tracer::trace() {
  auto kept = keptState(block, sample, from);
  if (!kept)
    return kept.takeError();
  state = std::move(*kept);
  auto outputs = evaluateBlock(block, sample.reduced, base);
  if (!outputs)
    return outputs.takeError();
  sum.constant = joined(*outputs);

  int64_t at = 0, total = sum.constant.size();
  for (Value output : block.getBody().front().getTerminator()->getOperands()) {
    int64_t n = sizeOf(output);
    if (moved.moves(output)) {
      Map map(total, n);
      for (int64_t i = 0; i < n; ++i)
        map.insert(at + i, i) = 1;
      add(output, map);
    }
    at += n;
  }
  for (Operation &op : llvm::reverse(block.getBody().front().without_terminator())) {
    bool isSimple = op.getNumResults() == 1;
    for (Value result : op.getResults()) {
      auto it = maps.find(result);
      if (it == maps.end())
        continue;
      Map map = std::move(it->second);
      if (!isSimple)
        end(result, map, ConvexSet::free(sizeOf(result)));
      else if (llvm::Error error = visit(&op, map))
        return std::move(error);
    }
  }
  return std::move(sum);
}

llvm::Expected<ConvexSum> ctxc::reachableOutputs(xf::BlockOp block, const Moved &moved,
                                                 const ZeroRange &facts, const Sample &sample,
                                                 const RunSource &from,
                                                 llvm::SmallVectorImpl<Value> *ends) {
  Tracer tracer(block, moved, facts, sample, from);
  auto sum = tracer.trace();
  if (ends)
    ends->assign(tracer.getEnds().begin(), tracer.getEnds().end());
  return sum;
}
