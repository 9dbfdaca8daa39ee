// How the ops of xf can be cut.
#include "ctxc/Shard/Split.h"
#include "dialects/Patch/Patch.h"
#include "lib/Shard/Shapes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

namespace {

using Dims = llvm::SmallVector<int, 3>;

/// Index `first` for the first dimension, and so on.
Dims indices(int first, size_t count) {
  Dims dims;
  for (size_t i = 0; i < count; ++i)
    dims.push_back(first + i);
  return dims;
}

Dims none(Value value) { return Dims(shapeOf(value).size(), -1); }

/// Each entry from the entries at the same place: operands of fewer dimensions have the last ones,
/// and one element, or no dimension, is whole.
SplitRule elementwise(Operation *op, SumUse sums, unsigned uncutAtEnd = 0) {
  SplitRule rule;
  rule.sums = sums;
  int rank = shapeOf(op->getResult(0)).size();
  Dims result = indices(0, rank);
  for (unsigned i = 0; i < std::min<unsigned>(uncutAtEnd, rank); ++i)
    result[rank - 1 - i] = -1;
  for (Value operand : op->getOperands()) {
    llvm::ArrayRef<int64_t> shape = shapeOf(operand);
    Dims dims;
    for (int i = 0, own = shape.size(); i < own; ++i) {
      int at = rank - own + i;
      dims.push_back(at >= 0 && shape[i] == shapeOf(op->getResult(0))[at] ? result[at] : -1);
    }
    rule.operands.push_back(std::move(dims));
  }
  rule.results.push_back(std::move(result));
  return rule;
}

template <typename Op> struct RuleOf;
#define CTXC_ELEMENTWISE_OF(DIALECT, OP, SUMS, UNCUT)                                              \
  template <> struct RuleOf<DIALECT::OP> {                                                         \
    static SplitRule get(DIALECT::OP op, int64_t) {                                                \
      return elementwise(op.getOperation(), SumUse::SUMS, UNCUT);                                  \
    }                                                                                              \
  };
#define CTXC_ELEMENTWISE(OP, SUMS, UNCUT) CTXC_ELEMENTWISE_OF(xf, OP, SUMS, UNCUT)
CTXC_ELEMENTWISE(NormalizeOp, Finish, 1)
CTXC_ELEMENTWISE(SoftmaxOp, Finish, 1)
CTXC_ELEMENTWISE(ActivationOp, Finish, 0)
CTXC_ELEMENTWISE(SoftcapOp, Finish, 0)
CTXC_ELEMENTWISE(ClampOp, Finish, 0)
CTXC_ELEMENTWISE(LeakyOp, Finish, 0)
CTXC_ELEMENTWISE(PowerOp, Finish, 0)
CTXC_ELEMENTWISE(RoundOp, Finish, 0)
CTXC_ELEMENTWISE(AddOp, Add, 0)
CTXC_ELEMENTWISE(SubOp, Add, 0)
CTXC_ELEMENTWISE(BiasOp, Add, 0)
CTXC_ELEMENTWISE(MulOp, Scale, 0)
CTXC_ELEMENTWISE(DivOp, Finish, 0)
CTXC_ELEMENTWISE(TimesOp, Scale, 0)
CTXC_ELEMENTWISE(ScaleOp, Scale, 0)
CTXC_ELEMENTWISE(ScanOp, Finish, 0)
CTXC_ELEMENTWISE(DecayingMeanOp, Finish, 0)
#undef CTXC_ELEMENTWISE

/// y_bi = Σ_j W_ij x_bj.
template <> struct RuleOf<xf::LinearOp> {
  static SplitRule get(xf::LinearOp op, int64_t) {
    SplitRule rule;
    int batch = shapeOf(op.getData()).size() - 1, i = batch, j = batch + 1;
    Dims data = indices(0, batch), result = data;
    data.push_back(j);
    result.push_back(i);
    rule.operands = {op.getTransposed() ? Dims{j, i} : Dims{i, j}, data};
    rule.results = {result};
    rule.summed = j;
    return rule;
  }
};

/// A row of a table: the rank that has it gives it, all others give zeros. Columns are not cut: a
/// part of each row takes a page of memory as the whole row does.
template <> struct RuleOf<xf::EmbedOp> {
  static SplitRule get(xf::EmbedOp op, int64_t) {
    SplitRule rule;
    rule.operands = {{0, -1}, {}};
    rule.results = {{-1}};
    rule.summed = 0;
    rule.share = 1.0 / std::max<int64_t>(1, shapeOf(op.getTable())[0]);
    return rule;
  }
};

/// By heads. Key heads are cut with the query heads that read them, or else whole.
template <> struct RuleOf<xf::AttentionOp> {
  static SplitRule get(xf::AttentionOp op, int64_t ranks) {
    SplitRule rule;
    int keyHead = shapeOf(op.getKey())[0] >= ranks ? 0 : -1;
    for (Value operand : op->getOperands()) {
      Dims dims = none(operand);
      bool isKey = operand == op.getKey() || operand == op.getValue();
      if (!dims.empty())
        dims[0] = isKey ? keyHead : 0;
      rule.operands.push_back(std::move(dims));
    }
    rule.results = {{0, -1}};
    return rule;
  }
};

/// By heads, with the state of each. Groups of queries and keys are cut with the heads that read
/// them; where ranks cannot share them evenly, a group that all heads read is whole.
template <> struct RuleOf<xf::LinearAttentionOp> {
  static SplitRule get(xf::LinearAttentionOp op, int64_t ranks) {
    SplitRule rule;
    const int64_t groups = shapeOf(op.getKey())[0];
    const int group = groups % ranks == 0 ? 0 : -1, head = group == 0 || groups == 1 ? 0 : -1;
    for (Value operand : op->getOperands()) {
      Dims dims = none(operand);
      dims[0] = operand == op.getQuery() || operand == op.getKey() ? group : head;
      rule.operands.push_back(std::move(dims));
    }
    rule.results = {{head, -1}};
    return rule;
  }
};

template <> struct RuleOf<xf::ConvOp> {
  static SplitRule get(xf::ConvOp, int64_t) {
    SplitRule rule;
    rule.operands = {{0, -1}, {0}};
    rule.results = {{0}};
    return rule;
  }
};

/// By heads.
template <> struct RuleOf<xf::RotaryOp> {
  static SplitRule get(xf::RotaryOp op, int64_t) {
    SplitRule rule;
    rule.operands = {{0, -1}, none(op.getFrequencies())};
    rule.results = {{0, -1}};
    return rule;
  }
};

/// The dimensions of both shapes fall into groups of the same size; the first of a group is cut as
/// the first of the other side is.
template <> struct RuleOf<xf::ReshapeOp> {
  static SplitRule get(xf::ReshapeOp op, int64_t) {
    llvm::ArrayRef<int64_t> from = shapeOf(op.getData()), to = shapeOf(op.getResult());
    Dims fromDims(from.size(), -1), toDims(to.size(), -1);
    size_t i = 0, j = 0;
    for (int group = 0; i < from.size() && j < to.size(); ++group) {
      fromDims[i] = toDims[j] = group;
      int64_t a = from[i++], b = to[j++];
      while (a != b && (a < b ? i < from.size() : j < to.size()))
        (a < b ? a : b) *= a < b ? from[i++] : to[j++];
    }
    SplitRule rule;
    rule.sums = SumUse::Scale;
    rule.operands = {fromDims};
    rule.results = {toDims};
    return rule;
  }
};

template <> struct RuleOf<xf::TransposeOp> {
  static SplitRule get(xf::TransposeOp op, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Scale;
    rule.operands = {indices(0, shapeOf(op.getData()).size())};
    rule.results = {Dims(op.getOrder().begin(), op.getOrder().end())};
    return rule;
  }
};

/// Whole along its own dimension, since parts go from one rank's place to another's.
template <> struct RuleOf<xf::PermuteOp> {
  static SplitRule get(xf::PermuteOp op, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Scale;
    Dims dims = indices(0, shapeOf(op.getData()).size());
    dims[op.getAlong()] = -1;
    rule.operands = {dims};
    rule.results = {dims};
    return rule;
  }
};

/// Along its own dimension, too: each rank has a part of each slice, so that the rows of what is
/// sliced are dealt out slice by slice.
template <> struct RuleOf<xf::SliceOp> {
  static SplitRule get(xf::SliceOp op, int64_t ranks) {
    SplitRule rule = {};
    rule.sums = SumUse::Scale;
    rule.operands = {indices(0, shapeOf(op.getData()).size())};
    if (op.getFrom() % ranks)
      rule.operands.front()[op.getAlong()] = -1;
    rule.results = rule.operands;
    rule.stretched = op.getAlong();
    rule.operandsFrom = {0};
    rule.resultsFrom = {int64_t(op.getFrom())};
    return rule;
  }
};

template <> struct RuleOf<xf::ConcatOp> {
  static SplitRule get(xf::ConcatOp op, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Add;
    rule.stretched = op.getAlong();
    rule.resultsFrom = {0};
    int64_t from = 0;
    for (Value part : op.getParts()) {
      rule.operands.push_back(indices(0, shapeOf(part).size()));
      rule.operandsFrom.push_back(from);
      from += shapeOf(part)[op.getAlong()];
    }
    rule.results = {indices(0, shapeOf(op.getResult()).size())};
    return rule;
  }
};

template <> struct RuleOf<xf::BroadcastOp> {
  static SplitRule get(xf::BroadcastOp op, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Scale;
    Dims data = indices(0, shapeOf(op.getData()).size());
    rule.results = {data};
    data[0] = -1;
    rule.operands = {data};
    return rule;
  }
};

/// The entries of all of the first dimension are chosen from; the others are cut.
template <> struct RuleOf<xf::GatherOp> {
  static SplitRule get(xf::GatherOp op, int64_t) {
    SplitRule rule;
    Dims data = indices(0, shapeOf(op.getData()).size());
    data[0] = -1;
    rule.operands = {data, {-1}};
    rule.results = {data};
    return rule;
  }
};

/// y_si = Σ_j W_eij x_j, for one selection with its data or for several. Every rank has a part of
/// each expert, since the data choose which are active.
template <typename Op> struct ExpertRule {
  static SplitRule get(Op op, int64_t) {
    unsigned runs = op->getNumResults();
    Value selected = op->getOperand(1), data = op->getOperand(1 + runs);
    SplitRule rule;
    rule.operands = {op.getTransposed() ? Dims{-1, 2, 1} : Dims{-1, 1, 2}};
    rule.operands.append(runs, {-1});
    rule.operands.append(runs, shapeOf(data).size() == 2 ? Dims{-1, 2} : Dims{2});
    rule.results.assign(runs, {-1, 1});
    rule.summed = 2;
    rule.share = double(shapeOf(selected)[0]) / std::max<int64_t>(1, shapeOf(op.getBank())[0]);
    return rule;
  }
};
template <> struct RuleOf<xf::ExpertLinearOp> : ExpertRule<xf::ExpertLinearOp> {};
template <> struct RuleOf<patch::ExpertLinearsOp> : ExpertRule<patch::ExpertLinearsOp> {};

/// y_i = Σ_s w_s y_si.
template <> struct RuleOf<xf::CombineOp> {
  static SplitRule get(xf::CombineOp op, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Scale;
    rule.operands = {{0}, indices(0, shapeOf(op.getData()).size())};
    rule.results = {indices(1, shapeOf(op.getResult()).size())};
    rule.summed = 0;
    return rule;
  }
};

template <> struct RuleOf<xf::OuterOp> {
  static SplitRule get(xf::OuterOp, int64_t) {
    SplitRule rule;
    rule.sums = SumUse::Scale;
    rule.operands = {{0}, {1}};
    rule.results = {{0, 1}};
    return rule;
  }
};

/// As for the linears that it stands for.
template <> struct RuleOf<patch::LinearsOp> {
  static SplitRule get(patch::LinearsOp op, int64_t) {
    int batch = shapeOf(op.getData().front()).size() - 1, i = batch, j = batch + 1;
    Dims data = indices(0, batch), result = data;
    data.push_back(j);
    result.push_back(i);
    SplitRule rule;
    rule.operands.assign(1 + op.getData().size(), data);
    rule.operands.front() = op.getTransposed() ? Dims{j, i} : Dims{i, j};
    rule.results.assign(op.getData().size(), result);
    rule.summed = j;
    return rule;
  }
};

/// Each rank has the rows of u for its rows of the matrix. The data are whole, since v is their
/// quotient by a norm.
template <> struct RuleOf<patch::Rank1Op> {
  static SplitRule get(patch::Rank1Op op, int64_t) {
    SplitRule rule;
    Dims target = indices(0, shapeOf(op.getTarget()).size());
    rule.operands = {target, target, none(op.getData())};
    rule.results = {target, none(op.getData())};
    return rule;
  }
};

/// y_i + u_i Σ_j v_j z_j.
template <> struct RuleOf<patch::ApplyRank1Op> {
  static SplitRule get(patch::ApplyRank1Op op, int64_t) {
    int batch = shapeOf(op.getBase()).size() - 1, i = batch, j = batch + 1;
    Dims base = indices(0, batch), data = base;
    base.push_back(i);
    data.push_back(j);
    SplitRule rule;
    rule.operands = {base, base, data, data};
    rule.results = {base};
    rule.summed = j;
    rule.addend = 0;
    return rule;
  }
};

/// The same for each slot.
template <> struct RuleOf<patch::ApplyExpertRank1Op> {
  static SplitRule get(patch::ApplyExpertRank1Op op, int64_t) {
    SplitRule rule;
    Dims data = none(op.getData());
    data.back() = 1;
    rule.operands = {{-1, 0}, {-1, 0}, {-1, 1}, {-1}, data, {-1}};
    rule.results = {{-1, 0}};
    rule.summed = 1;
    rule.addend = 0;
    return rule;
  }
};

CTXC_ELEMENTWISE_OF(patch, ApplyDeltaOp, Finish, 0)
#undef CTXC_ELEMENTWISE_OF

/// Whether the block stores a result after all others.
bool isStoredLast(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    auto later = llvm::make_range(std::next(user->getIterator()), user->getBlock()->end());
    return llvm::isa<patch::StoreOp>(user) &&
           llvm::none_of(later, [](Operation &each) { return llvm::isa<patch::StoreOp>(each); });
  });
}

