//! The dictionaries of HBase's compressed logs: a repeated item is written as a number.
//!
//! An item that is not in the dictionary is written as `ff | varint length | bytes` and added. For
//! any other item, the number of its slot is written, in two bytes. Slots are used from 0 on. When
//! all are in use, the least recently used slot is reused. The reader updates the dictionary as the
//! writer did, so it must begin at the start of the file.
//!
//! Source: HBase `LRUDictionary`, `WALCellCodec`; compared with logs that HBase wrote.

use bytes::Bytes;

/// First byte of an item that is not a number.
pub(crate) const LITERAL: u8 = 0xff;

/// No slot.
const NONE: u16 = u16::MAX;

/// A dictionary of at most 32767 items. The order of use is a list linked through the slots.
pub(crate) struct Dictionary {
    slots: Vec<Slot>,
    capacity: usize,
    newest: u16,
    oldest: u16,
}

struct Slot {
    item: Bytes,
    newer: u16,
    older: u16,
}

impl Dictionary {
    pub(crate) fn new(capacity: u16) -> Dictionary {
        assert!((1..=i16::MAX as u16).contains(&capacity), "numbers have 15 bits");
        Dictionary { slots: Vec::new(), capacity: usize::from(capacity), newest: NONE, oldest: NONE }
    }

    /// Adds an item. Empty items are never added.
    pub(crate) fn add(&mut self, item: &[u8]) {
        if item.is_empty() {
            return;
        }
        // Copied, because a slice would keep the whole read buffer in memory.
        let item = Bytes::copy_from_slice(item);
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(Slot { item, newer: NONE, older: NONE });
            (self.slots.len() - 1) as u16
        } else {
            let slot = self.oldest;
            self.unlink(slot);
            self.slots[usize::from(slot)].item = item;
            slot
        };
        self.link_newest(slot);
    }

    /// The item with this number, which becomes the most recently used.
    pub(crate) fn get(&mut self, number: u16) -> Option<Bytes> {
        let item = self.slots.get(usize::from(number))?.item.clone();
        self.unlink(number);
        self.link_newest(number);
        Some(item)
    }

    fn unlink(&mut self, slot: u16) {
        let Slot { newer, older, .. } = self.slots[usize::from(slot)];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[usize::from(newer)].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[usize::from(older)].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u16) {
        let before = std::mem::replace(&mut self.newest, slot);
        debug_assert!(before != slot, "a slot is unlinked before it is linked");
        self.slots[usize::from(slot)].newer = NONE;
        self.slots[usize::from(slot)].older = before;
        match before {
            NONE => self.oldest = slot,
            before => self.slots[usize::from(before)].newer = slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_slot_is_reused() {
        let mut dictionary = Dictionary::new(3);
        for item in [&b"a"[..], b"b", b"c"] {
            dictionary.add(item);
        }
        assert_eq!(dictionary.get(0).unwrap(), "a");
        dictionary.add(b"d"); // b was used longest ago
        assert_eq!(dictionary.get(1).unwrap(), "d");
        dictionary.add(b"e"); // then c
        assert_eq!(dictionary.get(2).unwrap(), "e");
        dictionary.add(b"f"); // then a
        assert_eq!(dictionary.get(0).unwrap(), "f");
        assert_eq!(dictionary.get(3), None);
    }

    /// Compares the dictionary with a list that is ordered by use.
    #[test]
    fn agrees_with_a_list() {
        for capacity in [1u16, 2, 7, 127] {
            let mut dictionary = Dictionary::new(capacity);
            let (mut items, mut order): (Vec<Vec<u8>>, Vec<usize>) = (Vec::new(), Vec::new());
            let mut state = 12345u64;
            for step in 0..5000u32 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if !items.is_empty() && state >> 60 & 1 == 0 {
                    let number = (state >> 33) as usize % items.len();
                    order.retain(|slot| *slot != number);
                    order.insert(0, number);
                    assert_eq!(dictionary.get(number as u16).unwrap(), items[number]);
                } else {
                    let item = step.to_be_bytes().to_vec();
                    dictionary.add(&item);
                    let slot = if items.len() < usize::from(capacity) {
                        items.push(item);
                        items.len() - 1
                    } else {
                        let slot = order.pop().unwrap();
                        items[slot] = item;
                        slot
                    };
                    order.insert(0, slot);
                }
            }
        }
    }
}
