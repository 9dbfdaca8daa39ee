// judge-key-tables [--page]: the keys of every format that ctxc reads, as JSON for format_keys.py,
// or as the page docs/keys.md.
#include "ctxc/Checkpoint/FormatKeys.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Tokenizer/TokenizerKeys.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace ctxc;

namespace {
/// A table, and what the page says before it.
struct Section {
  const KeyTable *table;
  StringRef note = "";
};
} // namespace

static const Section sections[] = {
    {&configKeys,
     "What a model needs, its [family](families.md) or its "
     "[description](described-types.md) reads; "
     "these rows are for all\nother keys. Of a model of text and of images or sounds, "
     "the keys of the towers, which transformers' class has beside\n`text_config`, "
     "change nothing of a text "
     "([lib/Import/HuggingFace/wrappers.json](../lib/Import/HuggingFace/wrappers.json) "
     "lists them)."},
    {&peftKeys},
    {&prefixKeys},
    {&tokenizerJsonKeys},
    {&tokenizerConfigKeys},
    {&specialTokensMapKeys},
    {&addedTokensKeys},
    {&generationConfigKeys},
    {&shardIndexKeys},
    {&safetensorsKeys},
    {&ggufKeys},
    {&ggufArchitectureKeys,
     "Without the architecture's name and a dot in front. A row with values is of a key that some "
     "[architectures](quantised.md#architectures)\nread; with the others it must have one of "
     "these, or be "
     "absent."},
    {&ggufTokenizerKeys}};

static StringRef kindOf(const KeyRule &rule) {
  if (rule.inert == isRead)
    return "read";
  return rule.inert.empty() ? "any" : "values";
}

static json::Value rowOf(const KeyRule &rule) {
  json::Object row{{"key", rule.pattern}, {"is", kindOf(rule)}, {"meaning", rule.meaning}};
  if (kindOf(rule) == "values")
    row["values"] = cantFail(json::parse(rule.inert));
  return row;
}

/// What the third column says.
static std::string whatOf(const KeyRule &rule) {
  if (kindOf(rule) == "read")
    return "read: " + rule.meaning.str();
  if (kindOf(rule) == "any")
    return rule.meaning.empty() ? "any value; changes nothing" : "any value: " + rule.meaning.str();
  std::string allowed = rule.inert == never ? "refused"
                        : rule.inert == off ? "off or absent"
                                            : rule.inert.drop_front().drop_back().str();
  return allowed + (rule.inert == never ? "; it means " : "; other values mean ") +
         rule.meaning.str();
}

static void printPage() {
  outs()
      << "# The keys of every file\n\n"
         "What ctxc makes of each key of each format; `judge-key-tables --page` writes this page "
         "from the tables that ctxc\nitself goes by, and a test takes each key through a set of "
         "values ([testing](testing.md)). A `*` stands for any text; the\nfirst row that fits a "
         "key counts. A key whose value changes a result in a way that ctxc does not know is "
         "refused, and the\nmessage names it; null is as good as no key.\n";
  for (const Section &section : sections) {
    outs() << "\n## " << section.table->format << "\n\n"
           << section.note << (section.note.empty() ? "" : "\n\n")
           << "| key | what it is |\n|---|---|\n";
    for (const KeyRule &rule : section.table->rules)
      outs() << "| `" << rule.pattern << "` | " << whatOf(rule) << " |\n";
  }
}

int main(int count, char **words) {
  if (count == 2 && StringRef(words[1]) == "--page") {
    printPage();
    return 0;
  }
  json::Object all;
  for (const Section &section : sections) {
    json::Array rows;
    for (const KeyRule &rule : section.table->rules)
      rows.push_back(rowOf(rule));
    all[section.table->format] = std::move(rows);
  }
  outs() << json::Value(std::move(all)) << "\n";
}
