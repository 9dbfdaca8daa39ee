// Symbols that differ only in characters which C identifiers cannot have stay two kernels.
// RUN: ctxc compile %s --emit=linalg -o - | FileCheck %s
// CHECK-DAG: func.func private @ctxc_l_a_[[DIGEST:[0-9a-f]+]](
// CHECK-DAG: func.func private @ctxc_l_a(
xf.block @l.a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = xf.param "w" : tensor<4x4xf32>
  %q = xf.linear %w * %x : tensor<4x4xf32>, tensor<4xf32>
  %q1 = xf.reshape %q : tensor<4xf32> to tensor<1x4xf32>
  %a1 = xf.attention %q1, %q1, %q1 scale 0.5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %a = xf.reshape %a1 : tensor<1x4xf32> to tensor<4xf32>
  %mid = xf.add %x, %a : tensor<4xf32>
  %down = xf.param "down" : tensor<4x4xf32>
  %m = xf.linear %down * %mid : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %mid, %m : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
xf.block @l_a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = xf.param "w" : tensor<4x4xf32>
  %q = xf.linear %w * %x : tensor<4x4xf32>, tensor<4xf32>
  %q1 = xf.reshape %q : tensor<4xf32> to tensor<1x4xf32>
  %a1 = xf.attention %q1, %q1, %q1 scale 0.25 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
  %a = xf.reshape %a1 : tensor<1x4xf32> to tensor<4xf32>
  %mid = xf.add %x, %a : tensor<4xf32>
  %down = xf.param "down" : tensor<4x4xf32>
  %m = xf.linear %down * %mid : tensor<4x4xf32>, tensor<4xf32>
  %y = xf.add %mid, %m : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
xf.model @model {
  %token = xf.token : tensor<i32>
  %table = xf.param "embed" : tensor<16x4xf32>
  %x = xf.embed %table[%token] : tensor<16x4xf32>, tensor<i32>
  %y = xf.layer @l.a(%x) at "0." : (tensor<4xf32>) -> tensor<4xf32>
  %z = xf.layer @l_a(%y) at "1." : (tensor<4xf32>) -> tensor<4xf32>
  xf.yield %z : tensor<4xf32>
}
