#include "ctxc/Report/Place.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace ctxc;

// The importer's locations are a value's name around a module's name around line 1, column 1
// of the configuration file: an op of a checkpoint has no line.
Place ctxc::placeOf(Location location) {
  Place place;
  location->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      place.module = name.getName().str();
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    place.file = file.getFilename().str();
    place.line = file.getLine();
    place.column = file.getColumn();
    return WalkResult::interrupt();
  });
  if (!place.module.empty() && place.line == 1 && place.column == 1)
    place.line = place.column = 0;
  else if (place.line)
    place.module.clear();
  return place;
}

Place ctxc::placeOf(Operation *op) {
  for (Operation *around = op; around; around = around->getParentOp())
    if (Place place = placeOf(around->getLoc()); place.isKnown())
      return place;
  Place place;
  auto block = dyn_cast_if_present<xf::BlockOp>(op);
  if (!block && op)
    block = op->getParentOfType<xf::BlockOp>();
  if (block)
    place.module = "block '" + block.getSymName().str() + "'";
  auto model = dyn_cast_if_present<xf::ModelOp>(op);
  if (!model && op)
    model = op->getParentOfType<xf::ModelOp>();
  if (model)
    place.module = "model '" + model.getSymName().str() + "'";
  return place;
}

std::string ctxc::text(const Place &place) {
  std::string text = place.file;
  if (place.line)
    text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  if (!place.module.empty())
    text += (text.empty() ? "" : ": ") + place.module;
  return text;
}
