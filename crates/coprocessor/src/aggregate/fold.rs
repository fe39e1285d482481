//! What is kept of the cells of a scan: a few numbers, whatever the scan's length.
//!
//! A scanner gives rows, or pieces of rows where the scan has a batch. HBase adds up some of its sums piece by piece and
//! others cell by cell, which shows in floating-point numbers; so does this.

use std::cmp::Ordering;

use wire::exception::{Answer, JavaException};

use super::interpreter::{Interpreter, add};

/// What is kept of cells.
pub(super) trait Fold: Clone + Send + 'static {
    /// Takes a cell's value.
    ///
    /// # Errors
    /// Of a value that ends the call.
    fn cell(&mut self, value: &[u8]) -> Answer<()>;

    /// A row ended, or a piece of one.
    fn end_piece(&mut self) {}

    /// The answer, after so many pieces.
    ///
    /// # Errors
    /// Where HBase fails to make one.
    fn answer(self, pieces: u64) -> Answer<proto::AggregateResponse>;
}

fn response(first_part: Vec<Vec<u8>>, pieces: Option<u64>) -> proto::AggregateResponse {
    proto::AggregateResponse {
        first_part: first_part.into_iter().map(Into::into).collect(),
        second_part: pieces.map(|pieces| pieces.to_be_bytes().to_vec().into()),
    }
}

/// The largest number, or the smallest one: of several that are equal, the first.
pub(super) struct Extreme<I: Interpreter> {
    // What the order of a number to the best one must be to be better.
    better: Ordering,
    best: Option<I::Number>,
}

impl<I: Interpreter> Extreme<I> {
    pub(super) fn largest() -> Extreme<I> {
        Extreme { better: Ordering::Greater, best: None }
    }

    pub(super) fn smallest() -> Extreme<I> {
        Extreme { better: Ordering::Less, best: None }
    }
}

impl<I: Interpreter> Clone for Extreme<I> {
    fn clone(&self) -> Extreme<I> {
        Extreme { better: self.better, best: self.best.clone() }
    }
}

impl<I: Interpreter> Fold for Extreme<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        if let Some(number) = I::read(value)?
            && self.best.as_ref().is_none_or(|best| I::compare(&number, best) == self.better)
        {
            self.best = Some(number);
        }
        Ok(())
    }

    fn answer(self, _pieces: u64) -> Answer<proto::AggregateResponse> {
        Ok(response(self.best.iter().map(I::encode).collect(), None))
    }
}

/// The sum, and for an average the number of pieces.
pub(super) struct Sum<I: Interpreter> {
    sum: Option<I::Number>,
    is_average: bool,
}

impl<I: Interpreter> Sum<I> {
    pub(super) fn plain() -> Sum<I> {
        Sum { sum: None, is_average: false }
    }

    pub(super) fn average() -> Sum<I> {
        Sum { sum: None, is_average: true }
    }
}

impl<I: Interpreter> Clone for Sum<I> {
    fn clone(&self) -> Sum<I> {
        Sum { sum: self.sum.clone(), is_average: self.is_average }
    }
}

impl<I: Interpreter> Fold for Sum<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        self.sum = add::<I>(self.sum.take(), I::read(value)?);
        Ok(())
    }

    fn answer(self, pieces: u64) -> Answer<proto::AggregateResponse> {
        let pieces = (self.is_average && self.sum.is_some()).then_some(pieces);
        Ok(response(self.sum.iter().map(I::encode).collect(), pieces))
    }
}

/// Sums of the pieces' sums and of their squares.
pub(super) struct Deviation<I: Interpreter> {
    sum: Option<I::Number>,
    squares: Option<I::Number>,
    piece: Option<I::Number>,
}

impl<I: Interpreter> Deviation<I> {
    pub(super) fn new() -> Deviation<I> {
        Deviation { sum: None, squares: None, piece: None }
    }
}

impl<I: Interpreter> Clone for Deviation<I> {
    fn clone(&self) -> Deviation<I> {
        Deviation { sum: self.sum.clone(), squares: self.squares.clone(), piece: self.piece.clone() }
    }
}

impl<I: Interpreter> Fold for Deviation<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        self.piece = add::<I>(self.piece.take(), I::read(value)?);
        Ok(())
    }

    fn end_piece(&mut self) {
        let piece = self.piece.take();
        let square = piece.as_ref().map(|piece| I::multiply(piece, piece));
        self.sum = add::<I>(self.sum.take(), piece);
        self.squares = add::<I>(self.squares.take(), square);
    }

    fn answer(self, pieces: u64) -> Answer<proto::AggregateResponse> {
        let sums = [self.sum, self.squares];
        let pieces = sums[0].is_some().then_some(pieces);
        Ok(response(sums.iter().flatten().map(I::encode).collect(), pieces))
    }
}

/// Sums of values and of weights, by which the client finds the region and the row of the median.
///
/// HBase's does not look which column a cell is of, so both are sums over all of them; without a column for weights their sum
/// is the smallest number.
pub(super) struct Median<I: Interpreter> {
    sum: Option<I::Number>,
    piece: Option<I::Number>,
    is_weighted: bool,
}

impl<I: Interpreter> Median<I> {
    pub(super) fn new(is_weighted: bool) -> Median<I> {
        Median { sum: None, piece: None, is_weighted }
    }
}

impl<I: Interpreter> Clone for Median<I> {
    fn clone(&self) -> Median<I> {
        Median { sum: self.sum.clone(), piece: self.piece.clone(), is_weighted: self.is_weighted }
    }
}

impl<I: Interpreter> Fold for Median<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        self.piece = add::<I>(self.piece.take(), I::read(value)?);
        Ok(())
    }

    fn end_piece(&mut self) {
        self.sum = add::<I>(self.sum.take(), self.piece.take());
    }

    fn answer(self, _pieces: u64) -> Answer<proto::AggregateResponse> {
        let Some(sum) = self.sum else { return Err(JavaException::io(I::NOTHING_TO_ENCODE)) };
        let weights = if self.is_weighted { I::encode(&sum) } else { I::encode(&I::smallest()) };
        Ok(response(vec![I::encode(&sum), weights], None))
    }
}

/// The number of pieces that have cells.
#[derive(Clone)]
pub(super) struct Count(pub(super) u64);

impl Fold for Count {
    fn cell(&mut self, _value: &[u8]) -> Answer<()> {
        Ok(())
    }

    fn end_piece(&mut self) {
        self.0 += 1;
    }

    fn answer(self, _pieces: u64) -> Answer<proto::AggregateResponse> {
        Ok(response(vec![self.0.to_be_bytes().to_vec()], None))
    }
}
