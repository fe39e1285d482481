//! What becomes of one cell of a store: what the rules and the filter say together, and how many cells of a row are given.

use bytes::Bytes;
use cell::Cell;
use cell::query::Scan;

use crate::filter::{Misfit, ScanFilter, ValueForm};
use crate::scanner::filtered::{Filtered, Followed, Verdict};
use crate::scanner::matcher::{Match, Matcher, Versions};
use crate::scanner::output::Output;
use crate::scanner::rules::FamilyRules;

/// Judges the cells of one store, row by row, in the order of keys.
pub(crate) struct Judge {
    matcher: Matcher,
    // With a filter: how it and the rules go together.
    filtered: Option<Filtered>,
    // Cells of a row that are passed over, and how many are given at most.
    offset: u32,
    limit: Option<u32>,
    // Cells of the current row that passed.
    passed: u32,
}

/// What became of a cell.
pub(crate) enum Judgement {
    /// It was written or not; where to go on.
    Step(Step, Match),
    /// It was passed over; the filter [knows](Judge::follow) where to go on.
    Hint,
    /// The filter cannot judge it.
    Refused(Misfit),
}

/// What became of a cell, for those who count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It was passed over; its size.
    Passed(usize),
    /// It was written to the sink; its size as clients get it.
    Written(usize),
}

impl Judge {
    pub(crate) fn new(rules: &FamilyRules, scan: &Scan, qualifiers: Option<&[Bytes]>, now_ms: i64) -> Judge {
        let range = scan.selection.time_range_of(&rules.family);
        let versions =
            Versions { wanted: scan.selection.max_versions, filtered: scan.selection.filter.is_some() };
        let qualifiers = qualifiers.map(<[_]>::to_vec);
        let (matcher, kept) = match scan.raw {
            true => (Matcher::raw(rules, range, versions, now_ms), u32::MAX),
            false => (Matcher::user(rules, qualifiers, range, versions, now_ms), rules.max_versions),
        };
        Judge {
            matcher,
            filtered: versions.filtered.then(|| Filtered::new(versions.returned(kept), scan.reversed)),
            offset: scan.selection.store_offset,
            limit: scan.selection.store_limit,
            passed: 0,
        }
    }

    /// A row begins.
    #[inline]
    pub(crate) fn begin_row(&mut self) {
        self.matcher.begin_row();
        if let Some(filtered) = &mut self.filtered {
            filtered.begin_row();
        }
        self.passed = 0;
    }

    /// Judges the next cell of the row, and writes it if it passes.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        cell: &Cell<'_>,
        filter: Option<&mut ScanFilter>,
        output: &mut Output<'_>,
    ) -> Judgement {
        let rules = self.matcher.check(cell);
        let passed = Step::Passed(cell.key.len());
        if !rules.includes() {
            return Judgement::Step(passed, rules);
        }
        let (Some(filter), Some(filtered)) = (filter, &mut self.filtered) else {
            return self.take(rules, cell, output);
        };
        match filtered.judge(&mut self.matcher, filter, cell, rules) {
            Ok(Verdict::Rules(verdict)) if !verdict.includes() => Judgement::Step(passed, verdict),
            Ok(Verdict::Rules(verdict)) => match &filter.transform(cell) {
                ValueForm::Whole(_) => self.take(verdict, cell, output),
                ValueForm::Empty => self.take(verdict, &Cell { value: &[], tags: &[], ..*cell }, output),
                ValueForm::Length(len) => {
                    self.take(verdict, &Cell { value: len, tags: &[], ..*cell }, output)
                }
            },
            Ok(Verdict::Hint) => Judgement::Hint,
            Err(misfit) => Judgement::Refused(misfit),
        }
    }

    /// A cell passes: it is written, unless it lies before the offset.
    #[inline]
    fn take(&mut self, verdict: Match, cell: &Cell<'_>, output: &mut Output<'_>) -> Judgement {
        self.passed += 1;
        let step = match self.passed <= self.offset {
            true => Step::Passed(cell.key.len()),
            false => {
                output.write(cell);
                Step::Written(cell.len_without_tags())
            }
        };
        Judgement::Step(step, if self.is_full() { Match::NextRow } else { verdict })
    }

    /// Whether the row has given as many cells as it may. As HBase asks behind a cell that was returned, with a limit of
    /// none one is returned.
    #[inline]
    fn is_full(&self) -> bool {
        self.passed > self.offset
            && self.limit.is_some_and(|limit| self.passed >= limit.saturating_add(self.offset))
    }

    /// The qualifier to go to when the current column is done with; `None` for whichever comes next.
    #[inline]
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        self.matcher.hint()
    }

    /// Where the filter wants to go from a cell that it gave a hint for.
    pub(crate) fn follow<'a>(&self, filter: &'a mut ScanFilter, cell: &Cell<'_>) -> Followed<'a> {
        self.filtered.as_ref().map_or(Followed::No, |filtered| filtered.follow(filter, cell))
    }
}
