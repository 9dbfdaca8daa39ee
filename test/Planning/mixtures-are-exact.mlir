// Plans for mixtures of experts, with and without patches before the nonlinearity, with both
// splits, are exact, also where the two runs select different experts.
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9
// RUN: ctxc verify %s --weights random:3 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9 --split least-norm
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9 --plan experts.down,experts.*.down --split least-norm
// RUN: ctxc verify %s --weights random:4 --tokens 1,2,3,4,5,6 --generate 3 --backend reference --tolerance 1e-9 --plan experts.down,experts.*.down --keep 1,3
// RUN: ctxc verify %s --weights random:5 --tokens 1,2,3,4,5,6 --generate 3 --plan experts.down,experts.*.down
// RUN: ctxc verify %s --weights random:6 --tokens 1,2,3,4,5,6 --generate 3 --split least-norm
// RUN: ctxc check %s | FileCheck %s

// CHECK-LABEL: layer 0, block 'mixtral': controllable
// CHECK: input router rank 1
// CHECK: experts.*.gate rank 1
// CHECK: experts.*.up rank 1
// CHECK: output experts.*.down rank 1 output controllability of mixture of experts
// CHECK: needs
// CHECK: xf.combine its weights do not sum to zero always
// CHECK: xf.top_k both runs select the same almost everywhere
// CHECK-LABEL: layer 1, block 'shared': controllable
// CHECK-LABEL: layer 2, block 'llama4': controllable
// CHECK-LABEL: layer 3, block 'biased': controllable
// CHECK-LABEL: layer 4, block 'relu': controllable

