// RUN: ctxc-opt %s --ctxc-approximate-functions | FileCheck %s

// CHECK-LABEL: func.func @approximated(
// CHECK-NOT: math.{{exp|tanh|erf|log}}
// CHECK: math.fma
// CHECK-NOT: math.{{exp|tanh|erf|log}}
// CHECK: return
func.func @approximated(%x: f32, %v: vector<8xf32>) -> (f32, f32, f32, f32, vector<8xf32>) {
  %a = math.exp %x : f32
  %b = math.tanh %x : f32
  %c = math.erf %x : f32
  %d = math.log1p %x : f32
  %e = math.exp %v : vector<8xf32>
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, vector<8xf32>
}

// Other functions are not replaced, nor those of float64, for which the polynomials are not precise
// enough.
// CHECK-LABEL: func.func @kept(
// CHECK: math.cos %{{.*}} : f32
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: math.exp %{{.*}} : f64
func.func @kept(%x: f32, %y: f64) -> (f32, f32, f64) {
  %a = math.cos %x : f32
  %b = math.sqrt %x : f32
  %c = math.exp %y : f64
  return %a, %b, %c : f32, f32, f64
}
