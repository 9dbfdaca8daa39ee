// A ball with a frozen scale, and a box: the bounds add up, but not to a single number.
//
// RUN: %exits 1 ctxc check --witness %s 2>&1 | FileCheck %s

xf.block @two_bounds_of_two_kinds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = xf.param "conv" : tensor<4x3xf32>
  %a = xf.conv %k, %x : tensor<4x3xf32>, tensor<4xf32>
  %v = xf.add %x, %a : tensor<4xf32>
  %Wd = xf.param "w1" : tensor<4x4xf32>
  %d = xf.linear %Wd * %v : tensor<4x4xf32>, tensor<4xf32>
  // CHECK: :[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}past this xf.normalize no patch moves the output by more than 2·√4·‖m‖∞ + 2·3·√4 {{.}}bounded-output]
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<4xf32>
  %mr = xf.param "m" frozen : tensor<4xf32>
  %r = xf.scale %n by %mr : tensor<4xf32>, tensor<4xf32>
  %We = xf.param "w2" : tensor<4x4xf32>
  %e = xf.linear %We * %v : tensor<4x4xf32>, tensor<4xf32>
  %f = xf.softcap %e at 3.0 : tensor<4xf32>
  %w = xf.add %v, %r : tensor<4xf32>
  %y = xf.add %w, %f : tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
// CHECK: block 'two_bounds_of_two_kinds': rejected
// CHECK: block 'two_bounds_of_two_kinds': no patch comes nearer than [[E:[0-9.e+]+]]{{$}}
// CHECK: came as near as [[E]]{{$}}
