// RUN: ctxc-opt %s --xf-report-context --verify-diagnostics

// Downstream of attention depends on the context; up to where its result joins
// the residual stream, and upstream of it, is the contextual part.
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
