#include "Beside.h"
#include "ctxc/Report/Rules.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LSP/Protocol.h"

using namespace ctxc;
using namespace ctxc::lsp;
using llvm::StringRef;
namespace json = llvm::json;

static std::string textOf(const json::Value &value) { return llvm::formatv("{0}", value); }

static std::string uriOf(const json::Object &params) {
  const json::Object *document = params.getObject("textDocument");
  return document ? document->getString("uri").value_or("").str() : "";
}

static json::Object position(unsigned line, unsigned character) {
  return json::Object{{"line", line}, {"character", character}};
}

/// From a place to the end of the word there, in the document's terms.
static json::Object rangeOf(const Place &place, StringRef text) {
  unsigned line = place.line ? place.line - 1 : 0, start = place.column ? place.column - 1 : 0;
  for (unsigned i = 0; i < line; ++i)
    text = text.split('\n').second;
  StringRef word = text.split('\n').first.drop_front(std::min<size_t>(start, text.size()));
  unsigned width = std::min(word.find_first_of(" \t"), word.size());
  return json::Object{{"start", position(line, start)}, {"end", position(line, start + width)}};
}

static json::Object diagnosticOf(const TextFinding &finding, const std::string &uri,
                                 StringRef text) {
  json::Array related;
  for (const auto &[place, message] : finding.notes)
    related.push_back(
        json::Object{{"location", json::Object{{"uri", uri}, {"range", rangeOf(place, text)}}},
                     {"message", message}});
  std::string advice = finding.advice.empty() ? "" : "\nway out: " + finding.advice;
  int severity = finding.severity == Severity::Error     ? 1
                 : finding.severity == Severity::Warning ? 2
                                                         : 3;
  return json::Object{{"range", rangeOf(finding.place, text)},
                      {"severity", severity},
                      {"code", finding.rule},
                      {"source", "ctxc"},
                      {"message", finding.message + advice},
                      {"relatedInformation", std::move(related)}};
}

//===----------------------------------------------------------------------===//
// From the editor
//===----------------------------------------------------------------------===//

/// Keeps the text of documents as the editor has them.
void Beside::follow(StringRef method, const json::Object &params) {
  const json::Object *document = params.getObject("textDocument");
  if (!document)
    return;
  std::string uri = uriOf(params);
  if (method == "textDocument/didOpen") {
    documents[uri] = Document{document->getInteger("version").value_or(0),
                              document->getString("text").value_or("").str(),
                              {},
                              std::nullopt};
  } else if (method == "textDocument/didClose") {
    documents.erase(uri);
  } else if (method == "textDocument/didChange") {
    llvm::lsp::DidChangeTextDocumentParams change;
    json::Path::Root root;
    auto known = documents.find(uri);
    if (known == documents.end() || !fromJSON(json::Object(params), change, root))
      return;
    Document &changed = known->second;
    changed.version = change.textDocument.version;
    (void)llvm::lsp::TextDocumentContentChangeEvent::applyTo(change.contentChanges, changed.text);
  }
}

void Beside::fromEditor(json::Object message) {
  std::string method = message.getString("method").value_or("").str();
  const json::Object *params = message.getObject("params");
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (params)
      follow(method, *params);
    const json::Value *id = message.get("id");
    if (id && (method == "textDocument/hover" || method == "textDocument/codeAction") && params)
      requests[textOf(*id)] = {method, *params};
  }
  toServer.send(message);
}

//===----------------------------------------------------------------------===//
// From MLIR's server
//===----------------------------------------------------------------------===//

/// Whether a document is to be judged before its diagnostics are published.
bool Beside::takeDiagnostics(const json::Object &params) {
  std::string uri = params.getString("uri").value_or("").str();
  auto known = documents.find(uri);
  if (known == documents.end())
    return false;
  Document &document = known->second;
  const json::Array *told = params.getArray("diagnostics");
  bool isWrong = !told || llvm::any_of(*told, [](const json::Value &each) {
    const json::Object *object = each.getAsObject();
    return !object || object->getInteger("severity").value_or(1) == 1;
  });
  if (isWrong) {
    document.verdict.reset();
    return false;
  }
  document.told = *told;
  if (params.getInteger("version").value_or(document.version) == document.version) {
    valid.insert(uri);
    changed.notify_one();
  }
  return true; // an older one is followed by another
}

