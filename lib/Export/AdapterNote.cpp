#include "AdapterNote.h"
#include "ChangedCheckpoint.h"
#include "Lora.h"
#include "ctxc/Support/Count.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using llvm::formatv;
using llvm::StringRef;

/// A number that the card has below `group`, as `group.name`; none where it has not.
static std::optional<double> cardNumber(const llvm::json::Object &card, StringRef group,
                                        StringRef name) {
  const llvm::json::Object *object = group.empty() ? &card : card.getObject(group);
  return object ? object->getNumber(name) : std::nullopt;
}

static std::string percent(double share) { return formatv("{0:F1} %", 100 * share); }

/// The interval of the card's share, as " (95 %: 47 to 82)".
static std::string intervalText(const llvm::json::Object &card) {
  const llvm::json::Array *ends = card.getArray("share_interval_95");
  if (!ends || ends->size() != 2 || !(*ends)[0].getAsNumber() || !(*ends)[1].getAsNumber())
    return "";
  return formatv(" (95 %: {0:F0} to {1:F0})", 100 * *(*ends)[0].getAsNumber(),
                 100 * *(*ends)[1].getAsNumber());
}

static std::string row(StringRef name, StringRef text) {
  return formatv("| {0} | {1} |\n", name, text);
}

/// The cards of several contexts, for which one adapter stands.
static std::vector<const llvm::json::Object *> contextsOf(const llvm::json::Object &card) {
  std::vector<const llvm::json::Object *> contexts;
  if (const llvm::json::Array *all = card.getArray("contexts"))
    for (const llvm::json::Value &each : *all)
      if (const llvm::json::Object *object = each.getAsObject())
        contexts.push_back(object);
  return contexts;
}

static std::string cardRows(const llvm::json::Object &card) {
  std::string ofContexts;
  for (const llvm::json::Object *each : contextsOf(card))
    if (auto tokens = each->getInteger("context_tokens"))
      if (auto share = each->getNumber("share_recovered"))
        ofContexts += row(("context " + each->getString("name").value_or("")).str(),
                          counted(*tokens, "token") + ", of whose effect " + percent(*share) +
                              intervalText(*each) + " is recovered");
  if (!ofContexts.empty())
    return ofContexts;
  auto number = [&](StringRef group, StringRef name) { return cardNumber(card, group, name); };
  std::string rows;
  if (auto tokens = number("", "context_tokens"))
    rows += row("context", counted(int64_t(*tokens), "token"));
  if (auto share = number("", "share_recovered")) {
    std::string judged;
    if (auto tokens = number("all", "tokens"), texts = number("", "texts"); tokens && texts)
      judged = ", on " + counted(int64_t(*tokens), "token") + " of " +
               counted(int64_t(*texts), "text") + " that were not fitted";
    rows +=
        row("share of its effect that is recovered", percent(*share) + intervalText(card) + judged);
  }
  if (auto without = number("most_dependent", "kl_without"),
      adapted = number("most_dependent", "kl_adapted");
      without && adapted && *without > 0)
    rows += row("of the tokens that depend on it most", percent(1 - *adapted / *without));
  if (auto kept = number("", "share_of_kept_tokens_alone"))
    rows += row("what the tokens in front recover by themselves", percent(*kept));
  if (auto adapted = number("drift", "adapted"), context = number("drift", "context");
      adapted && context)
    rows += row("change of unrelated text",
                formatv("KL {0:F3}; the context itself {1:F3}", *adapted, *context).str());
  return rows;
}

static bool isOfModel(const llvm::json::Object &card, StringRef modelHash) {
  return card.getString("model_hash") == modelHash;
}

