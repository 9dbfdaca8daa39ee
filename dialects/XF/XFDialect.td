#ifndef CTXC_XF_DIALECT_TD
#define CTXC_XF_DIALECT_TD

include "mlir/IR/OpBase.td"

def XF_Dialect : Dialect {
  let name = "xf";
  let cppNamespace = "::ctxc::xf";
  let summary = "transformer architectures, one token at a time";
  let description = [{
    A value of this dialect is what *one token* carries at one place of the
    network: `tensor<640xf32>` is a residual vector, `tensor<4x256xf32>` the
    queries of four heads. There is no sequence dimension. Every op is a
    function of its token alone, but for the *contextual* ops (attention,
    convolution over positions, recurrences), which also read the tokens before
    it. So the text of a block is the block's equation, and what depends on the
    context is visible: whatever a contextual op reaches.

    Parameters are values too (`xf.param`), of the type that the checkpoint
    stores; an op that uses one widens it to float32.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // CTXC_XF_DIALECT_TD
