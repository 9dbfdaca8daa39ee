// RUN: ctxc-opt %s --split-input-file --verify-diagnostics

// The constraints of XFOps.td by op and number, and those of #xf.rope.

xf.block @block_c1(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.yield' op gives ('tensor<8xf32>') where block 'block_c1' has results ('tensor<4xf32>')}}
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  xf.yield %x : tensor<8xf32>
}
xf.block @block_c2(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.layer' op cannot stand in a block; layers belong to xf.model}}
  %y = xf.layer @inner(%x) at "l." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// expected-error @below {{'xf.model' op must end in an xf.yield of one value, the logits}}
xf.model @model_c1 {
  %id = xf.token : tensor<i32>
}

// -----

xf.model @model_c2 {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op names 'absent', which is no xf.block of this module}}
  %y = xf.layer @absent(%x) at "l." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

// expected-note @below {{the block maps 'tensor<4xf32>' to 'tensor<8xf32>'}}
xf.block @block(%x: tensor<4xf32>) -> tensor<8xf32> {
  %y = xf.concat %x, %x : tensor<4xf32>, tensor<4xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @layer_c1 {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op runs block 'block' as 'tensor<8xf32>' to 'tensor<8xf32>'}}
  %y = xf.layer @block(%x) at "l." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c2_no_such_setting {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op gives a setting 'width' that block 'block' does not have}}
  %y = xf.layer @block(%x) at "l." settings {window = 4 : i64, width = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c2_wrong_type {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op gives setting 'window' the value 1.500000e+00 : f64, which is not of type 'index'}}
  %y = xf.layer @block(%x) at "l." settings {window = 1.5 : f64} : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c2_missing {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op does not give setting 'window', which has no default in block 'block'}}
  %y = xf.layer @block(%x) at "l." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c3_bind {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op binds 'v', which is no parameter of block 'block'}}
  %y = xf.layer @block(%x) at "l." settings {window = 4 : i64} bind {v = "a.w"} : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c3_bind_type {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op binds 'w' to 3 : i64; a stored name is a string}}
  %y = xf.layer @block(%x) at "l." settings {window = 4 : i64} bind {w = 3 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @block(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = xf.setting "window" : index
  %W = xf.param "w" : tensor<8x8xf32>
  xf.yield %x : tensor<8xf32>
}
xf.model @layer_c3_frozen {
  %E = xf.param "e" : tensor<3x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<3x8xf32>, tensor<i32>
  // expected-error @below {{'xf.layer' op freezes 'v', which is no parameter of block 'block'}}
  %y = xf.layer @block(%x) at "l." settings {window = 4 : i64} frozen ["v"] : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @setting_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.setting' op has the default "wide", which is not of type 'index'}}
  %n = xf.setting "window" : index = "wide"
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @setting_c1_rope(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.setting' op has the default #xf.rope<base = 1.000000e+04, dims = 8>, which is not of type 'tensor<8xf32>'}}
  %f = xf.setting "rope" : tensor<8xf32> = #xf.rope<base = 1.0e+04, dims = 8>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @linear_c1(%x: tensor<8xf32>, %W: tensor<8x4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.linear' op multiplies a matrix of 4 inputs, 'tensor<8x4xf32>', with 'tensor<8xf32>'; the last dimension must be 4}}
  %y = xf.linear %W * %x : tensor<8x4xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @linear_c1_transposed(%x: tensor<8xf32>, %W: tensor<4x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.linear' op multiplies a matrix of 4 inputs, 'tensor<4x8xf32>', with 'tensor<8xf32>'; the last dimension must be 4}}
  %y = xf.linear %W * %x transposed : tensor<4x8xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @bias_c1(%x: tensor<8xf32>, %b: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.bias' op joins 'tensor<8xf32>' and a parameter of type 'tensor<4xf32>'; the parameter must have the data's last dimensions}}
  %y = xf.bias %x + %b : tensor<8xf32>, tensor<4xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @scale_c1(%x: tensor<8xf32>, %m: tensor<2x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.scale' op joins 'tensor<8xf32>' and a parameter of type 'tensor<2x8xf32>'; the parameter must have the data's last dimensions}}
  %y = xf.scale %x by %m : tensor<8xf32>, tensor<2x8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @normalize_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.normalize' op has eps -1.000000e+00; it must be finite and not negative}}
  %y = xf.normalize rms %x eps -1.0 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @normalize_c1_nan(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.normalize' op has eps nan; it must be finite and not negative}}
  %y = xf.normalize layer %x eps 0x7FF8000000000000 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @softcap_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.softcap' op has cap 0.000000e+00; it must be finite and positive}}
  %y = xf.softcap %x at 0.0 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @mul_c1(%x: tensor<8xf32>, %s: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.mul' op joins 'tensor<8xf32>' and 'tensor<2xf32>'; the types must be equal, or the second tensor<1xf32>}}
  %y = xf.mul %x, %s : tensor<8xf32>, tensor<2xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @div_c1(%x: tensor<8xf32>, %s: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.div' op joins 'tensor<8xf32>' and 'tensor<2xf32>'; the types must be equal, or the second tensor<1xf32>}}
  %y = xf.div %x, %s : tensor<8xf32>, tensor<2xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @times_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.times' op has a factor that is not finite}}
  %y = xf.times %x by 0x7F800000 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @reshape_c1(%x: tensor<8xf32>) -> tensor<3x3xf32> {
  // expected-error @below {{'xf.reshape' op turns 'tensor<8xf32>' into 'tensor<3x3xf32>'; both must have the same number of elements}}
  %y = xf.reshape %x : tensor<8xf32> to tensor<3x3xf32>
  xf.yield %y : tensor<3x3xf32>
}

// -----

xf.block @slice_c1(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.slice' op takes 4 entries from 5 on, of 8}}
  %y = xf.slice %x from 5 : tensor<8xf32> to tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

xf.block @slice_c1_overflow(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'xf.slice' op takes 4 entries from 9223372036854775807 on, of 8}}
  %y = xf.slice %x from 9223372036854775807 : tensor<8xf32> to tensor<4xf32>
  xf.yield %y : tensor<4xf32>
}

// -----

xf.block @slice_c2(%x: tensor<8x3xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'xf.slice' op takes 'tensor<4x2xf32>' from 'tensor<8x3xf32>'; only the first dimension may differ}}
  %y = xf.slice %x from 0 : tensor<8x3xf32> to tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @concat_c1(%x: tensor<8x3xf32>, %z: tensor<8x2xf32>) -> tensor<16x3xf32> {
  // expected-error @below {{'xf.concat' op joins 'tensor<8x3xf32>' and 'tensor<8x2xf32>'; all dimensions but the first must be equal}}
  %y = xf.concat %x, %z : tensor<8x3xf32>, tensor<8x2xf32>
  xf.yield %y : tensor<16x3xf32>
}

// -----

xf.block @rotary_c1(%x: tensor<2x4xf32>, %f: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'xf.rotary' op rotates 'tensor<2x4xf32>' by 'tensor<3xf32>'; it needs (heads, D) and at most D/2 frequencies}}
  %y = xf.rotary half %x by %f : tensor<2x4xf32>, tensor<3xf32>
  xf.yield %y : tensor<2x4xf32>
}

// -----

xf.block @attention_c1_rank(%q: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.attention' op has query 'tensor<8xf32>', key 'tensor<8xf32>', value 'tensor<8xf32>' and result 'tensor<8xf32>'; each must be (heads, dims)}}
  %y = xf.attention %q, %q, %q scale 1.0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @attention_c1_width(%q: tensor<4x2xf32>, %k: tensor<2x3xf32>) -> tensor<4x3xf32> {
  // expected-error @below {{'xf.attention' op has query 'tensor<4x2xf32>', key 'tensor<2x3xf32>', value 'tensor<2x3xf32>' and result 'tensor<4x3xf32>'; query and key heads must be of one width}}
  %y = xf.attention %q, %k, %k scale 1.0 : tensor<4x2xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<4x3xf32>
  xf.yield %y : tensor<4x3xf32>
}

// -----

xf.block @attention_c1_groups(%q: tensor<4x2xf32>, %k: tensor<3x2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'xf.attention' op has query 'tensor<4x2xf32>', key 'tensor<3x2xf32>', value 'tensor<3x2xf32>' and result 'tensor<4x2xf32>'; keys and values must have the same number of heads, which divides the queries'}}
  %y = xf.attention %q, %k, %k scale 1.0 : tensor<4x2xf32>, tensor<3x2xf32>, tensor<3x2xf32> -> tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @attention_c1_result(%q: tensor<4x2xf32>, %k: tensor<2x2xf32>) -> tensor<4x3xf32> {
  // expected-error @below {{'xf.attention' op has query 'tensor<4x2xf32>', key 'tensor<2x2xf32>', value 'tensor<2x2xf32>' and result 'tensor<4x3xf32>'; the result must have the queries' heads and the values' width}}
  %y = xf.attention %q, %k, %k scale 1.0 : tensor<4x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<4x3xf32>
  xf.yield %y : tensor<4x3xf32>
}

// -----

xf.block @attention_c2(%q: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'xf.attention' op has cap -1.000000e+00; it must be finite and positive}}
  %y = xf.attention %q, %q, %q scale 1.0 softcap -1.0 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @attention_c3(%q: tensor<4x2xf32>, %m: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'xf.attention' op has slopes 'tensor<2xf32>' for query 'tensor<4x2xf32>'; there must be one for each head}}
  %y = xf.attention %q, %q, %q scale 1.0 slopes %m : tensor<2xf32> : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @attention_c3_sinks(%q: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'xf.attention' op has sinks 'tensor<2xf32>' for query 'tensor<4x2xf32>'; there must be one for each head}}
  %y = xf.attention %q, %q, %q scale 1.0 sinks %b : tensor<2xf32> : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @attention_c4(%q: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = xf.setting "window" : index = 3
  // expected-error @below {{'xf.attention' op is bidirectional and has a window; it may have one of them}}
  %y = xf.attention %q, %q, %q scale 1.0 window %w bidirectional : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  xf.yield %y : tensor<4x2xf32>
}

