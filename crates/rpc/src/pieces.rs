//! The memory of pieces of answers: what the socket has taken is written to again.
//!
//! A scan's answers are gigabytes in pieces that live for a millisecond. Given back to the allocator, and by it to the
//! kernel, each would be cleared and mapped anew, a tenth of what such a scan costs.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Bytes of a piece that copied cells are gathered in.
pub(crate) const PIECE_LEN: usize = 64 << 10;
/// Pieces that a thread keeps: those of an answer of HBase's usual 2 MiB.
const KEPT_MAX: usize = 32;

thread_local! {
    // An answer is made and sent by the thread of its connection.
    static KEPT: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// An empty piece with room for [`PIECE_LEN`] bytes.
pub(crate) fn take() -> BytesMut {
    KEPT.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(PIECE_LEN))
}

/// Keeps the memory of a piece that nobody reads any more, if it is that of a piece and nobody else has it.
pub(crate) fn give_back(piece: Bytes) {
    if piece.len() > PIECE_LEN || KEPT.with_borrow(Vec::len) == KEPT_MAX {
        return;
    }
    let Ok(mut piece) = piece.try_into_mut() else { return };
    piece.clear();
    // The beginning may have been cut off, as the socket took it first.
    let has_room = piece.capacity() >= PIECE_LEN || piece.try_reclaim(PIECE_LEN);
    if has_room && piece.capacity() <= PIECE_LEN {
        KEPT.with_borrow_mut(|kept| kept.push(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        KEPT.with_borrow(Vec::len)
    }

    #[test]
    fn only_whole_pieces_that_nobody_has_are_kept() {
        let mut piece = take();
        piece.extend_from_slice(&[1; 3000]);
        let mut sent = piece.freeze();
        let reader = sent.clone();
        give_back(sent.clone());
        assert_eq!(kept(), 0, "somebody reads it");
        drop(reader);
        bytes::Buf::advance(&mut sent, 1000);
        let at = sent.as_ptr() as usize - 1000;
        give_back(sent);
        assert_eq!(kept(), 1);
        for other in
            [Bytes::from(vec![0; 100]), Bytes::from(vec![0; 2 * PIECE_LEN]), Bytes::from_static(b"x")]
        {
            give_back(other);
        }
        assert_eq!(kept(), 1);
        let again = take();
        assert_eq!((again.as_ptr() as usize, again.len(), again.capacity()), (at, 0, PIECE_LEN));
    }

    #[test]
    fn a_thread_keeps_few() {
        let pieces: Vec<_> = (0..2 * KEPT_MAX).map(|_| take()).collect();
        pieces.into_iter().for_each(|piece| give_back(piece.freeze()));
        assert_eq!(kept(), KEPT_MAX);
    }
}