template <typename Op> struct Model : SplitOpInterface::ExternalModel<Model<Op>, Op> {
  SplitRule getSplitRule(Operation *op, int64_t ranks) const {
    if (!isStoredLast(op))
      return RuleOf<Op>::get(llvm::cast<Op>(op), ranks);
    // What is stored last predicts the replay error, from all of the op's operands.
    SplitRule whole;
    for (Value operand : op->getOperands())
      whole.operands.push_back(none(operand));
    for (Value result : op->getResults())
      whole.results.push_back(none(result));
    return whole;
  }
};

template <typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

} // namespace

void shard::registerSplitModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, xf::XFDialect *) {
    attach<xf::NormalizeOp, xf::SoftmaxOp, xf::ActivationOp, xf::SoftcapOp, xf::ClampOp,
           xf::LeakyOp, xf::PowerOp, xf::RoundOp, xf::AddOp, xf::SubOp, xf::BiasOp, xf::MulOp,
           xf::DivOp, xf::TimesOp, xf::ScaleOp, xf::ScanOp, xf::DecayingMeanOp, xf::LinearOp,
           xf::EmbedOp, xf::AttentionOp, xf::LinearAttentionOp, xf::ConvOp, xf::RotaryOp,
           xf::ReshapeOp, xf::TransposeOp, xf::PermuteOp, xf::SliceOp, xf::ConcatOp,
           xf::BroadcastOp, xf::GatherOp, xf::ExpertLinearOp, xf::CombineOp, xf::OuterOp>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, patch::PatchDialect *) {
    attach<patch::LinearsOp, patch::ExpertLinearsOp, patch::Rank1Op, patch::ApplyRank1Op,
           patch::ApplyExpertRank1Op, patch::ApplyDeltaOp>(*context);
  });
}
