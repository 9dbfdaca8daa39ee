#include "lib/Lowering/Objects/GuardLibrary.h"
#include "ctxc/Numerics/CpuFeatures.h"
#include "ctxc/Program/ctxc_kernel.h"
#include "ctxc/Support/Error.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"

using namespace ctxc;
using namespace llvm;

namespace {

class Guard {
public:
  Guard(Module &module, const CpuTarget &target, StringRef prefix)
      : module(module), b(module.getContext()), target(target), prefix(prefix), i32(b.getInt32Ty()),
        ptr(b.getPtrTy()) {
    for (StringRef feature : target.needed)
      needed |= cpuFeatureNamed(feature.data(), int64_t(feature.size()));
  }

  Error run() {
    for (const char *name : {"_refusal", "_cpu"})
      if (module.getNamedValue((prefix + name).str()))
        return makeError(
            "a block of the model has the kernel name " + prefix + name +
            ", which the library has a use of its own for; give the block another name");
    SmallVector<Function *> callable;
    for (Function &f : module)
      if (!f.isDeclaration() && f.hasExternalLinkage())
        callable.push_back(&f);
    // Entries, and the functions that return the size of a workspace.
    for (Function *f : callable) {
      forBaseline(*f);
      if (needed && f->getReturnType() == i32)
        guardEntry(*f);
    }
    addRefusal();
    return Error::success();
  }

private:
  /// Compiles the function for every machine of the architecture. Functions for the target are not
  /// inlined into it.
  void forBaseline(Function &f) {
    f.removeFnAttr("prefer-vector-width");
    f.addFnAttr("target-cpu", target.isAArch64() ? "generic" : "x86-64");
    f.addFnAttr("target-features", target.isAArch64() ? "+neon" : "+sse2");
  }

  Constant *neededMask() { return b.getInt64(needed); }

  /// Makes the entry return CTXC_WRONG_CPU unless `<prefix>_cpu` says that the machine can run the
  /// code. The first call sets `<prefix>_cpu`.
  void guardEntry(Function &entry) {
    if (!known)
      known = new GlobalVariable(module, i32, /*isConstant=*/false, GlobalValue::InternalLinkage,
                                 b.getInt32(0), prefix + "_cpu");
    FunctionCallee runs = module.getOrInsertFunction(
        "ctxc_cpu_runs", FunctionType::get(i32, {b.getInt64Ty(), ptr}, false));
    BasicBlock *body = &entry.getEntryBlock();
    auto block = [&](const char *name) {
      return BasicBlock::Create(module.getContext(), name, &entry, body);
    };
    BasicBlock *check = block("check"), *ask = block("ask"), *refuse = block("refuse");
    MDNode *likely = MDBuilder(module.getContext()).createLikelyBranchWeights();
    b.SetInsertPoint(check);
    LoadInst *answer = b.CreateLoad(i32, known);
    answer->setAtomic(AtomicOrdering::Monotonic);
    answer->setAlignment(Align(4));
    b.CreateCondBr(b.CreateICmpEQ(answer, b.getInt32(1)), body, ask, likely);
    b.SetInsertPoint(ask);
    Value *asked = b.CreateCall(runs, {neededMask(), known});
    b.CreateCondBr(b.CreateICmpEQ(asked, b.getInt32(1)), body, refuse, likely);
    b.SetInsertPoint(refuse);
    b.CreateRet(b.getInt32(CTXC_WRONG_CPU));
  }

  void addRefusal() {
    auto *f = Function::Create(FunctionType::get(ptr, {i32}, false), Function::ExternalLinkage,
                               prefix + "_refusal", module);
    forBaseline(*f);
    auto block = [&](const char *name) { return BasicBlock::Create(module.getContext(), name, f); };
    BasicBlock *entry = block("entry"), *other = block("other"), *same = block("same");
    b.SetInsertPoint(entry);
    b.CreateCondBr(b.CreateICmpEQ(f->getArg(0), b.getInt32(CTXC_KERNEL_ABI_VERSION)), same, other);
    b.SetInsertPoint(other);
    b.CreateRet(b.CreateGlobalString("the kernels are of version " +
                                     std::to_string(CTXC_KERNEL_ABI_VERSION) +
                                     " of the kernel ABI, and their caller of another"));
    b.SetInsertPoint(same);
    if (!needed) {
      b.CreateRet(ConstantPointerNull::get(cast<PointerType>(ptr)));
      return;
    }
    Type *i64 = b.getInt64Ty();
    FunctionCallee present =
        module.getOrInsertFunction("ctxc_cpu_features", FunctionType::get(i64, {i64}, false));
    FunctionCallee refusal =
        module.getOrInsertFunction("ctxc_cpu_refusal", FunctionType::get(ptr, {i64, i64}, false));
    b.CreateRet(b.CreateCall(refusal, {neededMask(), b.CreateCall(present, {neededMask()})}));
  }

  Module &module;
  IRBuilder<> b;
  const CpuTarget &target;
  StringRef prefix;
  Type *i32, *ptr;
  GlobalVariable *known = nullptr;
  uint64_t needed = 0;
};

} // namespace

Error ctxc::guardLibrary(Module &module, const CpuTarget &target, StringRef prefix) {
  return Guard(module, target, prefix).run();
}
