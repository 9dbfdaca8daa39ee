#ifndef CTXC_XF_DIALECT_TD
#define CTXC_XF_DIALECT_TD

include "mlir/IR/OpBase.td"

def XF_Dialect : Dialect {
  let name = "xf";
  let cppNamespace = "::ctxc::xf";
  let summary = "transformer architectures, one token at a time";
  let description = [{
    A value of this dialect belongs to *one token* at one place of the network: `tensor<640xf32>` is
    a residual vector, `tensor<4x256xf32>` are the queries of four heads. There is no sequence
    dimension. Every op is a function of its own token only, except for the *contextual* ops
    (attention, convolution over positions, recurrences), which also read the tokens before it. The
    text of a block is therefore the block's equation, and it shows what depends on the context:
    everything that a contextual op reaches.

    Parameters are values too (`xf.param`), of the type in which the checkpoint stores them. An op
    that uses a parameter widens it to float32.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // CTXC_XF_DIALECT_TD
