#include "Parts.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

mlir::Value Attention::project(BlockBuilder &b, StringRef as, StringRef module, int64_t count,
                               mlir::Value n) const {
  std::string name = (as + "_row").str(), stored = (module + "." + as + "_proj").str();
  return b.heads(as, b.linear(name, stored, count * heads.dim, n, qkvBias), heads.dim);
}

mlir::Value Attention::clipped(BlockBuilder &b, StringRef as, mlir::Value x) const {
  return clip ? b.clamp((as + "_clipped").str(), x, *clip) : x;
}

mlir::Value Attention::normed(BlockBuilder &b, StringRef as, StringRef module,
                              mlir::Value x) const {
  if (!headNorm)
    return x;
  const Norm &norm = headNorm->norm;
  int64_t count = rows(x);
  std::string name = (as + "_n").str(), stored = (module + "." + as + headNorm->suffix).str();
  switch (headNorm->over) {
  case HeadNorm::head:
    return b.norm(name, stored, norm, x);
  case HeadNorm::row:
    return b.heads(name, b.norm(name + "_row", stored, norm, b.flat(name + "_flat", x)), heads.dim);
  case HeadNorm::ownModule:
    break;
  }
  SmallVector<mlir::Value> parts;
  for (int64_t i = 0; i < count; ++i) {
    std::string head = (as + Twine(i)).str();
    parts.push_back(
        b.norm(head + "_n", (stored + "." + Twine(i)).str(), norm, b.slice(head, x, i, 1)));
  }
  return b.concat(name, parts);
}

mlir::Value Attention::mix(BlockBuilder &b, mlir::Value q, mlir::Value k, mlir::Value v,
                           mlir::Value window, mlir::Value sinks) const {
  if (rope) {
    int64_t dims = rope->dims(heads.dim);
    mlir::Attribute attr = rope->frequencies(b.context(), heads.dim);
    mlir::Value r = ropeByLayer ? b.layerRope("rotary", dims, attr) : b.rope("rotary", dims, attr);
    q = b.rotary("q_rot", q, r, style, rope->amplitude);
    k = b.rotary("k_rot", k, r, style, rope->amplitude);
  }
  mlir::Value m = slopes.empty() ? mlir::Value() : b.numbers("slopes", slopes);
  BlockBuilder::Scores scores{scoreScale(), cap, window, m, sinks, slopesRounded, bidirectional};
  return b.flat("o", b.attention("o_heads", q, k, v, scores));
}

mlir::Value Attention::mixGroups(BlockBuilder &b, mlir::Value row, mlir::Value window) const {
  if (b.hasQueriesFirst())
    return mixBlocks(b, row, window);
  int64_t dim = heads.dim, each = heads.queries / heads.keys * dim; // of a group, in q
  mlir::Value qkv = b.heads("qkv", row, each + 2 * dim);
  mlir::Value q = b.slice("q", qkv, 0, each, /*along=*/1);
  if (each != dim)
    q = b.heads("q_heads", b.flat("q_flat", q), dim);
  mlir::Value k = b.slice("k", qkv, each, dim, /*along=*/1);
  mlir::Value v = b.slice("v", qkv, each + dim, dim, /*along=*/1);
  return mix(b, q, k, v, window);
}

mlir::Value Attention::mixBlocks(BlockBuilder &b, mlir::Value row, mlir::Value window) const {
  mlir::Value qkv = b.heads("qkv", row, heads.dim);
  mlir::Value q = b.slice("q", qkv, 0, heads.queries);
  mlir::Value k = b.slice("k", qkv, heads.queries, heads.keys);
  mlir::Value v = b.slice("v", qkv, heads.queries + heads.keys, heads.keys);
  return mix(b, q, k, v, window);
}

double Attention::scoreScale() const { return scale.value_or(1 / std::sqrt(double(heads.dim))); }

void Attention::setAlibi(bool scaled, bool rounded) {
  int64_t n = int64_t(llvm::bit_floor(uint64_t(heads.queries)));
  for (int64_t h = 0; h < heads.queries; ++h) {
    double exponent = h < n ? -8.0 * (h + 1) / n : -8.0 * (2 * (h - n) + 1) / (2 * n);
    slopes.push_back(float(std::exp2(exponent) / (scaled ? 1 : scoreScale())));
  }
  slopesRounded = rounded;
}

mlir::Value Attention::operator()(BlockBuilder &b, StringRef as, StringRef module, mlir::Value n,
                                  mlir::Value window) const {
  mlir::Value q = project(b, "q", module, heads.queries, n);
  mlir::Value k = project(b, "k", module, heads.keys, n);
  mlir::Value v = clipped(b, "v", project(b, "v", module, heads.keys, n));
  q = clipped(b, "q", normed(b, "q", module, q));
  k = clipped(b, "k", normed(b, "k", module, k));
  mlir::Value sink = sinks ? b.param((module + ".sinks").str(), {heads.queries}) : mlir::Value();
  return b.linear(as, (module + "." + out).str(), width(n), mix(b, q, k, v, window, sink), outBias);
}

