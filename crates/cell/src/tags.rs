//! Tags: metadata that a cell stores in addition to its value.
//!
//! ```text
//! ( length 2 | type 1 | value )*        the length counts type and value, not itself
//! ```
//!
//! [`check`] rejects malformed tags from a client. HBase stores them unchecked, so a file or log
//! may contain one. A malformed tag ends the iteration, and [`readable`] hides the section from
//! clients.

use crate::cell::{Malformed, TAGS_LEN_MAX};

/// Type of the tag that contains a cell's own time to live in milliseconds, 8 bytes
/// (`TagType.TTL_TAG_TYPE`).
pub const TTL: u8 = 8;

/// Type of the empty tag that marks a cell whose value refers to a MOB file
/// (`TagType.MOB_REFERENCE_TAG_TYPE`).
pub const MOB_REFERENCE: u8 = 5;
/// Type of the tag that contains the name of the table that owns the MOB file
/// (`TagType.MOB_TABLE_NAME_TAG_TYPE`).
pub const MOB_TABLE_NAME: u8 = 6;

/// Bytes of a tag's length.
const LENGTH_LEN: usize = 2;
/// Bytes of the value of a [`TTL`] tag.
const TTL_LEN: usize = 8;

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Type code, for example [`TTL`].
    pub kind: u8,
    /// Bytes after the type.
    pub value: &'a [u8],
}

/// The tags of a section, in order.
pub fn iter(tags: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = tags;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<LENGTH_LEN>()?;
        let (tag, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let (kind, value) = tag.split_first()?;
        rest = after;
        Some(Tag { kind: *kind, value })
    })
}

/// Checks that a section consists of complete tags, and that TTL tags have 8 bytes.
///
/// # Errors
/// [`Malformed`] naming the first invalid part.
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

/// The section, or an empty one if it is malformed: the tags of a stored cell that clients can
/// decode.
#[inline]
pub fn readable(tags: &[u8]) -> &[u8] {
    if tags.is_empty() || is_whole(tags) { tags } else { &[] }
}

fn is_whole(tags: &[u8]) -> bool {
    let whole: usize = iter(tags).map(|tag| LENGTH_LEN + 1 + tag.value.len()).sum();
    whole == tags.len()
}

/// The cell's time to live in milliseconds, from its TTL tag.
pub fn ttl_ms(tags: &[u8]) -> Option<i64> {
    let tag = iter(tags).find(|tag| tag.kind == TTL)?;
    tag.value.try_into().ok().map(i64::from_be_bytes)
}

/// Concatenates the tags of `sections`. If `ttl_ms` is given, it replaces all TTL tags among them.
///
/// `None` if the result is larger than the tags of a cell may be.
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

/// Appends a tag to a section.
///
/// # Panics
/// If the value is longer than a tag can be (65534 bytes).
pub fn push(out: &mut Vec<u8>, tag: Tag<'_>) {
    let len = u16::try_from(tag.value.len() + 1).expect("the length of a tag fits in 2 bytes");
    out.extend_from_slice(&len.to_be_bytes());
    out.push(tag.kind);
    out.extend_from_slice(tag.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_split_and_joined() {
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
            let after_good = [&[0, 2, 65, 1][..], damaged].concat();
            assert!(check(&after_good).is_err() && readable(&after_good).is_empty(), "{damaged:?}");
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