// Mixtral: each expert is a tensor of its own, and the weights sum to one.
xf.block @mixtral(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %p = xf.softmax %l : tensor<5xf32>
  %sel = xf.top_k %p k 2 : tensor<5xf32>
  %g1 = xf.gather %p[%sel] : tensor<5xf32>, tensor<2xi32>
  %w = xf.normalize sum %g1 eps 0.0 : tensor<2xf32>
  %Wg = xf.param "experts.*.gate" : tensor<5x7x6xf32>
  %Wu = xf.param "experts.*.up" : tensor<5x7x6xf32>
  %Wd = xf.param "experts.*.down" : tensor<5x6x7xf32>
  %g = xf.expert_linear %Wg[%sel] * %z : tensor<5x7x6xf32>, tensor<2xi32>, tensor<6xf32>
  %u = xf.expert_linear %Wu[%sel] * %z : tensor<5x7x6xf32>, tensor<2xi32>, tensor<6xf32>
  %s = xf.activation silu %g : tensor<2x7xf32>
  %h = xf.mul %s, %u : tensor<2x7xf32>, tensor<2x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h : tensor<5x6x7xf32>, tensor<2xi32>, tensor<2x7xf32>
  %c = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
  %y = xf.add %v, %c : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Qwen: fused tensors, a gated shared expert, weights that sum to less than one.
xf.block @shared(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %p = xf.softmax %l : tensor<5xf32>
  %sel = xf.top_k %p k 3 : tensor<5xf32>
  %w = xf.gather %p[%sel] : tensor<5xf32>, tensor<3xi32>
  %Wgu = xf.param "experts.gate_up" : tensor<5x14x6xf32>
  %Wd = xf.param "experts.down" : tensor<5x6x7xf32>
  %gu = xf.expert_linear %Wgu[%sel] * %z : tensor<5x14x6xf32>, tensor<3xi32>, tensor<6xf32>
  %g = xf.slice %gu from 0 along 1 : tensor<3x14xf32> to tensor<3x7xf32>
  %u = xf.slice %gu from 7 along 1 : tensor<3x14xf32> to tensor<3x7xf32>
  %s = xf.activation silu %g : tensor<3x7xf32>
  %h = xf.mul %s, %u : tensor<3x7xf32>, tensor<3x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h : tensor<5x6x7xf32>, tensor<3xi32>, tensor<3x7xf32>
  %c = xf.combine %w, %d : tensor<3xf32>, tensor<3x6xf32>
  %Su = xf.param "shared.up" frozen : tensor<9x6xf32>
  %Sd = xf.param "shared.down" frozen : tensor<6x9xf32>
  %Sg = xf.param "shared_gate" frozen : tensor<1x6xf32>
  %su = xf.linear %Su * %z : tensor<9x6xf32>, tensor<6xf32>
  %sh = xf.activation silu %su : tensor<9xf32>
  %sd = xf.linear %Sd * %sh : tensor<6x9xf32>, tensor<9xf32>
  %sg = xf.linear %Sg * %z : tensor<1x6xf32>, tensor<6xf32>
  %si = xf.activation sigmoid %sg : tensor<1xf32>
  %sm = xf.mul %sd, %si : tensor<6xf32>, tensor<1xf32>
  %cs = xf.add %sm, %c : tensor<6xf32>
  %y = xf.add %v, %cs : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Llama 4: one expert, whose input the router scales; it is stored transposed.
xf.block @llama4(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %sel = xf.top_k %l k 1 : tensor<5xf32>
  %g1 = xf.gather %l[%sel] : tensor<5xf32>, tensor<1xi32>
  %w = xf.activation sigmoid %g1 : tensor<1xf32>
  %zs = xf.outer %w, %z : tensor<1xf32>, tensor<6xf32>
  %Wu = xf.param "experts.up" : tensor<5x6x7xf32>
  %Wd = xf.param "experts.down" : tensor<5x7x6xf32>
  %u = xf.expert_linear %Wu[%sel] * %zs transposed : tensor<5x6x7xf32>, tensor<1xi32>, tensor<1x6xf32>
  %h = xf.activation gelu %u : tensor<1x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h transposed : tensor<5x7x6xf32>, tensor<1xi32>, tensor<1x7xf32>
  %c = xf.reshape %d : tensor<1x6xf32> to tensor<6xf32>
  %y = xf.add %v, %c : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// A bias and a scale between the experts and their sum, which the chain is solved through.
xf.block @biased(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %sel = xf.top_k %l k 2 : tensor<5xf32>
  %g1 = xf.gather %l[%sel] : tensor<5xf32>, tensor<2xi32>
  %w = xf.softmax %g1 : tensor<2xf32>
  %Wu = xf.param "experts.*.up" : tensor<5x7x6xf32>
  %Wd = xf.param "experts.*.down" : tensor<5x6x7xf32>
  %u = xf.expert_linear %Wu[%sel] * %z : tensor<5x7x6xf32>, tensor<2xi32>, tensor<6xf32>
  %h = xf.activation gelu %u : tensor<2x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h : tensor<5x6x7xf32>, tensor<2xi32>, tensor<2x7xf32>
  %b = xf.param "bias" frozen : tensor<6xf32>
  %k = xf.param "scale" frozen : tensor<6xf32>
  %e = xf.bias %d + %b : tensor<2x6xf32>, tensor<6xf32>
  %f = xf.scale %e by %k offset 1.0 : tensor<2x6xf32>, tensor<6xf32>
  %c = xf.combine %w, %f : tensor<2xf32>, tensor<2x6xf32>
  %t = xf.times %c by 5.0e-01 : tensor<6xf32>
  %y = xf.add %v, %t : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// Experts with a relu, whose hidden vectors may be zero.
xf.block @relu(%x: tensor<6xf32>) -> tensor<6xf32> {
  %Wo = xf.param "o" : tensor<6x6xf32>
  %r = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  %a2 = xf.attention %r, %r, %r scale 6.0e-01 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %a = xf.reshape %a2 : tensor<2x3xf32> to tensor<6xf32>
  %o = xf.linear %Wo * %a : tensor<6x6xf32>, tensor<6xf32>
  %v = xf.add %x, %o : tensor<6xf32>
  %n0 = xf.normalize rms %v eps 1.0e-06 : tensor<6xf32>
  %m0 = xf.param "pre_norm" : tensor<6xf32>
  %z = xf.scale %n0 by %m0 : tensor<6xf32>, tensor<6xf32>
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %z : tensor<5x6xf32>, tensor<6xf32>
  %p = xf.softmax %l : tensor<5xf32>
  %sel = xf.top_k %p k 2 : tensor<5xf32>
  %w = xf.gather %p[%sel] : tensor<5xf32>, tensor<2xi32>
  %Wu = xf.param "experts.*.up" : tensor<5x7x6xf32>
  %Wd = xf.param "experts.*.down" : tensor<5x6x7xf32>
  %u = xf.expert_linear %Wu[%sel] * %z : tensor<5x7x6xf32>, tensor<2xi32>, tensor<6xf32>
  %h = xf.activation relu %u : tensor<2x7xf32>
  %d = xf.expert_linear %Wd[%sel] * %h : tensor<5x6x7xf32>, tensor<2xi32>, tensor<2x7xf32>
  %c = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
  %y = xf.add %v, %c : tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

xf.model @mixtures {
  %id = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<19x6xf32>
  %x0 = xf.embed %E[%id] : tensor<19x6xf32>, tensor<i32>
  %x1 = xf.layer @mixtral(%x0) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
  %x2 = xf.layer @shared(%x1) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
  %x3 = xf.layer @llama4(%x2) at "layers.2." : (tensor<6xf32>) -> tensor<6xf32>
  %x4 = xf.layer @biased(%x3) at "layers.3." : (tensor<6xf32>) -> tensor<6xf32>
  %x5 = xf.layer @relu(%x4) at "layers.4." : (tensor<6xf32>) -> tensor<6xf32>
  %H = xf.param "head" : tensor<19x6xf32>
  %logits = xf.linear %H * %x5 : tensor<19x6xf32>, tensor<6xf32>
  xf.yield %logits : tensor<19xf32>
}
