//! Tags packed by a dictionary. Each block starts with an empty dictionary.
//!
//! The first occurrence of a tag is written as `ff | length, varint | bytes`, later ones as its
//! two-byte slot number. When all [`CAPACITY`] slots are taken, the least recently used one is
//! replaced. Reader and writer age their slots in the same way, so the slot numbers agree. Source:
//! HBase `TagCompressionContext`, `LRUDictionary`.

use base::varint::put_varint;

use crate::error::{Fault, Parsed};
use crate::input::Input;

/// Number of slots of a dictionary (HBase: `Byte.MAX_VALUE`).
const CAPACITY: usize = 127;
/// First byte of a tag that is not in the dictionary.
const NOT_IN_DICTIONARY: u8 = 0xff;

/// The dictionary of one block.
#[derive(Default)]
pub(crate) struct TagDictionary {
    slots: Vec<Vec<u8>>,
    /// Slot numbers, most recently used first.
    by_use: Vec<u8>,
}

impl TagDictionary {
    fn used(&mut self, slot: usize) {
        let at =
            self.by_use.iter().position(|used| usize::from(*used) == slot).expect("each slot is listed once");
        self.by_use[..=at].rotate_right(1);
    }

    fn add(&mut self, tag: &[u8]) {
        if tag.is_empty() {
            return;
        }
        if self.slots.len() < CAPACITY {
            self.by_use.insert(0, self.slots.len() as u8);
            self.slots.push(tag.to_vec());
        } else {
            self.by_use.rotate_right(1);
            let slot = &mut self.slots[usize::from(self.by_use[0])];
            slot.clear();
            slot.extend_from_slice(tag);
        }
    }

    /// Unpacks a tags section of `len` bytes and appends it to `tags`.
    pub(crate) fn unpack(&mut self, input: &mut Input<'_>, len: usize, tags: &mut Vec<u8>) -> Parsed<()> {
        const CUT: &str = "packed tag truncated";
        let end = tags.len() + len;
        while tags.len() < end {
            let first = input.u8(CUT)?;
            if first == NOT_IN_DICTIONARY {
                let tag_len = input.varint(CUT)? as usize;
                let tag = input.take(tag_len, CUT)?;
                push_tag(tags, tag)?;
                self.add(tag);
            } else {
                let slot = usize::from(first) << 8 | usize::from(input.u8(CUT)?);
                let tag = self.slots.get(slot).ok_or(Fault::Damaged("tag of an empty slot"))?;
                push_tag(tags, tag)?;
                self.used(slot);
            }
        }
        if tags.len() == end { Ok(()) } else { Err(Fault::Damaged("tags longer than their stated length")) }
    }

    /// Packs a tags section and appends it to `out`. Fails if its lengths are inconsistent.
    pub(crate) fn pack(&mut self, tags: &[u8], out: &mut Vec<u8>) -> Parsed<()> {
        const CUT: &str = "inconsistent tag lengths in a cell";
        let mut input = Input::new(tags);
        while input.remaining() > 0 {
            let len = input.u16(CUT)?;
            let tag = input.take(usize::from(len), CUT)?;
            if let Some(slot) = self.slots.iter().position(|known| known == tag) {
                out.extend_from_slice(&(slot as u16).to_be_bytes());
                self.used(slot);
            } else {
                out.push(NOT_IN_DICTIONARY);
                put_varint(out, tag.len() as u64);
                out.extend_from_slice(tag);
                self.add(tag);
            }
        }
        Ok(())
    }
}

fn push_tag(tags: &mut Vec<u8>, tag: &[u8]) -> Parsed<()> {
    let len = u16::try_from(tag.len()).map_err(|_| Fault::Damaged("tag larger than 64 KiB"))?;
    tags.extend_from_slice(&len.to_be_bytes());
    tags.extend_from_slice(tag);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More tags than slots, some used repeatedly: both sides replace and reuse the same slots.
    #[test]
    fn packed_tags_are_restored_when_slots_are_reused() {
        let sections: Vec<Vec<u8>> = (0..2000_u32)
            .map(|i| {
                let mut section = Vec::new();
                for name in [i % 7, i * i % 200, i % 150] {
                    push_tag(&mut section, format!("tag{name}").as_bytes()).unwrap();
                }
                section
            })
            .collect();
        let (mut writer, mut packed) = (TagDictionary::default(), Vec::new());
        sections.iter().for_each(|section| writer.pack(section, &mut packed).unwrap());
        let (mut reader, mut input) = (TagDictionary::default(), Input::new(&packed));
        for section in &sections {
            let mut tags = Vec::new();
            reader.unpack(&mut input, section.len(), &mut tags).unwrap();
            assert_eq!(&tags, section);
        }
        assert_eq!(input.remaining(), 0);
        assert!(packed.len() < sections.iter().map(Vec::len).sum());
    }

    #[test]
    fn an_empty_slot_is_refused() {
        assert!(TagDictionary::default().unpack(&mut Input::new(&[0, 0]), 4, &mut Vec::new()).is_err());
    }
}
