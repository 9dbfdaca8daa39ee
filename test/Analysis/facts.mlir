// RUN: ctxc-opt %s --xf-report-facts --verify-diagnostics

// Zero and image facts, one rule for each line.
xf.block @facts(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %W = xf.param "w" : tensor<16x16xf32>
  // Generic weights map a nonzero vector to one without zero entries.
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %a = xf.linear %W * %x : tensor<16x16xf32>, tensor<16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %V = xf.param "v" : tensor<16x16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %b = xf.linear %V * %x : tensor<16x16xf32>, tensor<16xf32>
  // The image of a norm is bounded: each entry by √16.
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set; bounded by 4.00}}
  %n = xf.normalize rms %a eps 1.0e-06 : tensor<16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %r = xf.activation relu %n : tensor<16xf32>
  // A product inherits the zeros of either factor. A sum has the zeros that both terms have, if a
  // parameter of its own moves one of them.
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %p = xf.mul %r, %n : tensor<16xf32>, tensor<16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %s = xf.add %r, %b : tensor<16xf32>
  // Terms computed from one value may cancel.
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %t = xf.sub %n, %r : tensor<16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set; bounded by 0.00}}
  %e = xf.sub %n, %n : tensor<16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %M = xf.param "m" : tensor<16x16xf32>
  // A matrix turns zero entries into a condition on the whole vector.
  // expected-remark @below {{an entry is zero on a null set, the vector on an open set}}
  %l = xf.linear %M * %r : tensor<16x16xf32>, tensor<16xf32>
  // A sum with it has generic entries.
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %q = xf.add %l, %b : tensor<16xf32>
  // One of two parts may be zero alone.
  // expected-remark @below {{an entry is zero on an open set, the vector on a null set}}
  %k = xf.concat %l, %n : tensor<16xf32>, tensor<16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %i = xf.slice %k from 0 : tensor<32xf32> to tensor<16xf32>
  // expected-remark @below {{an entry is zero never, the vector never; bounded by 1.00}}
  %g = xf.activation sigmoid %s : tensor<16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set; bounded by 30.00}}
  %c = xf.softcap %s at 30.0 : tensor<16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set; bounded by 15.00}}
  %h = xf.times %c by -0.5 : tensor<16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set; bounded by 0.00}}
  %z = xf.times %s by 0.0 : tensor<16xf32>
  // Nothing is known about an op without facts.
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %o = xf.contextual "mix"(%s) : (tensor<16xf32>) -> tensor<16xf32>
  xf.yield %h : tensor<16xf32>
}

// The weights of a router are positive, so that they do not cancel; experts behave like matrices.
xf.block @mixture(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %R = xf.param "router" : tensor<4x16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %l = xf.linear %R * %x : tensor<4x16xf32>, tensor<16xf32>
  // expected-remark @below {{an entry is zero never, the vector never; bounded by 1.00}}
  %p = xf.softmax %l : tensor<4xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %s = xf.top_k %p k 2 : tensor<4xf32>
  // expected-remark @below {{an entry is zero never, the vector never; bounded by 1.00}}
  %g = xf.gather %p[%s] : tensor<4xf32>, tensor<2xi32>
  // expected-remark @below {{an entry is zero never, the vector never; bounded by 1.00}}
  %w = xf.normalize sum %g eps 0.0 : tensor<2xf32>
  // Numbers of both signs may nearly cancel, so that their shares have no bound.
  // expected-remark-re @below {{an entry is zero on a null set, the vector on a null set{{$}}}}
  %n = xf.normalize sum %l eps 0.0 : tensor<4xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %W = xf.param "w" : tensor<4x16x16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %h = xf.expert_linear %W[%s] * %x : tensor<4x16x16xf32>, tensor<2xi32>, tensor<16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %r = xf.activation relu %h : tensor<2x16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %d = xf.expert_linear %W[%s] * %r : tensor<4x16x16xf32>, tensor<2xi32>, tensor<2x16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %m = xf.combine %w, %h : tensor<2xf32>, tensor<2x16xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %z = xf.combine %w, %d : tensor<2xf32>, tensor<2x16xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %o = xf.outer %w, %x : tensor<2xf32>, tensor<16xf32>
  xf.yield %m : tensor<16xf32>
}

// A row of zeros of a known matrix makes an entry that is zero; a quotient is another function on either side of its
// divisor's zeros, and may be a constant on one.
xf.block @known(%x: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %M = xf.setting "M" : tensor<2x2xf32> = dense<[[1.0, 2.0], [0.0, 0.0]]> : tensor<2x2xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %m = xf.linear %M * %x : tensor<2x2xf32>, tensor<2xf32>
  // expected-remark @below {{an entry is zero never, the vector never; bounded by 1.00}}
  %one = xf.setting "one" : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  // expected-remark @below {{an entry is zero on a null set, the vector on a null set}}
  %q = xf.div %x, %z : tensor<2xf32>, tensor<2xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %s = xf.sub %q, %one : tensor<2xf32>
  // expected-remark @below {{an entry is zero on an open set, the vector on an open set}}
  %y = xf.add %m, %s : tensor<2xf32>
  xf.yield %y : tensor<2xf32>
}
