// A verdict in graphviz's language.
#include "ctxc/Report/Graph.h"
#include "Folds.h"
#include "GraphStyle.h"
#include "Mixtures.h"
#include "OpText.h"
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Report/Place.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::graph;

namespace {
/// One group of layers as a cluster.
class BlockDrawing {
public:
  BlockDrawing(llvm::raw_ostream &os, ValueNames &names, const VerdictGroup &group, unsigned number)
      : os(os), names(names), group(group), number(number), graph(group.block),
        zeros(group.block, group.options->layer),
        context(graph, zeros, group.options->inputsAreSources),
        sites(graph, zeros, group.options->bindings, group.options->scope),
        mixtures(findMixtures(group.block)) {
    readVerdict();
    folds.emplace(group.block, [&](Operation *op) { return kindOf(op); });
  }

  /// Adds to `drawn` what the drawing has.
  void print(Drawn &drawn);
  /// The op that the legend stands below.
  std::string lastVertex() {
    return id(graph.vertex(group.block->getRegion(0).front().getTerminator()));
  }

private:
  void readVerdict();
  Part partOf(Operation *op) const;
  unsigned kindOf(Operation *op) const;
  std::string nameOf(Operation *op) const;
  unsigned shownVertex(Value value) const {
    Operation *op = value.getDefiningOp();
    return op ? graph.vertex(folds->shown(op)) : graph.vertex(value);
  }
  std::string id(unsigned vertex) const {
    return "b" + std::to_string(number) + "_" + std::to_string(vertex);
  }
  void printTitle();
  void printInput(unsigned vertex, StringRef label);
  void printOp(Operation *op);
  void printCluster(StringRef name, const llvm::Twine &label, StringRef fill, StringRef border,
                    llvm::function_ref<bool(Operation *)> contains);
  void readEdges(Operation *op, Drawn &drawn);
  void printEdges();
  std::string parameterLine(Value parameter) const;

  llvm::raw_ostream &os;
  ValueNames &names;
  const VerdictGroup &group;
  unsigned number;
  BlockGraph graph;
  ZeroRange zeros;
  ContextDependence context;
  Sites sites;
  llvm::SmallVector<Mixture> mixtures;
  std::optional<Folds> folds;
  struct Edge {
    bool inChain = false, depends = false, selects = false;
  };
  llvm::MapVector<std::pair<unsigned, unsigned>, Edge> edges; ///< by their vertices
  using Ops = llvm::SmallPtrSet<Operation *, 8>;
  Ops causes, noted, inputs, outputs, matrices, links, goals;
  Ops clustered; ///< drawn in a frame
};
} // namespace

/// Parameters and settings: shown in the ops that read them.
static bool isSource(Operation *op) { return op && op->getNumOperands() == 0; }

void BlockDrawing::readVerdict() {
  const Verdict &verdict = *group.verdict;
  for (const Finding &cause : verdict.causes) {
    causes.insert(cause.op);
    for (const Remark &note : cause.notes)
      noted.insert(note.op);
  }
  inputs.insert(verdict.plan.inputSites.begin(), verdict.plan.inputSites.end());
  for (const OutputPatch &output : verdict.plan.outputs) {
    outputs.insert(output.site);
    if (output.normMatrix)
      matrices.insert(output.normMatrix);
    for (ChainLink link : output.links)
      links.insert(link.op);
    goals.insert(output.goal.getDefiningOp());
  }
}

Part BlockDrawing::partOf(Operation *op) const {
  return causes.contains(op)     ? Part::Cause
         : inputs.contains(op)   ? Part::Input
         : outputs.contains(op)  ? Part::Output
         : matrices.contains(op) ? Part::NormMatrix
         : links.contains(op)    ? Part::Link
         : noted.contains(op)    ? Part::Noted
                                 : Part::Plain;
}

/// The start of a small line below another.
static std::string softLine(const llvm::Twine &text) {
  return "<br/><font point-size=\"10\" color=\"#444444\">" + escape(text.str());
}

