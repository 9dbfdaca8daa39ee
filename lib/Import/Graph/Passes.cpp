#include "ctxc/Import/Passes.h"
#include "RaiseModel.h"
#include "Spelling.h"
#include "ctxc/Analysis/TokenAxes.h"

namespace ctxc {

#define GEN_PASS_DEF_REPORTTOKENAXES
#define GEN_PASS_DEF_RAISEPROGRAM
#define GEN_PASS_DEF_RECOMPOSE
#include "ctxc/Import/Passes.h.inc"

namespace {

struct ReportTokenAxes : impl::ReportTokenAxesBase<ReportTokenAxes> {
  void runOnOperation() override {
    TokenAxes axes(getOperation());
    for (auto call : getOperation().getBody().getOps<graph::CallOp>())
      if (llvm::StringRef reason = axes.reason(call); !reason.empty())
        mlir::emitRemark(call.getLoc(), reason);
    markAllAnalysesPreserved();
  }
};

struct Recompose : impl::RecomposeBase<Recompose> {
  void runOnOperation() override {
    pt2::takeWholeSelections(getOperation());
    pt2::recompose(getOperation());
  }
};

struct RaiseProgram : impl::RaiseProgramBase<RaiseProgram> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    for (auto program : llvm::make_early_inc_range(module.getOps<graph::ProgramOp>())) {
      auto raised = pt2::raiseProgram(program, pt2::writtenNumbers);
      if (!raised) {
        program.emitError(llvm::toString(raised.takeError()));
        return signalPassFailure();
      }
      program.erase();
      module.getBody()->getOperations().splice(module.getBody()->end(),
                                               (*raised)->getBody()->getOperations());
    }
  }
};

} // namespace
} // namespace ctxc
