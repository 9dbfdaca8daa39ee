#include "Wrappers.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

static constexpr std::pair<StringLiteral, StringLiteral> files[] = {
#include "Wrappers.inc"
};

static const json::Object &table() {
  static const json::Value parsed = cantFail(json::parse(files[0].second)); // one of ours
  return *parsed.getAsObject();
}

static const json::Object *find(StringRef wrapper) {
  return table().getObject("wrappers")->getObject(wrapper);
}

static std::vector<StringRef> textsOf(const json::Object &wrapper, StringRef key) {
  std::vector<StringRef> texts;
  if (const json::Array *list = wrapper.getArray(key))
    for (const json::Value &one : *list)
      texts.push_back(*one.getAsString());
  return texts;
}

std::vector<StringRef> ctxc::wrapperModelTypes() {
  std::vector<StringRef> types;
  for (const auto &entry : *table().getObject("wrappers"))
    types.push_back(entry.first);
  llvm::sort(types);
  return types;
}

/// A rotation by places in an image is that of a text where each place is the token's position.
static void turnAsText(json::Object &text) {
  for (StringRef key : {"rope_parameters", "rope_scaling"})
    if (json::Object *rope = text.getObject(key)) {
      rope->erase("mrope_section");
      rope->erase("mrope_interleaved");
      for (StringRef type : {"type", "rope_type"})
        if (rope->getString(type) == StringRef("mrope"))
          (*rope)[type] = "default";
    }
}

std::optional<json::Object> hf::textModelOf(const json::Object &config, ConfigReader &around) {
  std::string type = around.text("model_type", "");
  const json::Object *wrapper = find(type);
  if (!wrapper)
    return std::nullopt;
  std::vector<StringRef> beside = textsOf(*wrapper, "beside");
  llvm::append_range(beside, textsOf(table(), "older"));
  json::Object text;
  if (const json::Object *part = config.getObject("text_config")) {
    text = *part;
    llvm::append_range(beside, textsOf(table(), "twice"));
    for (StringRef key : beside)
      around.unread({{key}});
    if (const json::Value *tied = around.raw("tie_word_embeddings"))
      text["tie_word_embeddings"] = *tied;
    around.unread({{"text_config"}});
  } else if (wrapper->getBoolean("flat").value_or(false)) {
    text = config; // as older configs have it
    for (StringRef key : beside)
      text.erase(key);
    for (const auto &entry : config)
      around.unread({{entry.first}});
    text["model_type"] = textsOf(*wrapper, "texts").front();
  } else {
    around.problem("model_type", "needs an object 'text_config' beside it");
    return std::nullopt;
  }
  StringRef own = text.getString("model_type").value_or("");
  const std::vector<StringRef> known = textsOf(*wrapper, "texts");
  if (!llvm::is_contained(known, own)) {
    around.object("text_config")
        ->problem("model_type", "is not supported within a '" + type + "'; expected one of " +
                                    join(known, ", ") +
                                    ", or a program by python -m ctxc.export "
                                    "(docs/check-your-architecture.md)");
    return std::nullopt;
  }
  for (const json::Object *holder : {&table(), wrapper})
    if (const json::Object *left = holder->getObject("left"))
      for (const auto &[key, only] : *left)
        if (const json::Value *given = text.get(key); given && (only.getAsNull() || *given == only))
          text.erase(key);
  if (llvm::is_contained(textsOf(*wrapper, "without"), own))
    for (StringRef factor : textsOf(table(), "ofHead"))
      if (text.get(factor))
        text[factor] = factor.contains("cap") ? json::Value(nullptr) : json::Value(1.0);
  if (const json::Object *said = table().getObject("texts")->getObject(own)) {
    turnAsText(text);
    for (const auto &[key, value] : *said)
      text[key] = value;
    if (auto width = text.getInteger("hidden_size"), heads = text.getInteger("num_attention_heads");
        width && heads && *heads > 0 && !text.get("head_dim"))
      text["head_dim"] = *width / *heads;
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// The first part of the names of a text model's tensors where it stands alone.
static StringRef firstOf(StringRef own) {
  for (StringRef first : {"model.", "transformer.", "gpt_neox.", "backbone."})
    if (own.starts_with(first))
      return first;
  return "";
}

TextPart::TextPart(StringRef wrapper, function_ref<bool(StringRef)> anyBeginsWith)
    : wrapper(wrapper.str()), first("model.language_model.") {
  // How transformers stores it today, and how it did, whole and without a head; last, beside the
  // towers.
  static constexpr std::pair<StringLiteral, StringLiteral> forms[] = {
      {"model.language_model.", ""},
      {"model.text_model.", ""},
      {"language_model.model.", "language_model."},
      {"language_model.transformer.", "language_model."},
      {"text_model.", ""},
      {"language_model.", ""},
      {"model.", ""}};
  for (auto [ofBase, ofOthers] : forms)
    if (anyBeginsWith(ofBase)) {
      first = ofBase.str(), others = ofOthers.str();
      return;
    }
}

std::string TextPart::stored(StringRef own) const {
  if (wrapper.empty())
    return own.str();
  StringRef front = firstOf(own);
  return (front.empty() ? others : first) + own.drop_front(front.size()).str();
}

std::optional<std::string> TextPart::own(StringRef stored) const {
  if (wrapper.empty())
    return stored.str();
  if (stored.consume_front(first))
    return "model." + stored.str();
  if (isBeside(stored) || !stored.consume_front(others))
    return std::nullopt;
  return stored.str();
}

bool TextPart::isBeside(StringRef stored) const {
  if (wrapper.empty() || (first != "model." && stored.starts_with(first)))
    return false;
  stored.consume_front("model.");
  return llvm::is_contained(textsOf(*find(wrapper), "others"), stored.split('.').first);
}

void TextPart::rename(mlir::ModuleOp module) const {
  if (wrapper.empty())
    return;
  auto renamed = [&](StringRef own) {
    return mlir::StringAttr::get(module.getContext(), stored(own));
  };
  module.walk([&](xf::ModelOp model) {
    for (xf::ParamOp param : model.getOps<xf::ParamOp>())
      param.setNameAttr(renamed(param.getName()));
    for (xf::LayerOp layer : model.getOps<xf::LayerOp>()) {
      layer.setPrefixAttr(renamed(layer.getPrefix()));
      if (mlir::DictionaryAttr bind = layer.getBindAttr()) {
        SmallVector<mlir::NamedAttribute> names;
        for (mlir::NamedAttribute one : bind)
          names.emplace_back(one.getName(), renamed(cast<mlir::StringAttr>(one.getValue())));
        layer.setBindAttr(mlir::DictionaryAttr::get(module.getContext(), names));
      }
    }
  });
}
