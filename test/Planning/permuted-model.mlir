// Patches behind permutations are exact in the float64 reference, and in compiled kernels up to roundings.
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --keep 2

xf.block @shuffled(%x: tensor<6xf32>) -> tensor<6xf32> {
  %q = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %o = xf.attention %q, %q, %q scale 5.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %c = xf.reshape %o : tensor<2x3xf32> to tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<2x3xf32>
  %t = xf.transpose %r by [1, 0] : tensor<2x3xf32>
  %a = xf.slice %t from 0 : tensor<3x2xf32> to tensor<1x2xf32>
  %b = xf.slice %t from 1 : tensor<3x2xf32> to tensor<2x2xf32>
  %p = xf.concat %b, %a : tensor<2x2xf32>, tensor<1x2xf32>
  %f = xf.reshape %p : tensor<3x2xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

xf.block @exchanged(%x: tensor<6xf32>) -> tensor<6xf32> {
  %q = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %o = xf.attention %q, %q, %q scale 5.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %c = xf.reshape %o : tensor<2x3xf32> to tensor<6xf32>
  %v = xf.add %x, %c : tensor<6xf32>
  %U = xf.param "up" : tensor<8x6xf32>
  %u = xf.linear %U * %v : tensor<8x6xf32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<8xf32>
  %D = xf.param "down" : tensor<6x8xf32>
  %d = xf.linear %D * %h : tensor<6x8xf32>, tensor<8xf32>
  %r = xf.reshape %d : tensor<6xf32> to tensor<2x3xf32>
  %f0 = xf.permute %r parts [1, 2] by [1, 0] along 1 : tensor<2x3xf32>
  %f = xf.reshape %f0 : tensor<2x3xf32> to tensor<6xf32>
  %y = xf.add %v, %f : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

xf.model @m {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<11x6xf32>
  %x0 = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
  %x1 = xf.layer @shuffled(%x0) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %x2 = xf.layer @exchanged(%x1) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
  %x3 = xf.layer @shuffled(%x2) at "layers.2." : (tensor<6xf32>) -> tensor<6xf32>
  %H = xf.param "head" : tensor<11x6xf32>
  %l = xf.linear %H * %x3 : tensor<11x6xf32>, tensor<6xf32>
  xf.yield %l : tensor<11xf32>
}
