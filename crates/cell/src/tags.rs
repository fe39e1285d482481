//! Tags: what a cell says about itself beside its value.
//!
//! ```text
//! ( length 2 | type 1 | value )*        the length counts type and value, not itself
//! ```
//!
//! [`check`] refuses malformed sections of a client. HBase stores them unchecked, so a file or log may
//! still hold one: it ends the iteration, and [`readable`] keeps it from clients.

use crate::cell::{Malformed, TAGS_LEN_MAX};

/// Type of the tag that holds a cell's own time to live: milliseconds, eight bytes (`TagType.TTL_TAG_TYPE`).
pub const TTL: u8 = 8;

/// Bytes of a tag's length.
const LENGTH_LEN: usize = 2;
/// Bytes of the value of a [`TTL`] tag.
const TTL_LEN: usize = 8;

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

/// Checks that a section consists of whole tags, and that its times to live are of eight bytes.
///
/// # Errors
/// [`Malformed`] naming the first part that is wrong.
pub fn check(tags: &[u8]) -> Result<(), Malformed> {
    if tags.len() > TAGS_LEN_MAX {
        return Err(Malformed("tags longer than 65535 bytes"));
    }
    let mut rest = tags.len();
    for tag in iter(tags) {
        rest -= LENGTH_LEN + 1 + tag.value.len();
        if tag.kind == TTL && tag.value.len() != TTL_LEN {
            return Err(Malformed("a TTL tag is not of 8 bytes"));
        }
    }
    if rest > 0 { Err(Malformed("tags: a length does not add up")) } else { Ok(()) }
}

/// The section, or an empty one if it is malformed: what clients can decode of a stored cell's tags.
#[inline]
pub fn readable(tags: &[u8]) -> &[u8] {
    if tags.is_empty() || is_whole(tags) { tags } else { &[] }
}

fn is_whole(tags: &[u8]) -> bool {
    let whole: usize = iter(tags).map(|tag| LENGTH_LEN + 1 + tag.value.len()).sum();
    whole == tags.len()
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
            assert!(check(damaged).is_err() && readable(damaged).is_empty(), "{damaged:?}");
            let behind_good = [&[0, 2, 65, 1][..], damaged].concat();
            assert!(check(&behind_good).is_err() && readable(&behind_good).is_empty(), "{damaged:?}");
        }
    }

    #[test]
    fn whole_tags_pass_the_check() {
        for good in [&[][..], &[0, 1, 65], &[0, 3, 65, 1, 2, 0, 2, 65, 9]] {
            assert_eq!((check(good), readable(good)), (Ok(()), good));
        }
        let short_ttl = [0, 4, TTL, 1, 2, 3];
        assert!(check(&short_ttl).is_err());
        assert_eq!((ttl_ms(&short_ttl), readable(&short_ttl)), (None, &short_ttl[..]));
    }

    #[test]
    fn more_tags_than_a_cell_can_have_are_none() {
        let large = joined(&[&[&[0xff, 0xf0, 65][..], &vec![0; 0xffef]].concat()], None).unwrap();
        assert_eq!(joined(&[&large, &large], None), None);
    }
}
