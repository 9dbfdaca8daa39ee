// The transforms as passes.
#include "ctxc/Transforms/Passes.h"
#include "BuildFromPlans.h"
#include "FreeName.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "ctxc/Transforms/DropOutputs.h"
#include "ctxc/Transforms/FoldLayers.h"
#include "ctxc/Transforms/PermuteParts.h"
#include "dialects/Patch/UpdateValues.h"

using namespace mlir;

namespace ctxc {

#define GEN_PASS_DEF_BUILDAPPLIED
#define GEN_PASS_DEF_BUILDDUAL
#define GEN_PASS_DEF_DROPUNREADOUTPUTS
#define GEN_PASS_DEF_FOLDLAYERS
#define GEN_PASS_DEF_OUTLINEMODELENDS
#define GEN_PASS_DEF_PACKLINEARS
#define GEN_PASS_DEF_PERMUTEPARTS
#include "ctxc/Transforms/Passes.h.inc"

namespace {

struct OutlineModelEnds : impl::OutlineModelEndsBase<OutlineModelEnds> {
  void runOnOperation() override {
    for (xf::ModelOp model : llvm::to_vector(getOperation().getOps<xf::ModelOp>()))
      if (failed(outlineModelEnds(model)))
        signalPassFailure();
  }
};

struct DropUnreadOutputs : impl::DropUnreadOutputsBase<DropUnreadOutputs> {
  void runOnOperation() override { numDropped += dropUnreadOutputs(getOperation()); }
};

struct FoldLayers : impl::FoldLayersBase<FoldLayers> {
  void runOnOperation() override {
    for (const FoldedLayers &folded : foldLayers(getOperation()))
      numFolded += folded.before.size() - 1;
  }
};

struct PackLinears : impl::PackLinearsBase<PackLinears> {
  void runOnOperation() override { numPacked += packLinears(getOperation()); }
};

struct PermuteParts : impl::PermutePartsBase<PermuteParts> {
  void runOnOperation() override { numPermuted += permuteParts(getOperation()); }
};

/// A pass that uses the planner: its options, and the loop.
template <typename Base> struct PlanningPass : Base {
  using Base::Base;
  void run(BuildFromPlan build) {
    ModelOptions options;
    options.update = this->update;
    options.startLayer = this->startLayer;
    for (const std::string &name : this->frozen)
      options.frozen.push_back(name);
    FailureOr<unsigned> built = buildFromPlans(this->getOperation(), options, build);
    if (failed(built))
      return this->signalPassFailure();
    this->numBuilt += *built;
  }
};

struct BuildDual : PlanningPass<impl::BuildDualBase<BuildDual>> {
  using PlanningPass::PlanningPass;
  void runOnOperation() override {
    run([&](xf::BlockOp block, const BlockPlan &plan) {
      return buildDualBlock(block, plan, update, freeName(getOperation(), block, "_dual"));
    });
  }
};

struct BuildApplied : PlanningPass<impl::BuildAppliedBase<BuildApplied>> {
  using PlanningPass::PlanningPass;
  void runOnOperation() override {
    run([&](xf::BlockOp block, const BlockPlan &plan) {
      return buildAppliedBlock(block, plan, freeName(getOperation(), block, "_applied"));
    });
  }
};

} // namespace
} // namespace ctxc