// -----

xf.block @concat_c1_along(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.concat' op joins 'tensor<2x3xf32>' and 'tensor<3x3xf32>'; all dimensions but the one that it goes along must be equal}}
  %z = xf.concat %x, %y along 1 : tensor<2x3xf32>, tensor<3x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @concat_c2(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.concat' op joins along dimension 2 of 'tensor<2x3xf32>'}}
  %z = xf.concat %x, %x along 2 : tensor<2x3xf32>, tensor<2x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @broadcast_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{'xf.broadcast' op repeats 'tensor<2x3xf32>' as 'tensor<4x3xf32>'; it needs a first dimension of 1, and only that may differ}}
  %z = xf.broadcast %x : tensor<2x3xf32> to tensor<4x3xf32>
  xf.yield %x : tensor<2x3xf32>
}

// -----

xf.block @constant_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.constant' op has the id -1; it must not be negative}}
  %i = xf.constant -1 : tensor<i32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @rotary_c2(%x: tensor<2x4xf32>, %f: tensor<2xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'xf.rotary' op has amplitude 0.000000e+00; it must be finite and not zero}}
  %y = xf.rotary half %x by %f amplitude 0.0 : tensor<2x4xf32>, tensor<2xf32>
  xf.yield %y : tensor<2x4xf32>
}