/// What the drawing says of an op beside its text.
unsigned BlockDrawing::kindOf(Operation *op) const {
  unsigned frame = sites.inContextualPart(op);
  for (const Mixture &mixture : mixtures)
    frame = mixture.router.contains(op) ? 2 : mixture.experts.contains(op) ? 3 : frame;
  return unsigned(partOf(op)) * 8 + frame * 2 + goals.contains(op);
}

/// "mlp.norm", the path of the program's module within its layer; else the value's name, or
/// nothing.
std::string BlockDrawing::nameOf(Operation *op) const {
  Place place = placeOf(op->getLoc());
  if (!place.line || place.module.empty())
    return names.name(op);
  StringRef path = place.module;
  if (!group.ops.empty() && path.consume_front(xf::LayerOp(group.ops.front()).getPrefix()))
    path.consume_front(".");
  return path.str();
}

/// "mlp.down_proj.weight 640×2048", with why it may not be patched.
std::string BlockDrawing::parameterLine(Value parameter) const {
  Operation *source = parameter.getDefiningOp();
  auto param = dyn_cast<xf::ParamOp>(source);
  std::string line = softLine("");
  if (param) {
    line += escape(param.getName()) + " " + shapeText(parameter);
    if (sites.isFrozen(param))
      line += "</font><font point-size=\"10\" color=\"#b00020\"> frozen";
    else if (group.options->bindings.shared.contains(param.getName()))
      line += "</font><font point-size=\"10\" color=\"#b00020\"> shared with another layer";
  } else if (auto setting = dyn_cast<xf::SettingOp>(source)) {
    line += "setting " + escape(setting.getName());
  } else {
    line += escape(opText(source));
  }
  return line + "</font>";
}

void BlockDrawing::printInput(unsigned vertex, StringRef label) {
  os << "    " << id(vertex) << " [shape=oval, style=filled, fillcolor=\"#eeeeee\", color=\""
     << (context.vertices().test(vertex) ? contextColour : plainEdge) << "\", label=\"" << label
     << "\"];\n";
}

void BlockDrawing::printOp(Operation *op) {
  const Style &style = styleOf(partOf(op));
  std::string name = nameOf(op), label;
  if (!name.empty())
    label = "<b>" + escape(name) + "</b><br/>";
  label += escape(folds->text(op));
  if (Place place = placeOf(op->getLoc()); place.width)
    label +=
        softLine(llvm::sys::path::filename(place.file) + ":" + llvm::Twine(place.line)) + "</font>";
  for (Value operand : op->getOperands())
    if (isSource(operand.getDefiningOp()))
      label += parameterLine(operand);
  bool strong = style.part != Part::Plain;
  os << "    " << id(graph.vertex(op)) << " [fillcolor=\"" << style.fill << "\", color=\""
     << (strong                ? style.border
         : context.depends(op) ? contextColour
                               : style.border)
     << "\", penwidth=" << (strong ? "2.4" : "1.2") << (goals.contains(op) ? ", peripheries=2" : "")
     << ", label=<" << label << ">];\n";
}

/// Draws several edges between two vertices as one, and leaves out a loop's edge to itself.
void BlockDrawing::readEdges(Operation *op, Drawn &drawn) {
  unsigned to = graph.vertex(folds->shown(op));
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (isSource(value.getDefiningOp()) || shownVertex(value) == to)
      continue;
    Edge &edge = edges[{shownVertex(value), to}];
    for (const OutputPatch &output : group.verdict->plan.outputs)
      edge.inChain |= llvm::any_of(output.links, [&](ChainLink link) {
        return link.op == op && link.operand == operand.getOperandNumber();
      });
    edge.selects |= getElementTypeOrSelf(value.getType()).isInteger();
    edge.depends |= context.depends(value);
    drawn.contextEdge |= edge.depends;
    drawn.plainEdge |= !edge.depends;
    drawn.selection |= edge.selects;
  }
}

