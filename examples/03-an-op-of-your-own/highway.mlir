// A block whose output is a highway gate between its MLP and its residual stream.
xf.block @highway(%x: tensor<48xf32>) -> tensor<48xf32> {
  %Q = xf.param "attn.q.weight" : tensor<48x48xf32>
  %K = xf.param "attn.k.weight" : tensor<48x48xf32>
  %V = xf.param "attn.v.weight" : tensor<48x48xf32>
  %q = xf.linear %Q * %x : tensor<48x48xf32>, tensor<48xf32>
  %k = xf.linear %K * %x : tensor<48x48xf32>, tensor<48xf32>
  %w = xf.linear %V * %x : tensor<48x48xf32>, tensor<48xf32>
  %qh = xf.reshape %q : tensor<48xf32> to tensor<2x24xf32>
  %kh = xf.reshape %k : tensor<48xf32> to tensor<2x24xf32>
  %wh = xf.reshape %w : tensor<48xf32> to tensor<2x24xf32>
  %ah = xf.attention %qh, %kh, %wh scale 0.2 : tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x24xf32> -> tensor<2x24xf32>
  %a = xf.reshape %ah : tensor<2x24xf32> to tensor<48xf32>
  %v = xf.add %x, %a : tensor<48xf32>
  %z = xf.normalize rms %v eps 1.0e-6 : tensor<48xf32>
  %U = xf.param "mlp.up.weight" : tensor<96x48xf32>
  %u = xf.linear %U * %z : tensor<96x48xf32>, tensor<48xf32>
  %h = gates.softsign %u : tensor<96xf32>
  %D = xf.param "mlp.down.weight" : tensor<48x96xf32>
  %d = xf.linear %D * %h : tensor<48x96xf32>, tensor<96xf32>
  %G = xf.param "gate.weight" : tensor<48x48xf32>
  %s = xf.linear %G * %z : tensor<48x48xf32>, tensor<48xf32>
  %y = gates.mix %d, %v by %s : tensor<48xf32>
  xf.yield %y : tensor<48xf32>
}
