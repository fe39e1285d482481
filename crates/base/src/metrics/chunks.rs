//! Long text that goes on its way while it is written: the beans of ten thousand regions are tens of megabytes.

use std::sync::mpsc;

/// Bytes of a piece, about.
const CHUNK_LEN: usize = 64 << 10;
/// Room for what is written between two looks at how much there is.
const MARGIN: usize = 4 << 10;

/// Takes text piece by piece, and says whether it wants more.
type Take = Box<dyn FnMut(Vec<u8>) -> bool + Send>;

/// Text that is handed on in pieces.
pub struct Chunks {
    pub(super) text: Vec<u8>,
    take: Take,
    is_wanted: bool,
}

impl Chunks {
    /// Text whose pieces `take` gets. When it returns false, it gets no more, and the rest is forgotten.
    pub fn new(take: impl FnMut(Vec<u8>) -> bool + Send + 'static) -> Chunks {
        Chunks { text: Vec::with_capacity(CHUNK_LEN + MARGIN), take: Box::new(take), is_wanted: true }
    }

    /// All that is written, where it is known to be little.
    pub fn collected(write: impl FnOnce(Chunks)) -> Vec<u8> {
        let (send, pieces) = mpsc::channel();
        write(Chunks::new(move |piece| send.send(piece).is_ok()));
        pieces.iter().flatten().collect()
    }

    /// Hands on what there is if it is a whole piece.
    pub(super) fn pass_on(&mut self) {
        if self.text.len() >= CHUNK_LEN {
            let full = std::mem::replace(&mut self.text, Vec::with_capacity(CHUNK_LEN + MARGIN));
            self.give(full);
        }
    }

    /// Hands on the rest.
    pub(super) fn finish(mut self) {
        let rest = std::mem::take(&mut self.text);
        self.give(rest);
    }

    fn give(&mut self, piece: Vec<u8>) {
        if self.is_wanted && !piece.is_empty() {
            self.is_wanted = (self.take)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens_of(pieces_wanted: usize) -> Vec<usize> {
        let (send, pieces) = mpsc::channel();
        let mut wanted = pieces_wanted;
        let mut chunks = Chunks::new(move |piece| {
            send.send(piece.len()).unwrap();
            wanted -= 1;
            wanted > 0
        });
        for _ in 0..CHUNK_LEN {
            chunks.text.extend_from_slice(b"abc");
            chunks.pass_on();
        }
        chunks.finish();
        pieces.iter().collect()
    }

    #[test]
    fn text_goes_on_in_pieces_as_long_as_it_is_wanted() {
        let whole = lens_of(usize::MAX);
        assert_eq!((whole.len(), whole.iter().sum::<usize>()), (3, 3 * CHUNK_LEN));
        assert_eq!(lens_of(1).len(), 1);
    }
}
