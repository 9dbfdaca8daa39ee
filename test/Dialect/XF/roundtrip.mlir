// RUN: ctxc-opt %s | ctxc-opt | FileCheck %s

// Every op of xf is printed as it was parsed.
// CHECK: xf.block @every_op(%{{[a-z0-9]+}}: tensor<6xf32>) -> tensor<6xf32> {
xf.block @every_op(%x: tensor<6xf32>) -> tensor<6xf32> {
  // CHECK: xf.param "w" : tensor<8x6xbf16>
  %W = xf.param "w" : tensor<8x6xbf16>
  // CHECK: xf.param "m" frozen : tensor<8xf16>
  %m = xf.param "m" frozen : tensor<8xf16>
  // CHECK: xf.setting "window" : index = 512 : i64
  %w = xf.setting "window" : index = 512 : i64
  // CHECK: xf.setting "gain" : f32
  %s = xf.setting "gain" : f32
  // CHECK: xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.000000e+04, dims = 4, linear = 8.000000e+00>
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.000000e+04, dims = 4, linear = 8.000000e+00>
  // CHECK: xf.setting "rope3" : tensor<2xf32> = #xf.rope<base = 5.000000e+05, dims = 4, llama3 = [8.000000e+00, 1.000000e+00, 4.000000e+00, 8.192000e+03]>
  %f3 = xf.setting "rope3" : tensor<2xf32> = #xf.rope<base = 5.000000e+05, dims = 4, llama3 = [8.000000e+00, 1.000000e+00, 4.000000e+00, 8.192000e+03]>
  // CHECK: xf.linear %{{[a-z0-9]+}} * %{{[a-z0-9]+}} : tensor<8x6xbf16>, tensor<6xf32>
  %q = xf.linear %W * %x : tensor<8x6xbf16>, tensor<6xf32>
  // CHECK: xf.linear %{{[a-z0-9]+}} * %{{[a-z0-9]+}} transposed : tensor<8x6xbf16>, tensor<8xf32>
  %t = xf.linear %W * %q transposed : tensor<8x6xbf16>, tensor<8xf32>
  // CHECK: xf.bias %{{[a-z0-9]+}} + %{{[a-z0-9]+}} : tensor<8xf32>, tensor<8xf16>
  %b = xf.bias %q + %m : tensor<8xf32>, tensor<8xf16>
  // CHECK: xf.scale %{{[a-z0-9]+}} by %{{[a-z0-9]+}} : tensor<8xf32>, tensor<8xf16>
  %c = xf.scale %b by %m : tensor<8xf32>, tensor<8xf16>
  // CHECK: xf.scale %{{[a-z0-9]+}} by %{{[a-z0-9]+}} offset 1.000000e+00 : tensor<8xf32>, tensor<8xf16>
  %d = xf.scale %c by %m offset 1.000000e+00 : tensor<8xf32>, tensor<8xf16>
  // CHECK: xf.normalize rms %{{[a-z0-9]+}} eps 6.250000e-02 : tensor<8xf32>
  %n = xf.normalize rms %d eps 6.250000e-02 : tensor<8xf32>
  // CHECK: xf.activation gelu_tanh %{{[a-z0-9]+}} : tensor<8xf32>
  %a = xf.activation gelu_tanh %n : tensor<8xf32>
  // CHECK: xf.softmax %{{[a-z0-9]+}} : tensor<8xf32>
  %so = xf.softmax %a : tensor<8xf32>
  // CHECK: xf.softcap %{{[a-z0-9]+}} at 3.000000e+01 : tensor<8xf32>
  %sc = xf.softcap %so at 3.000000e+01 : tensor<8xf32>
  // CHECK: xf.clamp %{{[a-z0-9]+}} to 5.000000e-01 : tensor<8xf32>
  %cl = xf.clamp %sc to 0.5 : tensor<8xf32>
  // CHECK: xf.add %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8xf32>
  %ad = xf.add %cl, %q : tensor<8xf32>
  // CHECK: xf.sub %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8xf32>
  %su = xf.sub %ad, %q : tensor<8xf32>
  // CHECK: xf.mul %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8xf32>, tensor<8xf32>
  %mu = xf.mul %su, %q : tensor<8xf32>, tensor<8xf32>
  // CHECK: xf.div %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8xf32>, tensor<8xf32>
  %di = xf.div %mu, %q : tensor<8xf32>, tensor<8xf32>
  // CHECK: xf.times %{{[a-z0-9]+}} by 5.000000e-01 : tensor<8xf32>
  %ti = xf.times %di by 5.000000e-01 : tensor<8xf32>
  // CHECK: xf.reshape %{{[a-z0-9]+}} : tensor<8xf32> to tensor<2x4xf32>
  %re = xf.reshape %ti : tensor<8xf32> to tensor<2x4xf32>
  // CHECK: xf.transpose %{{[a-z0-9]+}} by [1, 0] : tensor<2x4xf32>
  %tr = xf.transpose %re by [1, 0] : tensor<2x4xf32>
  // CHECK: xf.permute %{{[a-z0-9]+}} parts [1, 3] by [1, 0] : tensor<4x2xf32>
  %p0 = xf.permute %tr parts [1, 3] by [1, 0] : tensor<4x2xf32>
  // CHECK: xf.permute %{{[a-z0-9]+}} parts [1, 1] by [1, 0] along 1 : tensor<4x2xf32>
  %p1 = xf.permute %p0 parts [1, 1] by [1, 0] along 1 : tensor<4x2xf32>
  // CHECK: xf.slice %{{[a-z0-9]+}} from 1 : tensor<2x4xf32> to tensor<1x4xf32>
  %sl = xf.slice %re from 1 : tensor<2x4xf32> to tensor<1x4xf32>
  // CHECK: xf.concat %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<1x4xf32>, tensor<2x4xf32>
  %co = xf.concat %sl, %re : tensor<1x4xf32>, tensor<2x4xf32>
  // CHECK: xf.rotary half %{{[a-z0-9]+}} by %{{[a-z0-9]+}} : tensor<2x4xf32>, tensor<2xf32>
  %ro = xf.rotary half %re by %f : tensor<2x4xf32>, tensor<2xf32>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 window %{{[a-z0-9]+}} : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %at = xf.attention %ro, %sl, %sl scale 5.000000e-01 window %w : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %au = xf.attention %ro, %sl, %sl scale 5.000000e-01 run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 softcap 5.000000e+01 window %{{[a-z0-9]+}} run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %av = xf.attention %ro, %sl, %sl scale 5.000000e-01 softcap 50.0 window %w run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %sp = xf.setting "slopes" : tensor<2xf32> = dense<[0.5, 0.25]> : tensor<2xf32>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 slopes %{{[a-z0-9]+}} : tensor<2xf32> : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %aw = xf.attention %ro, %sl, %sl scale 5.000000e-01 slopes %sp : tensor<2xf32> : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 window %{{[a-z0-9]+}} slopes %{{[a-z0-9]+}} : tensor<2xf32> rounded run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  %ax = xf.attention %ro, %sl, %sl scale 5.000000e-01 window %w slopes %sp : tensor<2xf32> rounded run full : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
  // CHECK: xf.conv %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8x6xbf16>, tensor<8xf32>
  %cv = xf.conv %W, %q : tensor<8x6xbf16>, tensor<8xf32>
  // CHECK: xf.scan %{{[a-z0-9]+}}, %{{[a-z0-9]+}} run reduced : tensor<8xf32>
  %sn = xf.scan %cv, %q run reduced : tensor<8xf32>
  // CHECK: xf.decaying_mean %{{[a-z0-9]+}}, %{{[a-z0-9]+}} decay %{{[a-z0-9]+}} own %{{[a-z0-9]+}} run full : tensor<8xf32>
  %dm = xf.decaying_mean %cv, %q decay %sn own %q run full : tensor<8xf32>
  %lq = xf.reshape %dm : tensor<8xf32> to tensor<1x8xf32>
  %lv = xf.reshape %sn : tensor<8xf32> to tensor<8x1xf32>
  // CHECK: xf.linear_attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} decay %{{[a-z0-9]+}} : tensor<1x8xf32>, tensor<1x8xf32>, tensor<8x1xf32>, tensor<8xf32>
  %la = xf.linear_attention %lq, %lq, %lv decay %sn : tensor<1x8xf32>, tensor<1x8xf32>, tensor<8x1xf32>, tensor<8xf32>
  %lA = xf.param "la" : tensor<8xbf16>
  // CHECK: xf.linear_attention %{{.*}} decay %{{[a-z0-9]+}} rates %{{[a-z0-9A-Z]+}} : tensor<8xbf16> delta %{{[a-z0-9]+}} : tensor<8xf32> run full : tensor<1x8xf32>
  %lb = xf.linear_attention %lq, %lq, %la decay %sn rates %lA : tensor<8xbf16> delta %sn : tensor<8xf32> run full : tensor<1x8xf32>, tensor<1x8xf32>, tensor<8x1xf32>, tensor<8xf32>
  // CHECK: xf.contextual "mix"(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) : (tensor<8xf32>, index) -> tensor<6xf32>
  %op = xf.contextual "mix"(%sn, %w) : (tensor<8xf32>, index) -> tensor<6xf32>
  xf.yield %op : tensor<6xf32>
}

