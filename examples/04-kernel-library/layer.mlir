// A layer as an author would write it: attention with one head, and an MLP behind a norm.
xf.block @mine(%x: tensor<48xf32>) -> tensor<48xf32> {
  %n = xf.normalize rms %x eps 1.0e-6 : tensor<48xf32>
  %Q = xf.param "q.weight" : tensor<48x48xf32>
  %K = xf.param "k.weight" : tensor<48x48xf32>
  %V = xf.param "v.weight" : tensor<48x48xf32>
  %q0 = xf.linear %Q * %n : tensor<48x48xf32>, tensor<48xf32>
  %k0 = xf.linear %K * %n : tensor<48x48xf32>, tensor<48xf32>
  %v0 = xf.linear %V * %n : tensor<48x48xf32>, tensor<48xf32>
  %q = xf.reshape %q0 : tensor<48xf32> to tensor<1x48xf32>
  %k = xf.reshape %k0 : tensor<48xf32> to tensor<1x48xf32>
  %v = xf.reshape %v0 : tensor<48xf32> to tensor<1x48xf32>
  %a0 = xf.attention %q, %k, %v scale 0.125 : tensor<1x48xf32>, tensor<1x48xf32>, tensor<1x48xf32> -> tensor<1x48xf32>
  %a = xf.reshape %a0 : tensor<1x48xf32> to tensor<48xf32>
  %y = xf.add %x, %a : tensor<48xf32>
  %z = xf.normalize rms %y eps 1.0e-6 : tensor<48xf32>
  %U = xf.param "up.weight" : tensor<96x48xf32>
  %u = xf.linear %U * %z : tensor<96x48xf32>, tensor<48xf32>
  %h = xf.activation silu %u : tensor<96xf32>
  %D = xf.param "down.weight" : tensor<48x96xf32>
  %d = xf.linear %D * %h : tensor<48x96xf32>, tensor<96xf32>
  %out = xf.add %y, %d : tensor<48xf32>
  xf.yield %out : tensor<48xf32>
}

xf.model @small {
  %E = xf.param "embed.weight" : tensor<50x48xf32>
  %token = xf.token : tensor<i32>
  %x0 = xf.embed %E[%token] : tensor<50x48xf32>, tensor<i32>
  %x1 = xf.layer @mine(%x0) at "layers.0." : (tensor<48xf32>) -> tensor<48xf32>
  %logits = xf.linear %E * %x1 : tensor<50x48xf32>, tensor<48xf32>
  xf.yield %logits : tensor<50xf32>
}
