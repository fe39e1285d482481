//! The packets of a block that some DataNode has not acknowledged.

use std::collections::VecDeque;

use crate::packet::{HEARTBEAT, Packet};

/// The packets that are sent again after the loss of a DataNode. They share their bytes with the
/// first ones.
pub(crate) struct Unacked {
    packets: VecDeque<Packet>,
    /// Number of the last packet that all nodes acknowledged; -1 if there is none.
    acked: i64,
    /// Length of the block up to that packet.
    acked_len: u64,
}

impl Default for Unacked {
    fn default() -> Unacked {
        Unacked { packets: VecDeque::new(), acked: HEARTBEAT, acked_len: 0 }
    }
}

impl Unacked {
    /// Adds new packets.
    pub(crate) fn add(&mut self, packets: &[Packet]) {
        self.packets.extend(packets.iter().cloned());
    }

    /// Removes the packets up to number `acked`.
    pub(crate) fn acknowledge(&mut self, acked: i64) {
        while let Some(packet) = self.packets.pop_front_if(|packet| packet.seqno <= acked) {
            self.acked = packet.seqno;
            self.acked_len = packet.end;
        }
    }

    pub(crate) fn acked(&self) -> i64 {
        self.acked
    }

    pub(crate) fn acked_len(&self) -> u64 {
        self.acked_len
    }

    /// The packets, the oldest first.
    pub(crate) fn packets(&self) -> Vec<Packet> {
        self.packets.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packetizer;

    #[test]
    fn packets_stay_until_they_are_acknowledged() {
        let (mut unacked, mut packets) = (Unacked::default(), Packetizer::default());
        for len in [100, 700] {
            unacked.add(&packets.cut(vec![1; len].into(), false));
        }
        unacked.acknowledge(HEARTBEAT);
        assert_eq!((unacked.acked(), unacked.acked_len(), unacked.packets().len()), (-1, 0, 2));
        unacked.acknowledge(0);
        assert_eq!((unacked.acked(), unacked.acked_len()), (0, 100));
        assert_eq!(unacked.packets()[0].end, 800);
        unacked.acknowledge(1);
        assert!(unacked.packets().is_empty());
        assert_eq!((unacked.acked(), unacked.acked_len()), (1, 800));
    }
}
