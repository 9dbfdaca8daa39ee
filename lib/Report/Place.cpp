#include "ctxc/Report/Place.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace ctxc;

// An importer's locations are a value's name around a module's name around a line: that of the
// program, or line 1, column 1 of the configuration file, since an op of a checkpoint has no line.
Place ctxc::placeOf(Location location) {
  Place place;
  unsigned names = 0;
  location->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner)) {
      place.module = name.getName().str();
      ++names;
    }
    auto file = dyn_cast<FileLineColRange>(inner);
    if (!file)
      return WalkResult::advance();
    place.file = file.getFilename().str();
    place.line = file.getStartLine();
    place.column = file.getStartColumn();
    if (file.getEndLine() == place.line)
      place.width = file.getEndColumn() - place.column;
    return WalkResult::interrupt();
  });
  if (!place.module.empty() && place.line == 1 && place.column == 1)
    place.line = place.column = 0;
  else if (place.line && names < 2)
    place.module.clear();
  return place;
}

std::vector<Place> ctxc::callersOf(Location location) {
  std::vector<Place> callers;
  while (auto name = dyn_cast<NameLoc>(location))
    location = name.getChildLoc();
  for (auto call = dyn_cast<CallSiteLoc>(location); call; call = dyn_cast<CallSiteLoc>(location)) {
    location = call.getCaller();
    callers.push_back(placeOf(location));
  }
  return callers;
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
  else if (!place.module.empty())
    text += (text.empty() ? "" : ": ") + place.module;
  return text;
}
