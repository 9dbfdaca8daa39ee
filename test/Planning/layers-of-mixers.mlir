// Layers of a mixer alone, as in Nemotron-H: together with the next layer that has parameters for a
// patch each is one block, and the patched model is exact.
//
// RUN: ctxc check %s --try --proof %t.json 2>&1 | FileCheck %s
// RUN: ctxc check-proof %s %t.json
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:5 --tokens 1,2,3,4,5,6 --keep 2 --start-layer 2 --backend reference --tolerance 1e-9
// CHECK: remark: layers 0-1 are judged and patched as one, layer 0:
// CHECK: remark: layers 2-5 are judged and patched as one, layer 1:
// CHECK: remark: layers 7-8 are judged and patched as one, layer 3:
// CHECK: remark: layers 9-10 are judged and patched as one, layer 4:
// CHECK: layers 0, 3, block 'mixer_mlp': controllable
// CHECK-NEXT: input {{ *}}up{{ }}
// CHECK-NEXT: output {{ *}}down{{ }}
// CHECK: layer 1, block 'mixer_mixer_attention_mlp': controllable
// CHECK: layer 2, block 'mlp': controllable
// CHECK: layer 4, block 'attention_mlp': controllable
// CHECK: 5 of 5 layers can take the context into their parameters
// CHECK: block 'mixer_mlp', layer 0: exact
// CHECK: block 'mixer_mixer_attention_mlp', layer 1: exact
// CHECK: block 'attention_mlp', layer 4: exact

xf.block @mixer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n0 = xf.normalize rms %x eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "norm" : tensor<8xf32>
  %n = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wk = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %Wk, %n : tensor<8x3xf32>, tensor<8xf32>
  %s = xf.activation silu %c : tensor<8xf32>
  %Wo = xf.param "out" : tensor<8x8xf32>
  %o = xf.linear %Wo * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @attention(%x: tensor<8xf32>) -> tensor<8xf32> {
  %window = xf.setting "window" : index
  %n0 = xf.normalize rms %x eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "norm" : tensor<8xf32>
  %n = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wq = xf.param "q" : tensor<8x8xf32>
  %Wk = xf.param "k" : tensor<8x8xf32>
  %Wv = xf.param "v" : tensor<8x8xf32>
  %Wo = xf.param "out" : tensor<8x8xf32>
  %q = xf.linear %Wq * %n : tensor<8x8xf32>, tensor<8xf32>
  %k = xf.linear %Wk * %n : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.linear %Wv * %n : tensor<8x8xf32>, tensor<8xf32>
  %qs = xf.reshape %q : tensor<8xf32> to tensor<2x4xf32>
  %ks = xf.reshape %k : tensor<8xf32> to tensor<2x4xf32>
  %vs = xf.reshape %v : tensor<8xf32> to tensor<2x4xf32>
  %as = xf.attention %qs, %ks, %vs scale 0.5 window %window : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %a = xf.reshape %as : tensor<2x4xf32> to tensor<8xf32>
  %o = xf.linear %Wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n0 = xf.normalize rms %x eps 1.0e-06 : tensor<8xf32>
  %g0 = xf.param "norm" : tensor<8xf32>
  %n = xf.scale %n0 by %g0 : tensor<8xf32>, tensor<8xf32>
  %Wu = xf.param "up" : tensor<12x8xf32>
  %u = xf.linear %Wu * %n : tensor<12x8xf32>, tensor<8xf32>
  %h = xf.activation relu2 %u : tensor<12xf32>
  %Wd = xf.param "down" : tensor<8x12xf32>
  %d = xf.linear %Wd * %h : tensor<8x12xf32>, tensor<12xf32>
  %y = xf.add %x, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.model @m {
  %E = xf.param "embed" : tensor<11x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<11x8xf32>, tensor<i32>
  %x1 = xf.layer @mixer(%x0) at "layers.0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @mlp(%x1) at "layers.1." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @mixer(%x2) at "layers.2." : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @mixer(%x3) at "layers.3." : (tensor<8xf32>) -> tensor<8xf32>
  %x5 = xf.layer @attention(%x4) at "layers.4." settings {window = 3 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %x6 = xf.layer @mlp(%x5) at "layers.5." : (tensor<8xf32>) -> tensor<8xf32>
  %x7 = xf.layer @mlp(%x6) at "layers.6." : (tensor<8xf32>) -> tensor<8xf32>
  %x8 = xf.layer @mixer(%x7) at "layers.7." : (tensor<8xf32>) -> tensor<8xf32>
  %x9 = xf.layer @mlp(%x8) at "layers.8." : (tensor<8xf32>) -> tensor<8xf32>
  %x10 = xf.layer @attention(%x9) at "layers.9." settings {window = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %x11 = xf.layer @mlp(%x10) at "layers.10." : (tensor<8xf32>) -> tensor<8xf32>
  %logits = xf.linear %E * %x11 : tensor<11x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<11xf32>
}