// -----

xf.block @leaky_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.leaky' op has slope 0.000000e+00; it must be finite and positive}}
  %y = xf.leaky %x by 0.0 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @power_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.power' op has exponent 4; it must be 2 or 3}}
  %y = xf.power %x to 4 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @param_c4(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.param' op is constant and not frozen; no patch may change a part of the program}}
  %m = xf.param "m" constant : tensor<8xf32>
  %y = xf.scale %x by %m : tensor<8xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @clamp_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.clamp' op has cap -1.000000e+00; it must be finite and positive}}
  %y = xf.clamp %x to -1.0 : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @position_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.position' op has offset -1; it must not be negative}}
  %p = xf.position plus -1 : tensor<i32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @token_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.token' op has a negative id}}
  %t = xf.token replace [1, -2] by 0 : tensor<i32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @position_c1_divisor(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.position' op has divisor 0; it must be positive}}
  %p = xf.position over 0 : tensor<i32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @position_c2(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.position' op has the result 'tensor<8xf32>'; expected tensor<i32> or tensor<1xf32>}}
  %p = xf.position : tensor<8xf32>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @conv_c1(%x: tensor<8xf32>, %W: tensor<4x3xf32>) -> tensor<8xf32> {
  // expected-error @below {{'xf.conv' op convolves 'tensor<8xf32>' with 'tensor<4x3xf32>'; the weight must be (channels, k)}}
  %y = xf.conv %W, %x : tensor<4x3xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}

// -----

xf.block @rope_base(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{#xf.rope needs a positive base, found -1.000000e+00}}
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = -1.0, dims = 4>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @rope_dims(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{#xf.rope needs a positive even number of dims, found 5}}
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.0e+04, dims = 5>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @rope_llama3(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{#xf.rope's llama3 needs four positive numbers: factor, low_freq_factor, high_freq_factor, original_context}}
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.0e+04, dims = 4, llama3 = [8.0, 1.0]>
  xf.yield %x : tensor<8xf32>
}

// -----

xf.block @rope_yarn(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{#xf.rope's yarn needs four positive numbers, factor, beta_fast, beta_slow and original_context, then truncate, 0 or 1, and a base other than 1}}
  %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.0e+04, dims = 4, yarn = [8.0, 32.0, 1.0, 4096.0, 2.0]>
  xf.yield %x : tensor<8xf32>
}

// -----

// expected-error @below {{'xf.model' op ends at position 0; it must be positive}}
xf.model @model_c3 positions 0 {
  %id = xf.token : tensor<i32>
  xf.yield %id : tensor<i32>
}

// -----

xf.block @run_of_another_name(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{custom op 'xf.scan' expected string or keyword containing one of the following enum values for attribute 'run' [full, reduced]}}
  %y = xf.scan %x, %x run other : tensor<2xf32>
  xf.yield %y : tensor<2xf32>
}

// -----

xf.block @linear_attention_c1(%q: tensor<2x4xf32>, %v: tensor<3x4xf32>, %d: tensor<3xf32>) -> tensor<3x4xf32> {
  // expected-error @below {{'xf.linear_attention' op has query 'tensor<2x4xf32>', key 'tensor<2x4xf32>' and value 'tensor<3x4xf32>'; the first two must be (groups, dims), and the value (heads, dims) with a multiple of the groups}}
  %y = xf.linear_attention %q, %q, %v decay %d : tensor<2x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>
  xf.yield %y : tensor<3x4xf32>
}

// -----

xf.block @linear_attention_c1_key(%q: tensor<2x4xf32>, %k: tensor<1x4xf32>, %v: tensor<4x4xf32>, %d: tensor<4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{the first two must be (groups, dims)}}
  %y = xf.linear_attention %q, %k, %v decay %d : tensor<2x4xf32>, tensor<1x4xf32>, tensor<4x4xf32>, tensor<4xf32>
  xf.yield %y : tensor<4x4xf32>
}

// -----

xf.block @linear_attention_c2(%q: tensor<1x4xf32>, %v: tensor<3x4xf32>, %d: tensor<4xf32>) -> tensor<3x4xf32> {
  // expected-error @below {{'xf.linear_attention' op has decay 'tensor<4xf32>' for query 'tensor<1x4xf32>' and value 'tensor<3x4xf32>'; there must be one number for each head, or for each row of its state}}
  %y = xf.linear_attention %q, %q, %v decay %d : tensor<1x4xf32>, tensor<1x4xf32>, tensor<3x4xf32>, tensor<4xf32>
  xf.yield %y : tensor<3x4xf32>
}

// -----

xf.block @linear_attention_c2_rates(%q: tensor<1x4xf32>, %v: tensor<3x4xf32>, %d: tensor<3xf32>) -> tensor<3x4xf32> {
  %A = xf.param "A" : tensor<4x3xbf16>
  // expected-error @below {{'xf.linear_attention' op has rates 'tensor<4x3xbf16>'}}
  %y = xf.linear_attention %q, %q, %v decay %d rates %A : tensor<4x3xbf16> : tensor<1x4xf32>, tensor<1x4xf32>, tensor<3x4xf32>, tensor<3xf32>
  xf.yield %y : tensor<3x4xf32>
}

// -----

xf.block @linear_attention_c3(%q: tensor<1x4xf32>, %v: tensor<3x4xf32>, %d: tensor<3xf32>, %b: tensor<1xf32>) -> tensor<3x4xf32> {
  // expected-error @below {{'xf.linear_attention' op has delta 'tensor<1xf32>' for value 'tensor<3x4xf32>'; there must be one for each head}}
  %y = xf.linear_attention %q, %q, %v decay %d delta %b : tensor<1xf32> : tensor<1x4xf32>, tensor<1x4xf32>, tensor<3x4xf32>, tensor<3xf32>
  xf.yield %y : tensor<3x4xf32>
}
