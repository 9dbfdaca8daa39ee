// A program outside of ctxc's tree: reads a text, patches its last token, and verifies the patch.
#include "ctxc/Session/Context.h"
#include "ctxc/Session/Model.h"
#include "llvm/Support/raw_ostream.h"

int main(int count, char **words) {
  llvm::ExitOnError orExit("consumer: ", 2);
  if (count != 3) {
    llvm::errs() << "usage: consumer MODEL TEXT\n";
    return 2;
  }
  std::unique_ptr<ctxc::Model> model = orExit(ctxc::Model::load(words[1]));
  for (const ctxc::VerdictGroup &group : orExit(model->check()))
    llvm::outs() << "layers " << ctxc::formatRanges(group.layers) << ": "
                 << ctxc::stringify(group.verdict->kind) << "\n";

  std::vector<int64_t> tokens = orExit(model->tokenize(words[2]));
  ctxc::Context context = orExit(model->context(tokens));
  ctxc::PatchStep step = orExit(context.patch());

  ctxc::RunRequest request;
  request.tokens.assign(tokens.begin(), tokens.end());
  ctxc::VerifyResult result = orExit(model->verify(request, step.patch));
  bool matches = result.steps.front().patched.match;
  llvm::outs() << (matches ? "verified" : "another token") << "\n";
  return matches ? 0 : 1;
}
