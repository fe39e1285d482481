//! Tags: what a cell says about itself beside its value.
//!
//! ```text
//! ( length 2 | type 1 | value )*        the length counts type and value, not itself
//! ```
//!
//! Bytes that are no tags end the iteration: who takes them from a client checks them first.

use crate::cell::TAGS_LEN_MAX;

/// Type of the tag that holds a cell's own time to live: milliseconds, eight bytes (`TagType.TTL_TAG_TYPE`).
pub const TTL: u8 = 8;

/// Bytes of a tag's length.
const LENGTH_LEN: usize = 2;

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// What it says.
    pub kind: u8,
    /// The rest of it.
    pub value: &'a [u8],
}

/// The tags of a section, in order.
pub fn iter(tags: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = tags;
    std::iter::from_fn(move || {
        let (len, behind) = rest.split_first_chunk::<LENGTH_LEN>()?;
        let (tag, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let (kind, value) = tag.split_first()?;
        rest = behind;
        Some(Tag { kind: *kind, value })
    })
}

/// The time to live that the tags give their cell, in milliseconds.
pub fn ttl_ms(tags: &[u8]) -> Option<i64> {
    let tag = iter(tags).find(|tag| tag.kind == TTL)?;
    tag.value.try_into().ok().map(i64::from_be_bytes)
}

/// The tags of `sections` one after the other; `ttl_ms` takes the place of the times to live among them.
///
/// `None` if they are more than a cell can have.
pub fn joined(sections: &[&[u8]], ttl_ms: Option<i64>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for tag in sections.iter().flat_map(|section| iter(section)) {
        if ttl_ms.is_none() || tag.kind != TTL {
            push(&mut out, tag);
        }
    }
    if let Some(ttl_ms) = ttl_ms {
        push(&mut out, Tag { kind: TTL, value: &ttl_ms.to_be_bytes() });
    }
    (out.len() <= TAGS_LEN_MAX).then_some(out)
}

fn push(out: &mut Vec<u8>, tag: Tag<'_>) {
    let len = u16::try_from(tag.value.len() + 1).expect("a tag has a length of two bytes, or is short");
    out.extend_from_slice(&len.to_be_bytes());
    out.push(tag.kind);
    out.extend_from_slice(tag.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_taken_apart_and_put_together() {
        let ttl = joined(&[], Some(60_000)).unwrap();
        assert_eq!(ttl, [0, 9, 8, 0, 0, 0, 0, 0, 0, 0xea, 0x60]);
        assert_eq!(ttl_ms(&ttl), Some(60_000));
        let other = [0, 3, 65, 1, 2];
        assert_eq!(joined(&[&other, &ttl], None).unwrap(), [&other[..], &ttl].concat());
        let replaced = joined(&[&ttl, &other], Some(5)).unwrap();
        assert_eq!(iter(&replaced).map(|tag| tag.kind).collect::<Vec<_>>(), [65, TTL]);
        assert_eq!(ttl_ms(&replaced), Some(5));
        assert_eq!(ttl_ms(&other), None);
    }

    #[test]
    fn damaged_tags_end_the_iteration() {
        for damaged in [&[0][..], &[0, 0], &[0, 9, 8, 1], &[0xff, 0xff]] {
            assert_eq!(iter(damaged).count(), 0, "{damaged:?}");
            assert_eq!(ttl_ms(damaged), None);
        }
    }

    #[test]
    fn more_tags_than_a_cell_can_have_are_none() {
        let large = joined(&[&[&[0xff, 0xf0, 65][..], &vec![0; 0xffef]].concat()], None).unwrap();
        assert_eq!(joined(&[&large, &large], None), None);
    }
}
