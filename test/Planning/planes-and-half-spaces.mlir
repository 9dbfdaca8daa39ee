// What no patch leaves: the entries of shares add up to one, and a matrix and its transpose turn no vector by more than a
// right angle. The proof's images are those of the ops, and no other.
// RUN: not ctxc check %s --proof %t.json 2>&1 | FileCheck %s
// RUN: ctxc check-proof %s %t.json --seed 5 | FileCheck %s --check-prefix=PROOF
// RUN: sed 's/"total": 1/"total": 2/' %t.json > %t.sum.json
// RUN: not ctxc check-proof %s %t.sum.json 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: sed 's/"half-space", "normal": "%[a-z0-9]*"/"half-space", "normal": "%x"/' %t.json > %t.side.json
// RUN: not ctxc check-proof %s %t.side.json 2>&1 | FileCheck %s --check-prefix=SIDE
// PROOF: the proof holds
// SUM: behind {{.*}}: total: found '2.000000e+00', expected '1.000000e+00'
// SIDE: behind {{.*}}: normal: found '%x', expected '%

// CHECK-DAG: error: block 'shares' cannot take the context into its parameters: past this xf.normalize patches move the output in at most 3 of 4 dimensions
xf.block @shares(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d = xf.linear %W * %v : tensor<4x4xf32>, tensor<4xf32>
  %n = xf.normalize sum %d eps 0.0 : tensor<4xf32>
  %y = xf.add %v, %n : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// CHECK-DAG: block 'half_space': rejected {{\[}}counterexample{{\]}}
xf.block @half_space(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<6x4xf32>
  %u = xf.linear %W * %v : tensor<6x4xf32>, tensor<4xf32>
  %g = xf.linear %W * %u transposed : tensor<6x4xf32>, tensor<6xf32>
  %y = xf.add %v, %g : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// A skew matrix turns every vector by a right angle.
// CHECK-DAG: block 'skew': rejected {{\[}}counterexample{{\]}}
xf.block @skew(%x: tensor<4xf32>) -> tensor<4xf32> {
  %K = xf.param "conv" : tensor<4x3xf32>
  %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %c : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %a = xf.linear %W * %v : tensor<4x4xf32>, tensor<4xf32>
  %b = xf.linear %W * %v transposed : tensor<4x4xf32>, tensor<4xf32>
  %s = xf.sub %a, %b : tensor<4xf32>
  %y = xf.add %v, %s : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