/// What hovering over a line shows: the rule's page of each finding there, the report on a block.
static std::string pageOf(const TextVerdict &verdict, unsigned line) {
  std::string page;
  auto add = [&](const llvm::Twine &text) {
    page += (page.empty() ? "" : "\n\n---\n\n") + text.str();
  };
  for (const TextFinding &finding : verdict.findings) {
    if (finding.place.line != line)
      continue;
    add("**" + finding.message + "**" +
        (finding.advice.empty() ? "" : "\n\nWay out: " + finding.advice + "."));
    for (const auto &[name, text] : rulePages())
      if (name == finding.rule + ".md")
        add(text);
  }
  for (const auto &[at, report] : verdict.reports)
    if (at == line)
      add("```text\n" + report + "```");
  return page;
}

static json::Array actionsOf(const TextVerdict &verdict, const std::string &uri, StringRef text,
                             unsigned first, unsigned last) {
  json::Array actions;
  for (const TextFinding &finding : verdict.findings) {
    if (finding.place.line < first || finding.place.line > last)
      continue;
    for (const Fix &fix : finding.fixes) {
      json::Object edit{{"range", json::Object{{"start", position(fix.line, 0)},
                                               {"end", position(fix.line + 1, 0)}}},
                        {"newText", fix.lines}};
      json::Object changes{{uri, json::Array{std::move(edit)}}};
      actions.push_back(json::Object{{"title", fix.title},
                                     {"kind", "quickfix"},
                                     {"diagnostics", json::Array{diagnosticOf(finding, uri, text)}},
                                     {"edit", json::Object{{"changes", std::move(changes)}}}});
    }
  }
  return actions;
}

static unsigned lineOf(const json::Object *at) {
  return at ? at->getInteger("line").value_or(0) + 1 : 0;
}

/// Adds what is known of a document to the server's answer to a request.
void Beside::addTo(json::Object &answer, StringRef method, const json::Object &params) {
  auto known = documents.find(uriOf(params));
  if (known == documents.end() || !known->second.verdict)
    return;
  const auto &[uri, document] = *known;
  if (method == "textDocument/hover") {
    std::string page = pageOf(*document.verdict, lineOf(params.getObject("position")));
    if (page.empty())
      return;
    json::Object *result = answer.getObject("result");
    json::Object *contents = result ? result->getObject("contents") : nullptr;
    if (contents)
      (*contents)["value"] = contents->getString("value").value_or("").str() + "\n\n---\n\n" + page;
    else
      answer["result"] = json::Object{
          {"contents", json::Object{{"kind", "markdown"}, {"value", std::move(page)}}}};
    return;
  }
  const json::Object *range = params.getObject("range");
  if (!range)
    return;
  json::Array *actions = answer.getArray("result");
  json::Array all = actions ? *actions : json::Array();
  for (json::Value &action :
       actionsOf(*document.verdict, uri, document.text, lineOf(range->getObject("start")),
                 lineOf(range->getObject("end"))))
    all.push_back(std::move(action));
  answer["result"] = std::move(all);
}

void Beside::fromServer(json::Object message) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    const json::Object *params = message.getObject("params");
    if (message.getString("method") == StringRef("textDocument/publishDiagnostics") && params &&
        takeDiagnostics(*params))
      return;
    if (const json::Value *id = message.get("id"); id && !message.get("method"))
      if (auto request = requests.find(textOf(*id)); request != requests.end()) {
        addTo(message, request->second.first, request->second.second);
        requests.erase(request);
      }
  }
  toEditor.send(message);
}

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

void Beside::publish(const std::string &uri, const Document &document) {
  json::Array all = document.told;
  if (document.verdict)
    for (const TextFinding &finding : document.verdict->findings)
      all.push_back(diagnosticOf(finding, uri, document.text));
  toEditor.send(json::Object{{"jsonrpc", "2.0"},
                             {"method", "textDocument/publishDiagnostics"},
                             {"params", json::Object{{"uri", uri},
                                                     {"version", document.version},
                                                     {"diagnostics", std::move(all)}}}});
}

void Beside::judgeDocuments() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ends || !valid.empty(); });
    if (ends)
      return;
    std::string uri = *valid.begin();
    valid.erase(valid.begin());
    auto known = documents.find(uri);
    if (known == documents.end())
      continue;
    std::string text = known->second.text;
    int64_t version = known->second.version;
    lock.unlock();
    std::optional<TextVerdict> verdict = judgeText(text, plugins);
    lock.lock();
    known = documents.find(uri);
    if (known == documents.end() || known->second.version != version)
      continue; // it was typed on
    known->second.verdict = std::move(verdict);
    publish(uri, known->second);
  }
}

void Beside::end() {
  std::lock_guard<std::mutex> lock(mutex);
  ends = true;
  changed.notify_one();
}
