// One layer, which the model runs three times with the same parameters.
xf.block @core(%x: tensor<8xf32>) -> tensor<8xf32> {
  %wq = xf.param "q" : tensor<8x8xf32>
  %wk = xf.param "k" : tensor<8x8xf32>
  %wv = xf.param "v" : tensor<8x8xf32>
  %q = xf.linear %wq * %x : tensor<8x8xf32>, tensor<8xf32>
  %k = xf.linear %wk * %x : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.linear %wv * %x : tensor<8x8xf32>, tensor<8xf32>
  %q1 = xf.reshape %q : tensor<8xf32> to tensor<1x8xf32>
  %k1 = xf.reshape %k : tensor<8xf32> to tensor<1x8xf32>
  %v1 = xf.reshape %v : tensor<8xf32> to tensor<1x8xf32>
  %a1 = xf.attention %q1, %k1, %v1 scale 0.35 : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
  %a = xf.reshape %a1 : tensor<1x8xf32> to tensor<8xf32>
  %wo = xf.param "o" : tensor<8x8xf32>
  %o = xf.linear %wo * %a : tensor<8x8xf32>, tensor<8xf32>
  %mid = xf.add %x, %o : tensor<8xf32>
  %win = xf.param "in" : tensor<12x8xf32>
  %h = xf.linear %win * %mid : tensor<12x8xf32>, tensor<8xf32>
  %act = xf.activation silu %h : tensor<12xf32>
  %wout = xf.param "out" : tensor<8x12xf32>
  %mlp = xf.linear %wout * %act : tensor<8x12xf32>, tensor<12xf32>
  %y = xf.add %mid, %mlp : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @model {
  %token = xf.token : tensor<i32>
  %table = xf.param "embed" : tensor<16x8xf32>
  %x0 = xf.embed %table[%token] : tensor<16x8xf32>, tensor<i32>
  %x1 = xf.layer @core(%x0) at "core." : (tensor<8xf32>) -> tensor<8xf32>
  %x2 = xf.layer @core(%x1) at "core." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @core(%x2) at "core." : (tensor<8xf32>) -> tensor<8xf32>
  %head = xf.param "head" : tensor<16x8xf32>
  %logits = xf.linear %head * %x3 : tensor<16x8xf32>, tensor<8xf32>
  xf.yield %logits : tensor<16xf32>
}
