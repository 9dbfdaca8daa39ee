// The output is put together from halves of the stream, and each has a parameter of its own that
// brings it to its target: no op can be solved for both at once.
//
// RUN: %exits 0 ctxc check --try %s | FileCheck %s
// RUN: ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json

// CHECK: block 'halves': output-only
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK-NEXT: {{ *}}bias{{ }}
// CHECK: block 'mapped': output-only
// CHECK: block 'halves': exact
// CHECK: block 'mapped': exact
xf.block @halves(%x: tensor<8xf32>) -> tensor<8xf32> {
  %x1 = xf.slice %x from 0 : tensor<8xf32> to tensor<4xf32>
  %x2 = xf.slice %x from 4 : tensor<8xf32> to tensor<4xf32>
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x2 : tensor<4x3xf32>, tensor<4xf32>
  %y1 = xf.add %x1, %a : tensor<4xf32>
  %U = xf.param "up" : tensor<6x4xf32>
  %u = xf.linear %U * %y1 : tensor<6x4xf32>, tensor<4xf32>
  %h = xf.activation gelu %u : tensor<6xf32>
  %D = xf.param "down" : tensor<4x6xf32>
  %d = xf.linear %D * %h : tensor<4x6xf32>, tensor<6xf32>
  %y2 = xf.add %x2, %d : tensor<4xf32>
  %B = xf.param "bias" : tensor<4xf32>
  %z1 = xf.bias %y1 + %B : tensor<4xf32>, tensor<4xf32>
  %y = xf.concat %y2, %z1 : tensor<4xf32>, tensor<4xf32>
  xf.yield %y : tensor<8xf32>
}

// What is made of both halves does not matter: their values are what is asked for.
xf.block @mapped(%x: tensor<8xf32>) -> tensor<8xf32> {
  %x1 = xf.slice %x from 0 : tensor<8xf32> to tensor<4xf32>
  %x2 = xf.slice %x from 4 : tensor<8xf32> to tensor<4xf32>
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x2 : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x1, %a : tensor<4xf32>
  %V = xf.param "v" : tensor<4x4xf32>
  %d1 = xf.linear %V * %v : tensor<4x4xf32>, tensor<4xf32>
  %y1 = xf.add %v, %d1 : tensor<4xf32>
  %W = xf.param "w" : tensor<4x4xf32>
  %d2 = xf.linear %W * %v : tensor<4x4xf32>, tensor<4xf32>
  %y2 = xf.add %x2, %d2 : tensor<4xf32>
  %both = xf.concat %y1, %y2 : tensor<4xf32>, tensor<4xf32>
  %y = xf.activation tanh %both : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
