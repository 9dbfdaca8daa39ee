// RUN: ctxc-opt %s --ctxc-expand-missing-instructions="fma=false half-precision=false" | FileCheck %s --check-prefixes=CHECK,OLD
// RUN: ctxc-opt %s --ctxc-expand-missing-instructions | FileCheck %s --check-prefixes=CHECK,NEW

// CHECK-LABEL: func.func @fma(
// NEW: math.fma
// NEW: vector.fma
// OLD-NOT: fma
// OLD: arith.mulf %{{.*}} : f32
// OLD: arith.addf %{{.*}} : f32
// OLD: arith.mulf %{{.*}} : vector<8xf32>
// OLD: arith.addf %{{.*}} : vector<8xf32>
// CHECK: return
func.func @fma(%x: f32, %v: vector<8xf32>) -> (f32, vector<8xf32>) {
  %a = math.fma %x, %x, %x : f32
  %b = vector.fma %v, %v, %v : vector<8xf32>
  return %a, %b : f32, vector<8xf32>
}

// CHECK-LABEL: func.func @half(
// NEW-COUNT-2: arith.extf
// OLD-NOT: arith.extf
// OLD: arith.extui %{{.*}} : i16 to i32
// OLD: arith.select
// OLD: arith.extui %{{.*}} : vector<8xi16> to vector<8xi32>
// CHECK: return
func.func @half(%x: f16, %v: vector<8xf16>) -> (f32, vector<8xf32>) {
  %a = arith.extf %x : f16 to f32
  %b = arith.extf %v : vector<8xf16> to vector<8xf32>
  return %a, %b : f32, vector<8xf32>
}

// Widening a single bfloat16 is a shift on all targets; vectors, and conversions to float64, are
// left.
// CHECK-LABEL: func.func @bfloat(
// CHECK: arith.shli %{{.*}} : i32
// CHECK: arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK: arith.extf %{{.*}} : f32 to f64
func.func @bfloat(%x: bf16, %v: vector<8xbf16>, %y: f32) -> (f32, vector<8xf32>, f64) {
  %a = arith.extf %x : bf16 to f32
  %b = arith.extf %v : vector<8xbf16> to vector<8xf32>
  %c = arith.extf %y : f32 to f64
  return %a, %b, %c : f32, vector<8xf32>, f64
}