// CHECK-LABEL: xf.block @mixture
xf.block @mixture(%x: tensor<6xf32>) -> tensor<6xf32> {
  %R = xf.param "router" : tensor<5x6xf32>
  %l = xf.linear %R * %x : tensor<5x6xf32>, tensor<6xf32>
  %p = xf.softmax %l : tensor<5xf32>
  // CHECK: xf.top_k %{{[a-z0-9]+}} k 2 : tensor<5xf32>
  %sel = xf.top_k %p k 2 : tensor<5xf32>
  // CHECK: xf.gather %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] : tensor<5xf32>, tensor<2xi32>
  %g = xf.gather %p[%sel] : tensor<5xf32>, tensor<2xi32>
  // CHECK: xf.normalize sum %{{[a-z0-9]+}} eps 0.000000e+00 : tensor<2xf32>
  %w = xf.normalize sum %g eps 0.0 : tensor<2xf32>
  // CHECK: xf.param "experts.*.up.weight" : tensor<5x8x6xbf16>
  %U = xf.param "experts.*.up.weight" : tensor<5x8x6xbf16>
  // CHECK: xf.expert_linear %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] * %{{[a-z0-9]+}} : tensor<5x8x6xbf16>, tensor<2xi32>, tensor<6xf32>
  %u = xf.expert_linear %U[%sel] * %x : tensor<5x8x6xbf16>, tensor<2xi32>, tensor<6xf32>
  // CHECK: xf.slice %{{[a-z0-9]+}} from 4 along 1 : tensor<2x8xf32> to tensor<2x4xf32>
  %h = xf.slice %u from 4 along 1 : tensor<2x8xf32> to tensor<2x4xf32>
  %D = xf.param "experts.down" : tensor<5x4x6xf16>
  // CHECK: xf.expert_linear %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] * %{{[a-z0-9]+}} transposed : tensor<5x4x6xf16>, tensor<2xi32>, tensor<2x4xf32>
  %d = xf.expert_linear %D[%sel] * %h transposed : tensor<5x4x6xf16>, tensor<2xi32>, tensor<2x4xf32>
  // CHECK: xf.combine %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<2xf32>, tensor<2x6xf32>
  %m = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
  // CHECK: xf.outer %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<2xf32>, tensor<6xf32>
  %o = xf.outer %w, %m : tensor<2xf32>, tensor<6xf32>
  %y = xf.combine %w, %o : tensor<2xf32>, tensor<2x6xf32>
  xf.yield %y : tensor<6xf32>
}

