// A matrix's rows are read in as many streams as the target says, and asked for ahead where it says so, also where they
// are long: 64 numbers of a vector take 256 bytes.
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-lower-contractions="lanes=8 registers=16 readings=half:1" | FileCheck %s --check-prefix=ONE
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-lower-contractions="lanes=8 registers=16 readings=half:4+" | FileCheck %s --check-prefix=FOUR
// RUN: ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-lower-contractions="lanes=8 registers=16 readings=half:1,long-half:4+,long-from:256" | FileCheck %s --check-prefix=FOUR
// RUN: not ctxc-opt %s --ctxc-blocks-to-linalg --ctxc-bufferize --ctxc-lower-contractions="readings=half:3" 2>&1 | FileCheck %s --check-prefix=ERROR

// ONE: func.func private @contract_64x64_bf16(
// ONE: scf.index_switch
// ONE: case 1 {
// ONE: -> (vector<8xf32>) {
// ONE-NOT: memref.prefetch
// ONE: case 2 {
// ONE: -> (vector<8xf32>, vector<8xf32>) {

// FOUR: func.func private @contract_64x64_bf16(
// FOUR: scf.index_switch
// FOUR: case 1 {
// FOUR: -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// FOUR-COUNT-4: memref.prefetch
// FOUR-COUNT-4: vector.fma

// ERROR: error: readings: half: found '3', expected 1, 2, 4 or 8 streams, and a + behind it where lines are asked for ahead
xf.block @linear(%x: tensor<64xf32>) -> tensor<64xf32> {
  %W = xf.param "weight" : tensor<64x64xbf16>
  %y = xf.linear %W * %x : tensor<64x64xbf16>, tensor<64xf32>
  xf.yield %y : tensor<64xf32>
}
