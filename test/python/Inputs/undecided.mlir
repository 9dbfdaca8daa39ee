// One number multiplies the branch: it has a direction by its matrix and a length by another, and no patch is known.
xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %c : tensor<8xf32>
  %U = xf.param "up" : tensor<12x8xf32>
  %u = xf.linear %U * %v : tensor<12x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<12xf32>
  %D = xf.param "down" frozen : tensor<8x12xf32>
  %d = xf.linear %D * %h : tensor<8x12xf32>, tensor<12xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %G = xf.param "gate" : tensor<1x12xf32>
  %g = xf.linear %G * %h : tensor<1x12xf32>, tensor<12xf32>
  %f = xf.mul %n, %g : tensor<8xf32>, tensor<1xf32>
  %y = xf.add %v, %f : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @model {
  %token = xf.token : tensor<i32>
  %table = xf.param "embed" : tensor<16x8xf32>
  %x = xf.embed %table[%token] : tensor<16x8xf32>, tensor<i32>
  %y = xf.layer @block(%x) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
