#include "Parts.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

mlir::Value RotaryAttention::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                        mlir::Value n, mlir::Value window) const {
  mlir::Value r = b.rope("rotary", heads.dim, rope.attr(b.context(), heads.dim));
  auto project = [&](StringRef name, int64_t count) {
    mlir::Value row = b.linear((name + "_row").str(), (module + "." + name + "_proj").str(),
                               count * heads.dim, n, qkvBias);
    return b.heads(name, row, heads.dim);
  };
  mlir::Value q = project("q", heads.queries);
  mlir::Value k = project("k", heads.keys);
  mlir::Value v = project("v", heads.keys);
  mlir::Value qr = b.rotary("q_rot", q, r), kr = b.rotary("k_rot", k, r);
  double scale = 1 / std::sqrt(double(heads.dim));
  mlir::Value o = b.flat("o", b.attention("o_heads", qr, kr, v, scale, window));
  return b.linear(as, (module + ".o_proj").str(), width(n), o, outBias);
}

mlir::Value GatedMlp::operator()(BlockBuilder &b, StringRef as, StringRef module, mlir::Value z,
                                 StringRef prefix) const {
  mlir::Value g = b.linear((prefix + "g").str(), (module + ".gate_proj").str(), inner, z, bias);
  mlir::Value u = b.linear((prefix + "u").str(), (module + ".up_proj").str(), inner, z, bias);
  mlir::Value h = b.mul((prefix + "h").str(), b.activation((prefix + "g_act").str(), act, g), u);
  return b.linear(as, (module + ".down_proj").str(), width(z), h, bias);
}

mlir::Value GatedExperts::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                     mlir::Value z) const {
  mlir::Value s = b.router("s", (module + "." + router).str(), count, z);
  mlir::Value top = b.topK("top", s, active);
  mlir::Value w = b.gather(sumToOne ? "s_top" : "w", s, top);
  if (sumToOne)
    w = b.sumToOne("w", w);

  std::string each = (module + ".experts.*.").str();
  mlir::Value g = b.expertLinear("g", each + gate.str(), count, inner, top, z);
  mlir::Value u = b.expertLinear("u", each + up.str(), count, inner, top, z);
  mlir::Value h = b.mul("h", b.activation("g_act", act, g), u);
  mlir::Value e = b.expertLinear("e", each + down.str(), count, width(z), top, h);
  return b.combine(as, w, e);
}

void hf::readExperts(ConfigReader &config, StringRef key, int64_t count, int64_t active,
                     GatedExperts &experts) {
  experts.count = config.integer(key, count, 1, maxExperts);
  experts.active = config.integer("num_experts_per_tok", active, 1, maxExperts);
  if (experts.active > experts.count)
    config.problem("num_experts_per_tok", "is more than " + key + " = " + Twine(experts.count));
  experts.active = std::min(experts.active, experts.count);
}
