// A layer of which little is compiled but products with matrices of 64 x 96 numbers that are STORED so.
xf.block @layer(%x: tensor<64xf32>) -> tensor<64xf32> {
  %m = xf.decaying_mean %x, %x decay %x own %x : tensor<64xf32>
  %h = xf.add %x, %m : tensor<64xf32>
  %up = xf.param "up" : tensor<96x64xSTORED>
  %u = xf.linear %up * %h : tensor<96x64xSTORED>, tensor<64xf32>
  %a = xf.activation silu %u : tensor<96xf32>
  %down = xf.param "down" : tensor<64x96xSTORED>
  %d = xf.linear %down * %a : tensor<64x96xSTORED>, tensor<96xf32>
  %y = xf.add %h, %d : tensor<64xf32>
  xf.yield %y : tensor<64xf32>
}
xf.model @model {
  %t = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<96x64xSTORED>
  %x0 = xf.embed %E[%t] : tensor<96x64xSTORED>, tensor<i32>
  %x1 = xf.layer @layer(%x0) at "layers.0." : (tensor<64xf32>) -> (tensor<64xf32>)
  %H = xf.param "head" : tensor<96x64xSTORED>
  %l = xf.linear %H * %x1 : tensor<96x64xSTORED>, tensor<64xf32>
  xf.yield %l : tensor<96xf32>
}
