#include "OwnClasses.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

/// Whether a component is, or has, one of type `type`.
static bool hasType(const json::Value *component, StringRef type) {
  const json::Object *object = component ? component->getAsObject() : nullptr;
  if (!object)
    return false;
  if (object->getString("type") == type)
    return true;
  for (StringRef key : {"pretokenizers", "normalizers", "decoders"})
    if (const json::Array *steps = object->getArray(key))
      return any_of(*steps, [&](const json::Value &step) { return hasType(&step, type); });
  return false;
}

static void applyLlama(json::Object &members, ModelText &model, const SideFiles &beside) {
  const bool putsSpace = beside.addPrefixSpace.value_or(true);
  members["normalizer"] = nullptr;
  members["pre_tokenizer"] = json::Object{{"type", "Metaspace"},
                                          {"replacement", "▁"},
                                          {"prepend_scheme", !putsSpace        ? "never"
                                                             : beside.isLegacy ? "always"
                                                                               : "first"},
                                          {"split", false}};
  model.settings["byte_fallback"] = true;
  model.settings["fuse_unk"] = true;
}

static void applyBert(json::Object &members, const SideFiles &beside) {
  json::Value accents = nullptr;
  if (beside.stripAccents)
    accents = *beside.stripAccents;
  members["normalizer"] =
      json::Object{{"type", "BertNormalizer"},
                   {"clean_text", true},
                   {"handle_chinese_chars", beside.spacesChinese.value_or(true)},
                   {"strip_accents", std::move(accents)},
                   {"lowercase", beside.lowers.value_or(true)}};
  members["pre_tokenizer"] = json::Object{{"type", "BertPreTokenizer"}};
}

Error text::applyOwnClass(json::Object &members, ModelText &model, const SideFiles &beside) {
  const auto kind = model.settings.getString("type");
  if (beside.isLlama && beside.isOfClassesModel({"llama"}) && kind == StringRef("BPE") &&
      !hasType(members.get("pre_tokenizer"), "ByteLevel") &&
      !hasType(members.get("decoder"), "ByteLevel"))
    applyLlama(members, model, beside);
  if (!beside.isBert || !beside.isOfClassesModel({"bert"}))
    return Error::success();
  if (kind != StringRef("WordPiece"))
    return makeError(model.place + ": is of another kind than the tokenizer_class of "
                                   "tokenizer_config.json; expected WordPiece");
  applyBert(members, beside);
  return Error::success();
}
