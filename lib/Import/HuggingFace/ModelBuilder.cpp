#include "ModelBuilder.h"
#include "ctxc/Program/ModelEnds.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

ModelBuilder::ModelBuilder(const Family &family, Task task, StoredTensors &tensors,
                           StringRef configPath, mlir::MLIRContext &context)
    : family(family), tensors(tensors), builder(&context),
      file(mlir::FileLineColLoc::get(&context, configPath, 1, 1)),
      stem(tensors.stemOf(family.stems(), family.embeddingName()).str()) {
  StringRef part = family.headPart();
  bool isStored = part.empty() ? tensors.has(storedHead()) : tensors.has(part);
  withHead = hf::readsHead(task, tensors, isStored, family.tied && part.empty());
}

mlir::OwningOpRef<mlir::ModuleOp> ModelBuilder::build() {
  mlir::OwningOpRef<mlir::ModuleOp> module(mlir::ModuleOp::create(file));
  builder.setInsertionPointToEnd(module->getBody());
  mlir::IntegerAttr positions;
  if (family.positions)
    positions = builder.getI64IntegerAttr(family.positions);
  auto model = xf::ModelOp::create(builder, named("model"), "model", positions);
  if (!withHead)
    model->setAttr(headlessName, builder.getUnitAttr());
  builder.setInsertionPointToEnd(&model.getBody().emplaceBlock());
  BlockBuilder ends(builder, tensors, stem, /*relative=*/false, file);

  auto idType = mlir::RankedTensorType::get({}, builder.getI32Type());
  Value token = xf::TokenOp::create(builder, named("token"), idType);
  Value table = matrix("E", embedding());
  Value x = family.afterEmbedding(ends, ends.embed("x", table, token));
  for (int64_t i = 0; i < family.layers; ++i)
    x = layer(i, x, model);
  x = family.beforeHead(ends, x);
  if (withHead)
    x = head(ends, x, table);
  xf::YieldOp::create(builder, file, x);
  return module;
}

/// The logits of the last hidden state.
mlir::Value ModelBuilder::head(BlockBuilder &ends, Value x, Value table) {
  BlockBuilder outside(builder, tensors, "", /*relative=*/false, file);
  x = family.headInput(outside, x);
  if (headName() != embedding())
    tensors.setHead(headName());
  Value matrixOfHead = headName() == embedding() ? table : matrix("head", headName());
  Value logits = ends.linear("logits", matrixOfHead, x);
  if (family.headBias)
    logits = ends.bias("logits_biased", logits, headBias());
  return family.afterHead(ends, logits);
}

bool ModelBuilder::hasOwnHead() {
  return withHead && tensors.has(storedHead()) && tensors.has(embedding()) &&
         !tensors.equal(storedHead(), embedding());
}

// Where config ties head and embedding but the file holds only the head's
// tensor, that one is both; where it holds both with different numbers, they
// are two. transformers does the same.
std::string ModelBuilder::embedding() {
  std::string name = stem + family.embeddingName().str();
  return family.tied && !tensors.has(name) && tensors.has(storedHead()) ? storedHead() : name;
}

mlir::Value ModelBuilder::headBias() {
  SmallVector<StringRef> names = family.headBiasNames();
  std::string name = names.empty() ? StringRef(storedHead()).rsplit('.').first.str() + ".bias"
                                   : tensors.stemOf(names, "").str();
  auto type = tensors.type(name, {family.vocabulary}, builder.getContext());
  return xf::ParamOp::create(
      builder, mlir::NameLoc::get(builder.getStringAttr("head_bias"), named(name)), type, name);
}

mlir::Value ModelBuilder::matrix(StringRef as, const std::string &name) {
  auto type = tensors.type(name, {family.vocabulary, family.hidden}, builder.getContext());
  mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(as), named(name));
  return xf::ParamOp::create(builder, loc, type, name);
}

mlir::Value ModelBuilder::layer(int64_t i, Value x, xf::ModelOp model) {
  std::string prefix = stem + (family.layerStem() + Twine(i) + ".").str();
  auto [block, settings] = sharedBlock(i, prefix, x.getType(), model);
  mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr("x" + Twine(i + 1)),
                                          named(StringRef(prefix).drop_back()));
  return xf::LayerOp::create(builder, loc, x.getType(), block.getSymName(), x, prefix, settings,
                             mlir::DictionaryAttr(), mlir::ArrayAttr())
      .getResult(0);
}

/// The block of layer `i`, at `prefix`, and what the layer gives to its settings: one that an
/// earlier layer has too, if it has one of the same text.
std::pair<xf::BlockOp, mlir::DictionaryAttr> ModelBuilder::sharedBlock(int64_t i,
                                                                       const std::string &prefix,
                                                                       mlir::Type type,
                                                                       xf::ModelOp model) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(model);
  auto block = xf::BlockOp::create(builder, named(StringRef(prefix).drop_back()), family.name(),
                                   builder.getFunctionType(type, type), mlir::StringAttr(),
                                   mlir::ArrayAttr(), mlir::ArrayAttr());
  mlir::Block &entry = block.getBody().emplaceBlock();
  Value x = entry.addArgument(type, named("x"));
  builder.setInsertionPointToEnd(&entry);
  BlockBuilder b(builder, tensors, prefix, /*relative=*/true, file);
  Value y = family.block(b, x, i);
  xf::YieldOp::create(builder, file, y);

  std::string text;
  raw_string_ostream os(text);
  block->print(os, mlir::OpPrintingFlags().useLocalScope().assumeVerified());
  auto [known, isNew] = blocks.try_emplace(text, block);
  if (!isNew)
    block.erase();
  else if (blocks.size() > 1)
    block.setSymName((family.name() + "_" + Twine(blocks.size())).str());
  return {known->second, b.settings()};
}
