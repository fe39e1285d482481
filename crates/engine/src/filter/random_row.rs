//! `RandomRowFilter`: randomly chosen rows.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct RandomRow {
    probability: f32,
    state: u64,
    filter_out_row: bool,
}

impl RandomRow {
    pub(super) fn new(probability: f32, seed: u64) -> RandomRow {
        RandomRow { probability, state: seed, filter_out_row: false }
    }

    /// A number from 0 to below 1 (SplitMix64, whose upper bits fill a float's mantissa).
    fn next(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u32 << 24) as f32
    }
}

impl Evaluate for RandomRow {
    fn reset(&mut self) {
        self.filter_out_row = false;
    }
    fn filter_row_key(&mut self, _row: &[u8]) -> FilterResult<bool> {
        self.filter_out_row = if self.probability < 0.0 {
            true
        } else if self.probability > 1.0 {
            false
        } else {
            // Not `>=`: with NaN no row passes.
            let passes = self.next() < self.probability;
            !passes
        };
        Ok(self.filter_out_row)
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.filter_out_row { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn filter_row(&mut self) -> bool {
        self.filter_out_row
    }
    fn has_filter_row(&self) -> bool {
        true
    }
}