void BlockDrawing::printEdges() {
  for (const auto &[ends, edge] : edges)
    os << "    " << id(ends.first) << " -> " << id(ends.second) << " [color=\""
       << (edge.inChain   ? chainEdge
           : edge.depends ? contextColour
                          : plainEdge)
       << "\", penwidth="
       << (edge.inChain   ? "3"
           : edge.depends ? "1.8"
                          : "1")
       << (edge.selects ? ", style=dashed" : "") << "];\n";
}

void BlockDrawing::printTitle() {
  xf::BlockOp block = group.block;
  os << "    label=<<b>block '" << escape(block.getSymName()) << "'</b>";
  if (!group.ops.empty())
    os << ", " << (group.layers.size() == 1 ? "layer " : "layers ") << formatRanges(group.layers);
  os << ": <b>" << stringify(group.verdict->kind) << "</b>";
  for (const Finding &cause : group.verdict->causes)
    os << "<br/><font color=\"#b00020\">" << escape(cause.rule) << "</font>";
  os << ">;\n";
}

/// Draws the ops for which `contains` is true and that no earlier cluster has, in a frame; nothing
/// where there are none.
void BlockDrawing::printCluster(StringRef name, const llvm::Twine &label, StringRef fill,
                                StringRef border, llvm::function_ref<bool(Operation *)> contains) {
  llvm::SmallVector<Operation *> inside;
  for (Operation &op : group.block->getRegion(0).front())
    if (!isSource(&op) && folds->shown(&op) == &op && !clustered.contains(&op) && contains(&op))
      inside.push_back(&op);
  if (inside.empty())
    return;
  os << "    subgraph cluster_" << number << "_" << name << " {\n    label=<" << label
     << ">; labeljust=l; style=filled; color=\"" << border << "\"; fillcolor=\"" << fill << "\";\n";
  for (Operation *op : inside) {
    printOp(op);
    clustered.insert(op);
  }
  os << "    }\n";
}

void BlockDrawing::print(Drawn &drawn) {
  os << "  subgraph cluster_" << number << " {\n";
  printTitle();
  Block &body = group.block->getRegion(0).front();
  for (auto [i, argument] : llvm::enumerate(body.getArguments()))
    printInput(graph.vertex(argument), body.getNumArguments() == 1 ? "x" : "x" + std::to_string(i));
  printCluster("context", "A(C, <i>x</i>)", contextualFill, contextualBorder,
               [&](Operation *op) { return sites.inContextualPart(op); });
  drawn.contextual |= !clustered.empty();
  drawn.mixture |= !mixtures.empty();
  drawn.goal |= !goals.empty();
  for (size_t i = 0; i < mixtures.size(); ++i) {
    const Mixture &mixture = mixtures[i];
    std::string which = llvm::formatv("{0} of {1}", mixture.selected, mixture.count);
    std::string index = std::to_string(i);
    printCluster("router" + index, "router: selects " + which, mixtureFill, mixtureBorder,
                 [&](Operation *op) { return mixture.router.contains(op); });
    printCluster("experts" + index, "experts: the " + which + " selected", mixtureFill,
                 mixtureBorder, [&](Operation *op) { return mixture.experts.contains(op); });
  }
  for (Operation &op : body) {
    if (isSource(&op))
      continue;
    drawn.parts.insert(partOf(&op));
    if (folds->shown(&op) == &op && !clustered.contains(&op))
      printOp(&op);
    readEdges(&op, drawn);
  }
  printEdges();
  os << "  }\n";
}

void ctxc::printGraph(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) {
  os << "digraph verdicts {\n"
        "  graph [fontname=\"Helvetica\", fontsize=14, rankdir=TB, nodesep=0.25, ranksep=0.35];\n"
        "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=12, "
        "margin=\"0.12,0.06\"];\n"
        "  edge [arrowsize=0.7];\n";
  ValueNames names;
  Drawn drawn;
  std::string last;
  for (auto [i, group] : llvm::enumerate(groups)) {
    BlockDrawing drawing(os, names, group, i);
    drawing.print(drawn);
    last = drawing.lastVertex();
  }
  printLegend(os, drawn);
  // Below the last block, so that one block's drawing stays narrow.
  if (!last.empty())
    os << "  " << last << " -> legend [style=invis];\n";
  os << "}\n";
}