std::map<std::string, std::string>
ctxc::adapterMetadata(const Adapter &adapter, const AdapterOrigin &origin, StringRef modelHash) {
  std::map<std::string, std::string> strings = {
      {"ctxc_adapter_sha256", origin.sha256},
      {"ctxc_adapter_strength", formatv("{0}", origin.strength).str()},
      {"ctxc_original_model", modelHash.str()}};
  if (!adapter.prefix.empty())
    strings["ctxc_prefix"] = prefixText(adapter);
  if (!origin.card)
    return strings;
  strings["ctxc_approximate"] = "true";
  if (auto contexts = contextsOf(*origin.card); !contexts.empty())
    strings["ctxc_contexts"] = std::to_string(contexts.size());
  if (auto tokens = origin.card->getInteger("context_tokens"))
    strings["ctxc_context_tokens"] = std::to_string(*tokens);
  if (auto share = origin.card->getNumber("share_recovered"))
    strings["ctxc_share_recovered"] = formatv("{0:F4}", *share).str();
  return strings;
}

std::string ctxc::approximation(const AdapterOrigin &origin) {
  if (!origin.card)
    return "nothing beside the adapter says how good it is";
  if (auto contexts = contextsOf(*origin.card); !contexts.empty()) {
    double least = 1;
    for (const llvm::json::Object *each : contexts)
      least = std::min(least, each->getNumber("share_recovered").value_or(0));
    return "the adapter approximates " + counted(contexts.size(), "context") + ": " +
           percent(least) + " and more of the effect of each on text that was not fitted";
  }
  auto tokens = origin.card->getInteger("context_tokens");
  auto share = origin.card->getNumber("share_recovered");
  std::string text = "the adapter approximates a context";
  if (tokens)
    text += " of " + counted(*tokens, "token");
  if (share)
    text += ": " + percent(*share) + " of its effect on text that was not fitted";
  if (share && *share <= 0)
    text += ", so that the model is better off without it";
  return text;
}

static std::string frontText(const Adapter &adapter, const AdapterOrigin &origin) {
  if (!origin.saysPrefix)
    return "what the tokenizer puts there";
  if (adapter.prefix.empty())
    return "nothing";
  return "the tokens " + prefixText(adapter) + ", among them those that the tokenizer puts there" +
         (origin.prefixText.empty()
              ? ""
              : "; [prefix.txt](prefix.txt) has those that were kept of the context");
}

static std::string quality(const AdapterOrigin &origin, StringRef modelHash) {
  if (!origin.card)
    return R"(Nothing beside the adapter said how good it is. `ctxc evaluate` compares the original model with the adapter
to the model that reads a context, if it stands for one.
)";
  std::string text =
      "It is **approximate**. From the adapter's card, which was made with weights in float32";
  double judged = origin.card->getNumber("strength").value_or(1);
  text += judged == 1 ? ":\n\n" : formatv(", at the strength {0}:\n\n", judged).str();
  text += "| | |\n|---|---|\n" + cardRows(*origin.card);
  if (origin.strength != 1)
    text += formatv("\nThese figures do not hold here: what the adapter has was multiplied by {0} "
                    "afterwards.\n",
                    origin.strength);
  if (!isOfModel(*origin.card, modelHash))
    text += "\nThe card was made for other weights than these, and its figures may not hold "
            "here.\n";
  return text;
}

std::string ctxc::adapterReadme(const Adapter &adapter, const AdapterOrigin &origin,
                                StringRef modelHash, double relativeRounding,
                                bool hasOriginalReadme) {
  std::string readme = formatv(
      R"(# A checkpoint with an adapter added

ctxc made this copy of a model. It added {0} to the weights.

| | |
|---|---|
| adapter | SHA-256 of its adapter_model.safetensors: `{1}` |
| changes | matrices: {2}, of rank {3} at most; scales of norms: {4} |
| strength | {5} |
| in front of every text | {6} |
| original weights | SHA-256 `{7}` |
| lost by rounding | {8:F2} % of the change |

Whatever loads the original model loads this directory.{10}

{9})",
      origin.card ? "an adapter that stands for a context in front of every text"
                  : "a LoRA adapter",
      origin.sha256, adapter.matrices.size(), adapter.rank(), adapter.vectors.size(),
      origin.strength, frontText(adapter, origin), modelHash, 100 * relativeRounding,
      quality(origin, modelHash),
      origin.card ? " Leave the context out, and put in front of every text what the table says."
                  : "");
  if (hasOriginalReadme)
    readme += "\nThe original model's own page is [" + originalReadme.str() + "](" +
              originalReadme.str() + ").\n";
  return readme;
}
