
// Two layers of it make a model, with a vocabulary of 50 tokens.
xf.model @small {
  %E = xf.param "embed.weight" : tensor<50x48xf32>
  %token = xf.token : tensor<i32>
  %x0 = xf.embed %E[%token] : tensor<50x48xf32>, tensor<i32>
  %x1 = xf.layer @highway(%x0) at "layers.0." : (tensor<48xf32>) -> tensor<48xf32>
  %x2 = xf.layer @highway(%x1) at "layers.1." : (tensor<48xf32>) -> tensor<48xf32>
  %logits = xf.linear %E * %x2 : tensor<50x48xf32>, tensor<48xf32>
  xf.yield %logits : tensor<50xf32>
}
