#include "ctxc/Page/Frame.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

using namespace ctxc;
using llvm::StringRef;

static constexpr StringRef frame =
#include "page.html.inc"
    ;
static constexpr StringRef style =
#include "page.css.inc"
    ;
static constexpr StringRef script =
#include "page.js.inc"
    ;

void page::writePage(llvm::raw_ostream &os, const Content &content) {
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(script));
  const std::pair<StringRef, std::string> parts[] = {
      {"script-digest", "sha256-" + llvm::encodeBase64(digest)},
      {"command", content.command},
      {"title", content.title},
      {"style", style.str()},
      {"heading", content.heading},
      {"lead", content.lead},
      {"figures", content.figures},
      {"footer", content.footer},
      {"script", script.str()}};
  // One pass over the frame, so that filled-in text is not searched for places to fill.
  StringRef rest = frame;
  while (!rest.empty()) {
    auto [before, after] = rest.split("{{");
    os << before;
    auto [place, behind] = after.split("}}");
    for (auto &[key, text] : parts)
      if (key == place)
        os << text;
    rest = behind;
  }
}
