//! Layer 7: the binary `grampus`.

mod os;

fn main() {
    let _ = os::env;
}
