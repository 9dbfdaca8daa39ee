// A layer whose matrices are stored in blocks, to look at the code of products with them.
xf.block @layer(%x: tensor<512xf32>) -> tensor<512xf32> {
  %Wq = xf.param "q" : tensor<64x512x!xf.quantized<q8_0>>
  %Wk = xf.param "k" : tensor<64x512x!xf.quantized<q4_0>>
  %Wv = xf.param "v" : tensor<64x512x!xf.quantized<q6_k>>
  %Wo = xf.param "o" : tensor<512x64xf32>
  %up = xf.param "up" : tensor<256x512x!xf.quantized<q4_k>>
  %down = xf.param "down" : tensor<512x256x!xf.quantized<block_mxfp4>>
  %qf = xf.linear %Wq * %x : tensor<64x512x!xf.quantized<q8_0>>, tensor<512xf32>
  %kf = xf.linear %Wk * %x : tensor<64x512x!xf.quantized<q4_0>>, tensor<512xf32>
  %vf = xf.linear %Wv * %x : tensor<64x512x!xf.quantized<q6_k>>, tensor<512xf32>
  %q = xf.reshape %qf : tensor<64xf32> to tensor<2x32xf32>
  %k = xf.reshape %kf : tensor<64xf32> to tensor<2x32xf32>
  %v = xf.reshape %vf : tensor<64xf32> to tensor<2x32xf32>
  %c = xf.attention %q, %k, %v scale 0.1 : tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32> -> tensor<2x32xf32>
  %cf = xf.reshape %c : tensor<2x32xf32> to tensor<64xf32>
  %m = xf.linear %Wo * %cf : tensor<512x64xf32>, tensor<64xf32>
  %h = xf.add %x, %m : tensor<512xf32>
  %z = xf.normalize rms %h eps 1.0e-6 : tensor<512xf32>
  %u = xf.linear %up * %z : tensor<256x512x!xf.quantized<q4_k>>, tensor<512xf32>
  %a = xf.activation silu %u : tensor<256xf32>
  %d = xf.linear %down * %a : tensor<512x256x!xf.quantized<block_mxfp4>>, tensor<256xf32>
  %y = xf.add %h, %d : tensor<512xf32>
  xf.yield %y : tensor<512xf32>
}
xf.model @model {
  %t = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<97x512xf32>
  %x0 = xf.embed %E[%t] : tensor<97x512xf32>, tensor<i32>
  %x1 = xf.layer @layer(%x0) at "layers.0." : (tensor<512xf32>) -> (tensor<512xf32>)
  %H = xf.param "head" : tensor<97x512xf32>
  %l = xf.linear %H * %x1 : tensor<97x512xf32>, tensor<512xf32>
  xf.yield %l : tensor<97xf32>
}
