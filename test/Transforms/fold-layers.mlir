// RUN: ctxc-opt %s --split-input-file --xf-fold-layers | FileCheck %s

// Two mixers and the MLP behind them are one layer; so are the attention and the last MLP. A mixer
// that no layer with parameters follows stays.

// CHECK-LABEL: xf.block @attention_mlp(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK: xf.setting "previous.window" : index
// CHECK: xf.param "previous.norm"
// CHECK: xf.param "norm"
// CHECK-LABEL: xf.block @mixer_mixer_mlp
// CHECK: xf.param "previous.previous.norm"
// CHECK: xf.param "previous.norm"
// CHECK: xf.param "norm"
// CHECK-LABEL: xf.model @m
// CHECK: %[[JOINT:.*]] = xf.layer @mixer_mixer_mlp({{.*}}) at "layers.2." bind {down = "shared.down", previous.conv = "layers.1.conv", previous.norm = "layers.1.norm", previous.out = "layers.1.out", previous.previous.conv = "layers.0.conv", {{.*}}} frozen ["norm"]
// CHECK-NEXT: %[[MLP:.*]] = xf.layer @mlp(%[[JOINT]]) at "layers.3."
// CHECK-NEXT: %[[ATTENTION:.*]] = xf.layer @attention_mlp(%[[MLP]]) at "layers.5." settings {previous.window = 4 : i64} bind {previous.k = "layers.4.k", {{.*}}}
// CHECK-NEXT: xf.layer @mixer(%[[ATTENTION]]) at "layers.6."
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
  %x2 = xf.layer @mixer(%x1) at "layers.1." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @mlp(%x2) at "layers.2." bind {down = "shared.down"} frozen ["norm"] : (tensor<8xf32>) -> tensor<8xf32>
  %x4 = xf.layer @mlp(%x3) at "layers.3." : (tensor<8xf32>) -> tensor<8xf32>
  %x5 = xf.layer @attention(%x4) at "layers.4." settings {window = 4 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %x6 = xf.layer @mlp(%x5) at "layers.5." : (tensor<8xf32>) -> tensor<8xf32>
  %x7 = xf.layer @mixer(%x6) at "layers.6." : (tensor<8xf32>) -> tensor<8xf32>
  %logits = xf.linear %E * %x7 : tensor<11x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<11xf32>
}

// -----

// What the mixer gives is read past the next layer as well, so that no layer is folded.
// CHECK-LABEL: xf.model @skip
// CHECK: xf.layer @mixer(
// CHECK: xf.layer @mlp(
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
xf.model @skip {
  %E = xf.param "embed" : tensor<11x8xf32>
  %id = xf.token : tensor<i32>
  %x0 = xf.embed %E[%id] : tensor<11x8xf32>, tensor<i32>
  %x1 = xf.layer @mixer(%x0) at "layers.0." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @mlp(%x1) at "layers.1." : (tensor<8xf32>) -> tensor<8xf32>
  %z = xf.add %x1, %x2 : tensor<8xf32>
  %logits = xf.linear %E * %z : tensor<11x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<11xf32>
}

// -----

// Numbers that are made of a parameter alone belong to the mixer that reads them: the layer is folded.
// CHECK-LABEL: xf.block @mixer_mlp(
// CHECK: xf.param "previous.skip"
// CHECK-LABEL: xf.model @m
// CHECK: xf.layer @mixer_mlp({{.*}}) at "layers.1."
xf.block @mixer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wc = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %Wc, %x : tensor<8x3xf32>, tensor<8xf32>
  %D = xf.param "skip" : tensor<8xf32>
  %one = xf.setting "one" : tensor<8xf32>
  %d = xf.scale %one by %D : tensor<8xf32>, tensor<8xf32>
  %d2 = xf.times %d by 2.0 : tensor<8xf32>
  %s = xf.mul %c, %d2 : tensor<8xf32>, tensor<8xf32>
  %Wo = xf.param "out" : tensor<8x8xf32>
  %o = xf.linear %Wo * %s : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %x, %o : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.block @mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %Wu = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %Wu * %x : tensor<16x8xf32>, tensor<8xf32>
  %a = xf.activation silu %u : tensor<16xf32>
  %Wd = xf.param "down" : tensor<8x16xf32>
  %w = xf.linear %Wd * %a : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %x, %w : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

xf.model @m {
  %id = xf.token : tensor<i32>
  %E = xf.param "E" : tensor<5x8xf32>
  %e = xf.embed %E[%id] : tensor<5x8xf32>, tensor<i32>
  %l0 = xf.layer @mixer(%e) at "layers.0." settings {one = dense<1.0> : tensor<8xf32>} : (tensor<8xf32>) -> tensor<8xf32>
  %l1 = xf.layer @mlp(%l0) at "layers.1." : (tensor<8xf32>) -> tensor<8xf32>
  %logits = xf.linear %E * %l1 : tensor<5x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<5xf32>
}
