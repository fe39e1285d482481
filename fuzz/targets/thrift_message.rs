//! Messages of a Thrift client: the transport is detected, the end of each message is found piece
//! by piece, and each is decoded as the arguments of every method.
#![no_main]

use base::budget::{Budget, BudgetShare};
use bytes::Bytes;
use thrift::{Bounds, Protocol, Transport};

libfuzzer_sys::fuzz_target!(|stream: &[u8]| {
    let mut rest = match Transport::detect(stream) {
        Ok(Some(Transport::Unframed)) => stream,
        Ok(Some(Transport::Framed)) => &stream[4..],
        _ => return,
    };
    while let Some(protocol) = rest.first().and_then(|first| Protocol::of(*first).ok()) {
        let mut bounds = Bounds::of_message(protocol, rest.len());
        let in_parts = (0..=rest.len()).find_map(|len| bounds.advance(&rest[..len]).transpose());
        let at_once = Bounds::of_message(protocol, rest.len()).advance(rest);
        // Both find the same end, or the same fault.
        assert_eq!(in_parts.clone().transpose(), at_once);
        let budget = Budget::new(1 << 20);
        let end = at_once.ok().flatten().unwrap_or(rest.len());
        thrift::check_message(&Bytes::copy_from_slice(&rest[..end]), &mut BudgetShare::of(&budget));
        assert_eq!(budget.used(), 0);
        rest = &rest[end..];
    }
});
