// A block of your own: memory instead of attention, then a plain MLP with a post-norm.
xf.block @mine(%x: tensor<48xf32>) -> tensor<48xf32> {
  %F = xf.param "forget.weight" : tensor<48x48xf32>
  %W = xf.param "write.weight" : tensor<48x48xf32>
  %f = xf.linear %F * %x : tensor<48x48xf32>, tensor<48xf32>
  %keep = xf.activation sigmoid %f : tensor<48xf32>
  %new = xf.linear %W * %x : tensor<48x48xf32>, tensor<48xf32>
  %memory = xf.scan %keep, %new : tensor<48xf32>
  %v = xf.add %x, %memory : tensor<48xf32>
  %z = xf.normalize rms %v eps 1.0e-6 : tensor<48xf32>
  %U = xf.param "up.weight" : tensor<96x48xf32>
  %u = xf.linear %U * %z : tensor<96x48xf32>, tensor<48xf32>
  %h = xf.activation gelu_tanh %u : tensor<96xf32>
  %D = xf.param "down.weight" : tensor<48x96xf32>
  %d = xf.linear %D * %h : tensor<48x96xf32>, tensor<96xf32>
  %n = xf.normalize rms %d eps 1.0e-6 : tensor<48xf32>
  %m = xf.param "scale.weight" : tensor<48xf32>
  %s = xf.scale %n by %m offset 1.0 : tensor<48xf32>, tensor<48xf32>
  %y = xf.add %v, %s : tensor<48xf32>
  xf.yield %y : tensor<48xf32>
}
