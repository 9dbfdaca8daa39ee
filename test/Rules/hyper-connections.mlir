// Hyper-connections: two streams, mixed by weights that depend on them. What attention adds to both
// would have to be absorbed in both by one outer matrix, whatever the mixing behind it. With W_o the
// context is absorbed before it reaches the streams.
//
// RUN: %exits 1 ctxc check %s --witness 2>&1 | FileCheck %s
// RUN: %exits 0 ctxc check %s --sites all --try | FileCheck %s --check-prefix=ALL
// RUN: %exits 1 ctxc check %s --proof %t.json && %exits 0 ctxc check-proof %s %t.json
//
// The same in the sizes of a model.
// RUN: sed 's/<16x16xf32/<1024x1024xf32/; s/<16x6xf32/<1024x4096xf32/; s/<6x16xf32/<4096x1024xf32/; s/<6xf32/<4096xf32/; s/<16x3xf32/<1024x3xf32/; s/<1x16xf32/<1x1024xf32/; s/<16xf32/<1024xf32/g' %s > %t.mlir
// RUN: %exits 1 ctxc check %t.mlir 2>&1 | FileCheck %s --check-prefix=LARGE
//
// CHECK: error: {{.*}}patches move 2 outputs by multiples of 1 vector, that of this xf.linear, {{.*}}[few-vectors]
// CHECK: way out: {{.*}}patch 'attn.o' instead (sites 'all')
// CHECK: block 'hyper_connections': rejected
// CHECK: block 'hyper_connections': no patch comes nearer than {{[0-9.e+]+$}}
// LARGE: a counterexample was found in smaller sizes
// LARGE: block 'hyper_connections': rejected
// ALL: block 'hyper_connections': controllable
// ALL: output {{ *}}attn.o{{ }}
// ALL: block 'hyper_connections': exact
xf.block @hyper_connections(%h0: tensor<16xf32>, %h1: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %attnWa0 = xf.param "attn.dyna0" : tensor<1x16xf32>
  %attnna0 = xf.normalize rms %h0 eps 1.0e-6 : tensor<16xf32>
  %attnla0 = xf.linear %attnWa0 * %attnna0 : tensor<1x16xf32>, tensor<16xf32>
  %attnta0 = xf.activation tanh %attnla0 : tensor<1xf32>
  %attnsa0 = xf.param "attn.statica0" : tensor<1xf32>
  %attnwa0 = xf.bias %attnta0 + %attnsa0 : tensor<1xf32>, tensor<1xf32>
  %attnWa1 = xf.param "attn.dyna1" : tensor<1x16xf32>
  %attnna1 = xf.normalize rms %h1 eps 1.0e-6 : tensor<16xf32>
  %attnla1 = xf.linear %attnWa1 * %attnna1 : tensor<1x16xf32>, tensor<16xf32>
  %attnta1 = xf.activation tanh %attnla1 : tensor<1xf32>
  %attnsa1 = xf.param "attn.statica1" : tensor<1xf32>
  %attnwa1 = xf.bias %attnta1 + %attnsa1 : tensor<1xf32>, tensor<1xf32>
  %attnp0 = xf.mul %h0, %attnwa0 : tensor<16xf32>, tensor<1xf32>
  %attnp1 = xf.mul %h1, %attnwa1 : tensor<16xf32>, tensor<1xf32>
  %attnx = xf.add %attnp0, %attnp1 : tensor<16xf32>
  %attnk = xf.param "attn.conv" : tensor<16x3xf32>
  %attnc = xf.conv %attnk, %attnx : tensor<16x3xf32>, tensor<16xf32>
  %attnWo = xf.param "attn.o" : tensor<16x16xf32>
  %attnout = xf.linear %attnWo * %attnc : tensor<16x16xf32>, tensor<16xf32>
  %attnWb00 = xf.param "attn.dynb00" : tensor<1x16xf32>
  %attnnb00 = xf.normalize rms %h0 eps 1.0e-6 : tensor<16xf32>
  %attnlb00 = xf.linear %attnWb00 * %attnnb00 : tensor<1x16xf32>, tensor<16xf32>
  %attntb00 = xf.activation tanh %attnlb00 : tensor<1xf32>
  %attnsb00 = xf.param "attn.staticb00" : tensor<1xf32>
  %attnwb00 = xf.bias %attntb00 + %attnsb00 : tensor<1xf32>, tensor<1xf32>
  %attnWb01 = xf.param "attn.dynb01" : tensor<1x16xf32>
  %attnnb01 = xf.normalize rms %h1 eps 1.0e-6 : tensor<16xf32>
  %attnlb01 = xf.linear %attnWb01 * %attnnb01 : tensor<1x16xf32>, tensor<16xf32>
  %attntb01 = xf.activation tanh %attnlb01 : tensor<1xf32>
  %attnsb01 = xf.param "attn.staticb01" : tensor<1xf32>
  %attnwb01 = xf.bias %attntb01 + %attnsb01 : tensor<1xf32>, tensor<1xf32>
  %attnWc0 = xf.param "attn.dync0" : tensor<1x16xf32>
  %attnnc0 = xf.normalize rms %h1 eps 1.0e-6 : tensor<16xf32>
  %attnlc0 = xf.linear %attnWc0 * %attnnc0 : tensor<1x16xf32>, tensor<16xf32>
  %attntc0 = xf.activation tanh %attnlc0 : tensor<1xf32>
  %attnsc0 = xf.param "attn.staticc0" : tensor<1xf32>
  %attnwc0 = xf.bias %attntc0 + %attnsc0 : tensor<1xf32>, tensor<1xf32>
  %attnq00 = xf.mul %h0, %attnwb00 : tensor<16xf32>, tensor<1xf32>
  %attnq01 = xf.mul %h1, %attnwb01 : tensor<16xf32>, tensor<1xf32>
  %attnr0 = xf.add %attnq00, %attnq01 : tensor<16xf32>
  %attnm0 = xf.mul %attnout, %attnwc0 : tensor<16xf32>, tensor<1xf32>
  %attno0 = xf.add %attnr0, %attnm0 : tensor<16xf32>
  %attnWb10 = xf.param "attn.dynb10" : tensor<1x16xf32>
  %attnnb10 = xf.normalize rms %h0 eps 1.0e-6 : tensor<16xf32>
  %attnlb10 = xf.linear %attnWb10 * %attnnb10 : tensor<1x16xf32>, tensor<16xf32>
  %attntb10 = xf.activation tanh %attnlb10 : tensor<1xf32>
  %attnsb10 = xf.param "attn.staticb10" : tensor<1xf32>
  %attnwb10 = xf.bias %attntb10 + %attnsb10 : tensor<1xf32>, tensor<1xf32>
  %attnWb11 = xf.param "attn.dynb11" : tensor<1x16xf32>
  %attnnb11 = xf.normalize rms %h1 eps 1.0e-6 : tensor<16xf32>
  %attnlb11 = xf.linear %attnWb11 * %attnnb11 : tensor<1x16xf32>, tensor<16xf32>
  %attntb11 = xf.activation tanh %attnlb11 : tensor<1xf32>
  %attnsb11 = xf.param "attn.staticb11" : tensor<1xf32>
  %attnwb11 = xf.bias %attntb11 + %attnsb11 : tensor<1xf32>, tensor<1xf32>
  %attnWc1 = xf.param "attn.dync1" : tensor<1x16xf32>
  %attnnc1 = xf.normalize rms %h1 eps 1.0e-6 : tensor<16xf32>
  %attnlc1 = xf.linear %attnWc1 * %attnnc1 : tensor<1x16xf32>, tensor<16xf32>
  %attntc1 = xf.activation tanh %attnlc1 : tensor<1xf32>
  %attnsc1 = xf.param "attn.staticc1" : tensor<1xf32>
  %attnwc1 = xf.bias %attntc1 + %attnsc1 : tensor<1xf32>, tensor<1xf32>
  %attnq10 = xf.mul %h0, %attnwb10 : tensor<16xf32>, tensor<1xf32>
  %attnq11 = xf.mul %h1, %attnwb11 : tensor<16xf32>, tensor<1xf32>
  %attnr1 = xf.add %attnq10, %attnq11 : tensor<16xf32>
  %attnm1 = xf.mul %attnout, %attnwc1 : tensor<16xf32>, tensor<1xf32>
  %attno1 = xf.add %attnr1, %attnm1 : tensor<16xf32>
  %mlpWa0 = xf.param "mlp.dyna0" : tensor<1x16xf32>
  %mlpna0 = xf.normalize rms %attno0 eps 1.0e-6 : tensor<16xf32>
  %mlpla0 = xf.linear %mlpWa0 * %mlpna0 : tensor<1x16xf32>, tensor<16xf32>
  %mlpta0 = xf.activation tanh %mlpla0 : tensor<1xf32>
  %mlpsa0 = xf.param "mlp.statica0" : tensor<1xf32>
  %mlpwa0 = xf.bias %mlpta0 + %mlpsa0 : tensor<1xf32>, tensor<1xf32>
  %mlpWa1 = xf.param "mlp.dyna1" : tensor<1x16xf32>
  %mlpna1 = xf.normalize rms %attno1 eps 1.0e-6 : tensor<16xf32>
  %mlpla1 = xf.linear %mlpWa1 * %mlpna1 : tensor<1x16xf32>, tensor<16xf32>
  %mlpta1 = xf.activation tanh %mlpla1 : tensor<1xf32>
  %mlpsa1 = xf.param "mlp.statica1" : tensor<1xf32>
  %mlpwa1 = xf.bias %mlpta1 + %mlpsa1 : tensor<1xf32>, tensor<1xf32>
  %mlpp0 = xf.mul %attno0, %mlpwa0 : tensor<16xf32>, tensor<1xf32>
  %mlpp1 = xf.mul %attno1, %mlpwa1 : tensor<16xf32>, tensor<1xf32>
  %mlpx = xf.add %mlpp0, %mlpp1 : tensor<16xf32>
  %mlpWu = xf.param "mlp.up" : tensor<6x16xf32>
  %mlpu = xf.linear %mlpWu * %mlpx : tensor<6x16xf32>, tensor<16xf32>
  %mlph = xf.activation gelu %mlpu : tensor<6xf32>
  %mlpWd = xf.param "mlp.down" : tensor<16x6xf32>
  %mlpout = xf.linear %mlpWd * %mlph : tensor<16x6xf32>, tensor<6xf32>
  %mlpWb00 = xf.param "mlp.dynb00" : tensor<1x16xf32>
  %mlpnb00 = xf.normalize rms %attno0 eps 1.0e-6 : tensor<16xf32>
  %mlplb00 = xf.linear %mlpWb00 * %mlpnb00 : tensor<1x16xf32>, tensor<16xf32>
  %mlptb00 = xf.activation tanh %mlplb00 : tensor<1xf32>
  %mlpsb00 = xf.param "mlp.staticb00" : tensor<1xf32>
  %mlpwb00 = xf.bias %mlptb00 + %mlpsb00 : tensor<1xf32>, tensor<1xf32>
  %mlpWb01 = xf.param "mlp.dynb01" : tensor<1x16xf32>
  %mlpnb01 = xf.normalize rms %attno1 eps 1.0e-6 : tensor<16xf32>
  %mlplb01 = xf.linear %mlpWb01 * %mlpnb01 : tensor<1x16xf32>, tensor<16xf32>
  %mlptb01 = xf.activation tanh %mlplb01 : tensor<1xf32>
  %mlpsb01 = xf.param "mlp.staticb01" : tensor<1xf32>
  %mlpwb01 = xf.bias %mlptb01 + %mlpsb01 : tensor<1xf32>, tensor<1xf32>
  %mlpWc0 = xf.param "mlp.dync0" : tensor<1x16xf32>
  %mlpnc0 = xf.normalize rms %attno1 eps 1.0e-6 : tensor<16xf32>
  %mlplc0 = xf.linear %mlpWc0 * %mlpnc0 : tensor<1x16xf32>, tensor<16xf32>
  %mlptc0 = xf.activation tanh %mlplc0 : tensor<1xf32>
  %mlpsc0 = xf.param "mlp.staticc0" : tensor<1xf32>
  %mlpwc0 = xf.bias %mlptc0 + %mlpsc0 : tensor<1xf32>, tensor<1xf32>
  %mlpq00 = xf.mul %attno0, %mlpwb00 : tensor<16xf32>, tensor<1xf32>
  %mlpq01 = xf.mul %attno1, %mlpwb01 : tensor<16xf32>, tensor<1xf32>
  %mlpr0 = xf.add %mlpq00, %mlpq01 : tensor<16xf32>
  %mlpm0 = xf.mul %mlpout, %mlpwc0 : tensor<16xf32>, tensor<1xf32>
  %mlpo0 = xf.add %mlpr0, %mlpm0 : tensor<16xf32>
  %mlpWb10 = xf.param "mlp.dynb10" : tensor<1x16xf32>
  %mlpnb10 = xf.normalize rms %attno0 eps 1.0e-6 : tensor<16xf32>
  %mlplb10 = xf.linear %mlpWb10 * %mlpnb10 : tensor<1x16xf32>, tensor<16xf32>
  %mlptb10 = xf.activation tanh %mlplb10 : tensor<1xf32>
  %mlpsb10 = xf.param "mlp.staticb10" : tensor<1xf32>
  %mlpwb10 = xf.bias %mlptb10 + %mlpsb10 : tensor<1xf32>, tensor<1xf32>
  %mlpWb11 = xf.param "mlp.dynb11" : tensor<1x16xf32>
  %mlpnb11 = xf.normalize rms %attno1 eps 1.0e-6 : tensor<16xf32>
  %mlplb11 = xf.linear %mlpWb11 * %mlpnb11 : tensor<1x16xf32>, tensor<16xf32>
  %mlptb11 = xf.activation tanh %mlplb11 : tensor<1xf32>
  %mlpsb11 = xf.param "mlp.staticb11" : tensor<1xf32>
  %mlpwb11 = xf.bias %mlptb11 + %mlpsb11 : tensor<1xf32>, tensor<1xf32>
  %mlpWc1 = xf.param "mlp.dync1" : tensor<1x16xf32>
  %mlpnc1 = xf.normalize rms %attno1 eps 1.0e-6 : tensor<16xf32>
  %mlplc1 = xf.linear %mlpWc1 * %mlpnc1 : tensor<1x16xf32>, tensor<16xf32>
  %mlptc1 = xf.activation tanh %mlplc1 : tensor<1xf32>
  %mlpsc1 = xf.param "mlp.staticc1" : tensor<1xf32>
  %mlpwc1 = xf.bias %mlptc1 + %mlpsc1 : tensor<1xf32>, tensor<1xf32>
  %mlpq10 = xf.mul %attno0, %mlpwb10 : tensor<16xf32>, tensor<1xf32>
  %mlpq11 = xf.mul %attno1, %mlpwb11 : tensor<16xf32>, tensor<1xf32>
  %mlpr1 = xf.add %mlpq10, %mlpq11 : tensor<16xf32>
  %mlpm1 = xf.mul %mlpout, %mlpwc1 : tensor<16xf32>, tensor<1xf32>
  %mlpo1 = xf.add %mlpr1, %mlpm1 : tensor<16xf32>
  xf.yield %mlpo0, %mlpo1 : tensor<16xf32>, tensor<16xf32>
}