// CHECK: xf.block @one(%{{[a-z0-9]+}}: tensor<6xf32>) -> tensor<6xf32> {
xf.block @one(%x: tensor<6xf32>) -> tensor<6xf32> {
  // CHECK: xf.setting "window" : index
  %w = xf.setting "window" : index
  %m = xf.param "m" : tensor<6xf32>
  %y = xf.scale %x by %m : tensor<6xf32>, tensor<6xf32>
  xf.yield %y : tensor<6xf32>
}

// CHECK: xf.model @whole positions 16 {
xf.model @whole positions 16 {
  // CHECK: xf.token : tensor<i32>
  %id = xf.token : tensor<i32>
  // CHECK: xf.token replace [2, 1] by 0 : tensor<i32>
  %word = xf.token replace [2, 1] by 0 : tensor<i32>
  // CHECK: xf.position : tensor<i32>
  %p = xf.position : tensor<i32>
  // CHECK: xf.position plus 2 : tensor<i32>
  %p2 = xf.position plus 2 : tensor<i32>
  // CHECK: xf.position plus 1 over 8192 : tensor<1xf32>
  %p3 = xf.position plus 1 over 8192 : tensor<1xf32>
  %E = xf.param "embed.weight" : tensor<3x6xbf16>
  // CHECK: xf.embed %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] : tensor<3x6xbf16>, tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x6xbf16>, tensor<i32>
  // CHECK: xf.layer @one(%{{[a-z0-9]+}}) at "layers.0." settings {window = 4 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  %y = xf.layer @one(%x) at "layers.0." settings {window = 4 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: xf.layer @one(%{{[a-z0-9]+}}) at "layers.1." settings {window = 0 : i64} bind {m = "layers.0.m"} frozen ["m"] : (tensor<6xf32>) -> tensor<6xf32>
  %z = xf.layer @one(%y) at "layers.1." settings {window = 0 : i64} bind {m = "layers.0.m"} frozen ["m"] : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: xf.yield %{{[a-z0-9]+}} : tensor<6xf32>
  xf.yield %z : tensor<6xf32>
}