mlir::Value GatedMlp::operator()(BlockBuilder &b, StringRef as, StringRef module, mlir::Value z,
                                 StringRef prefix) const {
  std::string g = (prefix + "g").str(), u = (prefix + "u").str();
  mlir::Value gate, up;
  if (fused) {
    mlir::Value both = b.linear(g + u, (module + ".gate_up_proj").str(), 2 * inner, z, bias);
    gate = b.slice(g, both, 0, inner);
    up = b.slice(u, both, inner, inner);
  } else {
    gate = b.linear(g, (module + ".gate_proj").str(), inner, z, bias);
    up = b.linear(u, (module + ".up_proj").str(), inner, z, bias);
  }
  mlir::Value h = b.mul((prefix + "h").str(), b.activation(g + "_act", act, gate), up);
  return b.linear(as, (module + ".down_proj").str(), width(z), h, bias);
}

mlir::Value PlainMlp::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                 mlir::Value z) const {
  std::string dot = module.empty() ? "" : (module + ".").str();
  mlir::Value u = b.linear("u", dot + up.str(), inner, z, bias);
  return b.linear(as, dot + down.str(), width(z), b.activation("h", act, u), bias);
}

mlir::Value GatedExperts::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                     mlir::Value z) const {
  auto [top, w] = route(b, (module + "." + router).str(), z);
  std::string path = (module + ".experts.").str();
  mlir::Value e =
      b.has(path + "gate_up_proj") ? fromOne(b, path, top, z) : fromEach(b, path + "*.", top, z);
  return b.combine(as, w, e);
}

std::pair<mlir::Value, mlir::Value> GatedExperts::route(BlockBuilder &b, const std::string &path,
                                                        mlir::Value z) const {
  mlir::Value s =
      sigmoid ? b.activation("s", xf::ActivationKind::sigmoid, b.linear("s_logits", path, count, z))
              : b.router("s", path, count, z);
  mlir::Value choice = s;
  if (corrected)
    choice = b.bias("s_corrected", s,
                    b.param(path + ".e_score_correction_bias", {count}, /*frozen=*/true));
  mlir::Value top = b.topK("top", choice, active, groups, keep);
  mlir::Value w = b.gather(sumToOne || factor != 1 ? "s_top" : "w", s, top);
  if (sumToOne) // sigmoids may all be next to nothing
    w = b.sumToOne(factor != 1 ? "w_one" : "w", w, sigmoid ? 1e-20 : 0);
  if (factor != 1)
    w = b.times("w", w, factor);
  return {top, w};
}

mlir::Value GatedExperts::fromEach(BlockBuilder &b, const std::string &path, mlir::Value top,
                                   mlir::Value z) const {
  mlir::Value g = b.expertLinear("g", path + gate.str(), count, inner, top, z);
  mlir::Value u = b.expertLinear("u", path + up.str(), count, inner, top, z);
  mlir::Value h = b.mul("h", b.activation("g_act", act, g), u);
  return b.expertLinear("e", path + down.str(), count, width(z), top, h);
}

mlir::Value GatedExperts::fromOne(BlockBuilder &b, const std::string &path, mlir::Value top,
                                  mlir::Value z) const {
  std::string first = path + "gate_up_proj", last = path + "down_proj";
  mlir::Value rows = b.param(first, {count, 2 * inner, width(z)});
  mlir::Value gu = b.expertLinear("gu", first, rows, top, z);
  mlir::Value g = b.slice("g", gu, 0, inner, /*along=*/1);
  mlir::Value u = b.slice("u", gu, inner, inner, /*along=*/1);
  mlir::Value h = b.mul("h", b.activation("g_act", act, g), u);
  return b.expertLinear("e", last, b.param(last, {count, width(z), inner}), top, h);
}

void hf::readExperts(ConfigReader &config, StringRef key, int64_t count, int64_t active,
                     GatedExperts &experts) {
  experts.count = config.integer(key, count, 1, maxExperts);
  experts.active = config.integer("num_experts_per_tok", active, 1, maxExperts);
  if (experts.active > experts.count)
    config.problem("num_experts_per_tok", "is more than " + key + " = " + Twine(experts.count));
  experts.active = std::min(experts.active, experts.count);
}

void hf::readExpertGroups(ConfigReader &config, int64_t groups, int64_t keep,
                          GatedExperts &experts) {
  experts.groups = config.integer("n_group", groups, 1, maxExperts);
  experts.keep = config.integer("topk_group", keep, 1, maxExperts);
  int64_t size = experts.count / experts.groups;
  if (experts.count % experts.groups || size < 2)
    config.problem("n_group", "does not divide the " + Twine(experts.count) +
                                  " experts into groups of two or more");
  else if (experts.keep > experts.groups)
    config.problem("topk_group", "is more than n_group = " + Twine(experts.groups));
  else if (experts.active > experts.keep * size)
    config.problem("num_experts_per_tok", "is more than the " + Twine(experts.keep * size) +
                                              " experts of the groups that are kept");
}

StringRef hf::expertsKey(const ConfigReader &config, StringRef key) {
  StringRef other = "num_local_experts";
  return config.has(other) && !config.has(key) ? other : key;
}

SparseLayers hf::readSparseLayers(ConfigReader &config, StringRef key, int64_t count,
                                  int64_t active, GatedExperts &experts) {
  SparseLayers sparse;
  sparse.any = config.integer(key, count, 0, maxExperts) > 0;
  if (sparse.any)
    readExperts(config, key, count, active, experts);
  config.unread({{"num_experts_per_tok"}}); // where there are none
  sparse.step = config.integer("decoder_sparse_step", 1, 1, maxLayers);
  sparse.dense = config.integers("mlp_only_layers", 0, maxLayers);
  return sparse;
}
