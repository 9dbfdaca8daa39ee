// The gated residual of GTrXL around the mixer: its gates belong to the contextual part.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: %exits 0 ctxc check --try --plan down %s | FileCheck --check-prefix=ALONE %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'gtrxl': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: block 'gtrxl': exact
// ALONE: block 'gtrxl': output-only
// ALONE: block 'gtrxl': exact
xf.block @gtrxl(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %Wz = xf.param "wz" : tensor<4x4xf32>
  %Uz = xf.param "uz" : tensor<4x4xf32>
  %Wr = xf.param "wr" : tensor<4x4xf32>
  %Ur = xf.param "ur" : tensor<4x4xf32>
  %Wg = xf.param "wg" : tensor<4x4xf32>
  %Ug = xf.param "ug" : tensor<4x4xf32>
  %za = xf.linear %Wz * %a : tensor<4x4xf32>, tensor<4xf32>
  %zx = xf.linear %Uz * %x : tensor<4x4xf32>, tensor<4xf32>
  %zs = xf.add %za, %zx : tensor<4xf32>
  %z = xf.activation sigmoid %zs : tensor<4xf32>
  %ra = xf.linear %Wr * %a : tensor<4x4xf32>, tensor<4xf32>
  %rx = xf.linear %Ur * %x : tensor<4x4xf32>, tensor<4xf32>
  %rs = xf.add %ra, %rx : tensor<4xf32>
  %r = xf.activation sigmoid %rs : tensor<4xf32>
  %ga = xf.linear %Wg * %a : tensor<4x4xf32>, tensor<4xf32>
  %rxx = xf.mul %r, %x : tensor<4xf32>, tensor<4xf32>
  %gx = xf.linear %Ug * %rxx : tensor<4x4xf32>, tensor<4xf32>
  %gs = xf.add %ga, %gx : tensor<4xf32>
  %g = xf.activation tanh %gs : tensor<4xf32>
  %one = xf.setting "one" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  %i = xf.sub %one, %z : tensor<4xf32>
  %l = xf.mul %i, %x : tensor<4xf32>, tensor<4xf32>
  %m = xf.mul %z, %g : tensor<4xf32>, tensor<4xf32>
  %v = xf.add %l, %m : tensor<4xf32>
  %n = xf.normalize rms %v eps 1.0e-5 : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %n : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y = xf.add %v, %d : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
