//! The state kept for the cells of a scan: a few numbers, regardless of the scan's length.
//!
//! A scanner returns rows, or parts of rows if the scan has a batch size. HBase adds up some sums
//! part by part and others cell by cell, which affects floating-point results. This code does the
//! same.

use std::cmp::Ordering;

use proto::exception::{Answer, JavaException};

use super::interpreter::{Interpreter, add};

/// Aggregate state over cells.
pub(super) trait Fold: Clone + Send + 'static {
    /// Adds a cell's value.
    ///
    /// # Errors
    /// If the value is invalid, which ends the call.
    fn cell(&mut self, value: &[u8]) -> Answer<()>;

    /// Called at the end of a row, or of a part of one.
    fn end_part(&mut self) {}

    /// The response, after this number of parts.
    ///
    /// # Errors
    /// If HBase fails to build a response.
    fn finish(self, parts: u64) -> Answer<proto::AggregateResponse>;
}

fn response(first_part: Vec<Vec<u8>>, parts: Option<u64>) -> proto::AggregateResponse {
    proto::AggregateResponse {
        first_part: first_part.into_iter().map(Into::into).collect(),
        second_part: parts.map(|parts| parts.to_be_bytes().to_vec().into()),
    }
}

/// The greatest or the smallest number; the first of several equal ones.
pub(super) struct Extreme<I: Interpreter> {
    // A number is better if its order compared with the best one equals this.
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

    fn finish(self, _parts: u64) -> Answer<proto::AggregateResponse> {
        Ok(response(self.best.iter().map(I::encode).collect(), None))
    }
}

/// The sum; for an average also the number of parts.
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

    fn finish(self, parts: u64) -> Answer<proto::AggregateResponse> {
        let parts = (self.is_average && self.sum.is_some()).then_some(parts);
        Ok(response(self.sum.iter().map(I::encode).collect(), parts))
    }
}

/// Sum of the parts' sums, and sum of their squares.
pub(super) struct Deviation<I: Interpreter> {
    sum: Option<I::Number>,
    squares: Option<I::Number>,
    part: Option<I::Number>,
}

impl<I: Interpreter> Deviation<I> {
    pub(super) fn new() -> Deviation<I> {
        Deviation { sum: None, squares: None, part: None }
    }
}

impl<I: Interpreter> Clone for Deviation<I> {
    fn clone(&self) -> Deviation<I> {
        Deviation { sum: self.sum.clone(), squares: self.squares.clone(), part: self.part.clone() }
    }
}

impl<I: Interpreter> Fold for Deviation<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        self.part = add::<I>(self.part.take(), I::read(value)?);
        Ok(())
    }

    fn end_part(&mut self) {
        let part = self.part.take();
        let square = part.as_ref().map(|part| I::multiply(part, part));
        self.sum = add::<I>(self.sum.take(), part);
        self.squares = add::<I>(self.squares.take(), square);
    }

    fn finish(self, parts: u64) -> Answer<proto::AggregateResponse> {
        let sums = [self.sum, self.squares];
        let parts = sums[0].is_some().then_some(parts);
        Ok(response(sums.iter().flatten().map(I::encode).collect(), parts))
    }
}

/// Sums of values and of weights, from which the client determines the region and row of the
/// median.
///
/// Like HBase, this does not distinguish the cells' columns, so both sums are over all cells.
/// Without a weight column the sum of weights is the smallest number.
pub(super) struct Median<I: Interpreter> {
    sum: Option<I::Number>,
    part: Option<I::Number>,
    is_weighted: bool,
}

impl<I: Interpreter> Median<I> {
    pub(super) fn new(is_weighted: bool) -> Median<I> {
        Median { sum: None, part: None, is_weighted }
    }
}

impl<I: Interpreter> Clone for Median<I> {
    fn clone(&self) -> Median<I> {
        Median { sum: self.sum.clone(), part: self.part.clone(), is_weighted: self.is_weighted }
    }
}

impl<I: Interpreter> Fold for Median<I> {
    fn cell(&mut self, value: &[u8]) -> Answer<()> {
        self.part = add::<I>(self.part.take(), I::read(value)?);
        Ok(())
    }

    fn end_part(&mut self) {
        self.sum = add::<I>(self.sum.take(), self.part.take());
    }

    fn finish(self, _parts: u64) -> Answer<proto::AggregateResponse> {
        let Some(sum) = self.sum else { return Err(JavaException::io(I::NOTHING_TO_ENCODE)) };
        let weights = if self.is_weighted { I::encode(&sum) } else { I::encode(&I::smallest()) };
        Ok(response(vec![I::encode(&sum), weights], None))
    }
}

/// Number of parts that have cells.
#[derive(Clone)]
pub(super) struct Count(pub(super) u64);

impl Fold for Count {
    fn cell(&mut self, _value: &[u8]) -> Answer<()> {
        Ok(())
    }

    fn end_part(&mut self) {
        self.0 += 1;
    }

    fn finish(self, _parts: u64) -> Answer<proto::AggregateResponse> {
        Ok(response(vec![self.0.to_be_bytes().to_vec()], None))
    }
}
