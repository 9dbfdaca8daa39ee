// RUN: ctxc-opt %s --xf-report-context --verify-diagnostics

// Everything downstream of attention depends on the context. The contextual part goes from what
// attention reads to where its result joins the residual stream.
xf.block @sequential(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{in the contextual part}}
  %Wq = xf.param "q" : tensor<8x8xf32>
  // expected-remark @below {{in the contextual part}}
  %q = xf.linear %Wq * %x : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark @below {{depends on the context, in the contextual part}}
  %a = xf.contextual "mix"(%q) : (tensor<8xf32>) -> tensor<8xf32>
  %Wo = xf.param "o" : tensor<8x8xf32>
  // expected-remark @below {{depends on the context, in the contextual part}}
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %v = xf.add %x, %o : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %d = xf.linear %W * %v : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// Branches parallel to the attention, added to its result before they join the residual stream: the
// context enters the stream at their sum, and W is a site.
xf.block @branches_summed_first(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{depends on the context, in the contextual part}}
  %a = xf.contextual "mix"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %x : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %s = xf.add %d, %a : tensor<8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %y = xf.add %x, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// A gate on the attention's result is not a branch of the residual stream.
xf.block @gated(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{depends on the context, in the contextual part}}
  %a = xf.contextual "mix"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %Wg = xf.param "g" : tensor<8x8xf32>
  %g = xf.linear %Wg * %x : tensor<8x8xf32>, tensor<8xf32>
  // expected-remark @below {{depends on the context, in the contextual part}}
  %m = xf.mul %a, %g : tensor<8xf32>, tensor<8xf32>
  // expected-remark-re @below {{{{^}}depends on the context{{$}}}}
  %y = xf.add %x, %m : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