// CHECK: xf.block @forms(
xf.block @forms(%x: tensor<6xf32>, %q: tensor<2x4xf32>) -> tensor<6xf32> {
  // CHECK: #xf.rope<base = 1.000000e+04, dims = 4, yarn = [4.000000e+00, 3.200000e+01, 1.000000e+00, 4.096000e+03, 1.000000e+00]>
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.0e+04, dims = 4, yarn = [4.0, 32.0, 1.0, 4096.0, 1.0]>
  // CHECK: xf.rotary half %{{[a-z0-9]+}} by %{{[a-z0-9]+}} amplitude 1.250000e+00 : tensor<2x4xf32>, tensor<2xf32>
  %r = xf.rotary half %q by %f amplitude 1.25 : tensor<2x4xf32>, tensor<2xf32>
  // CHECK: xf.concat %{{[a-z0-9]+}}, %{{[a-z0-9]+}} along 1 : tensor<2x4xf32>, tensor<2x4xf32>
  %c = xf.concat %q, %r along 1 : tensor<2x4xf32>, tensor<2x4xf32>
  %first = xf.slice %c from 0 : tensor<2x8xf32> to tensor<1x8xf32>
  // CHECK: xf.broadcast %{{[a-z0-9]+}} : tensor<1x8xf32> to tensor<2x8xf32>
  %k = xf.broadcast %first : tensor<1x8xf32> to tensor<2x8xf32>
  %b = xf.param "sinks" : tensor<2xbf16>
  // CHECK: xf.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale 5.000000e-01 bidirectional sinks %{{[a-z0-9]+}} : tensor<2xbf16> : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %o = xf.attention %c, %k, %q scale 0.5 bidirectional sinks %b : tensor<2xbf16> : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  // CHECK: xf.clamp %{{[a-z0-9]+}} to 7.000000e+00 above : tensor<6xf32>
  %z = xf.clamp %x to 7.0 above : tensor<6xf32>
  // CHECK: xf.leaky %{{[a-z0-9]+}} by 2.500000e-01 : tensor<6xf32>
  %le = xf.leaky %z by 0.25 : tensor<6xf32>
  // CHECK: xf.power %{{[a-z0-9]+}} to 3 : tensor<6xf32>
  %po = xf.power %le to 3 : tensor<6xf32>
  // CHECK: xf.power %{{[a-z0-9]+}} to 2 root : tensor<6xf32>
  %ro = xf.power %po to 2 root : tensor<6xf32>
  // CHECK: xf.round %{{[a-z0-9]+}} to bf16 : tensor<6xf32>
  %rd = xf.round %ro to bf16 : tensor<6xf32>
  // CHECK: xf.param "mask" frozen constant : tensor<6xf32>
  %mask = xf.param "mask" frozen constant : tensor<6xf32>
  // CHECK: xf.top_k %{{[a-z0-9]+}} k 2 groups 3 keep 2 : tensor<6xf32>
  %s = xf.top_k %x k 2 groups 3 keep 2 : tensor<6xf32>
  %E = xf.param "biases" : tensor<6x3xbf16>
  // CHECK: xf.gather %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] : tensor<6x3xbf16>, tensor<2xi32>
  %e = xf.gather %E[%s] : tensor<6x3xbf16>, tensor<2xi32>
  // CHECK: xf.constant 0 : tensor<i32>
  %i = xf.constant 0 : tensor<i32>
  // CHECK: xf.param "experts" : tensor<4x2x64x!xf.quantized<mxfp4>>
  %W = xf.param "experts" : tensor<4x2x64x!xf.quantized<mxfp4>>
  // CHECK: xf.param "matrix" : tensor<3x5x!xf.quantized<f8e4m3>>
  %V = xf.param "matrix" : tensor<3x5x!xf.quantized<f8e4m3>>
  xf.yield %x : tensor<6xf32>
}
