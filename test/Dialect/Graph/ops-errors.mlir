// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of GraphOps.td by op and number.

// expected-error @below {{has a body that takes arguments or ends in no graph.return}}
graph.program @program_c1 tokens "s0" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s0"], f32>
}

// -----

graph.program @program_c2 tokens "s0" {
  %a = graph.stored "w" : !graph.tensor<[4], f32>
  // expected-error @below {{has the name of another, 'w'}}
  %b = graph.stored "w" : !graph.tensor<[4], f32>
  graph.return
}

// -----

graph.program @input_c1 tokens "s0" {
  // expected-error @below {{has the role 'image'; expected token, position or activation}}
  %x = graph.input "x" as "image" : !graph.tensor<[1, "s0"], f32>
  graph.return
}

// -----

graph.program @stored_c1 tokens "s0" {
  // expected-error @below {{has no name}}
  %a = graph.stored "" : !graph.tensor<[4], f32>
  graph.return
}

// -----

graph.program @call_c1 tokens "s0" {
  // expected-error @below {{has no target}}
  %a = graph.call ""() {} in "" : () -> !graph.tensor<[4], f32>
  graph.return
}

// -----

graph.program @call_c2 tokens "s0" {
  %x = graph.input "x" as "activation" : !graph.tensor<[1, "s0"], f32>
  // expected-error @below {{has 1 operands, and arguments that do not name all of them}}
  %a = graph.call "aten.relu.default"(%x) {} in "" : (!graph.tensor<[1, "s0"], f32>) -> !graph.tensor<[1, "s0"], f32>
  graph.return
}

// -----

graph.program @call_c2_outside tokens "s0" {
  // expected-error @below {{has 0 operands, and arguments that name another}}
  %a = graph.call "aten.cat.default"() {tensors = [#graph.operand<3>]} in "" : () -> !graph.tensor<[4], f32>
  graph.return
}

// -----

graph.program @tensor_c1 tokens "s0" {
  // expected-error @below {{expected a number from 0 on, or the text of an expression}}
  %x = graph.input "x" as "activation" : !graph.tensor<[1, -3], f32>
  graph.return
}

// -----

// expected-error @below {{'graph.function' op has axes that do not fit its arguments or its result}}
graph.function @axes tokens "s0" axes [3] result_axis 1 {
^bb0(%x: !graph.tensor<[1, "s0", 4], f32>):
  graph.return %x : !graph.tensor<[1, "s0", 4], f32>
}

// -----

graph.function @stored tokens "s0" axes [] result_axis -1 {
  // expected-error @below {{'graph.stored' op is in a graph.function; expected calls, positions, and stored tensors with their numbers}}
  %w = graph.stored "w" : !graph.tensor<[4], f32>
  graph.return %w : !graph.tensor<[4], f32>
}

// -----

graph.program @numbers tokens "s0" {
  // expected-error @below {{'graph.stored' op has numbers of another shape than its type}}
  %w = graph.stored "w" fixed is dense<1.0> : tensor<3xf64> : !graph.tensor<[4], f32>
  graph.return %w : !graph.tensor<[4], f32>
}

// -----

graph.function @one tokens "s0" axes [1] result_axis 1 {
^bb0(%x: !graph.tensor<[1, "s0", 4], f32>):
  graph.return %x : !graph.tensor<[1, "s0", 4], f32>
}
xf.block @operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.contextual' op has 2 operands, and a graph.body of 1}}
  %y = xf.contextual "sum"(%x, %x) {graph.body = @one} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}
