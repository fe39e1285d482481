//! The verdict on one cell of a store: applies the rules, the filter, and the limit of cells per
//! row.

use bytes::Bytes;
use cell::Cell;
use cell::query::{MobReads, Scan};

use crate::filter::{FilterError, ScanFilter, ValueForm};
use crate::mob;
use crate::scanner::filtered::{FilteredVersions, HintTarget, Verdict};
use crate::scanner::matcher::{Match, Matcher, Versions};
use crate::scanner::output::Output;
use crate::scanner::rules::FamilyRules;

/// Judges the cells of one store, row by row, in key order.
pub(crate) struct Judge {
    matcher: Matcher,
    // Combines the verdicts of filter and rules, if there is a filter.
    filtered: Option<FilteredVersions>,
    // Number of cells to skip at the start of a row, and maximum number of cells to return.
    offset: u32,
    limit: Option<u32>,
    // Cells of the current row that passed.
    passed: u32,
    // How references to MOB files are returned; `None` if they are like any other cell.
    mob: Option<MobReads>,
}

/// The outcome for a cell.
pub(crate) enum Judgement {
    /// The cell was written or skipped. The verdict is where to continue.
    Decided(CellOutcome, Match),
    /// The cell was skipped. The filter [knows](Judge::hint_target) where to continue.
    Hint,
    /// The filter cannot judge the cell.
    Failed(FilterError),
}

/// Whether a cell was written, and its size for limits and costs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellOutcome {
    /// Skipped; the size of its key.
    Skipped(usize),
    /// Written to the sink; its size for clients.
    Written(usize),
}

impl Judge {
    pub(crate) fn new(rules: &FamilyRules, scan: &Scan, qualifiers: Option<&[Bytes]>, now_ms: i64) -> Judge {
        let range = scan.selection.time_range_of(&rules.family);
        let versions =
            Versions { wanted: scan.selection.max_versions, filtered: scan.selection.filter.is_some() };
        let qualifiers = qualifiers.map(<[_]>::to_vec);
        let (matcher, retained) = match scan.raw {
            true => (Matcher::raw(rules, range, versions, now_ms), u32::MAX),
            false => (Matcher::user(rules, qualifiers, range, versions, now_ms), rules.max_versions),
        };
        Judge {
            matcher,
            filtered: versions
                .filtered
                .then(|| FilteredVersions::new(versions.returned(retained), scan.reversed)),
            offset: scan.selection.store_offset,
            limit: scan.selection.store_limit,
            passed: 0,
            mob: rules.reads_mob(scan.selection.mob).then_some(scan.selection.mob),
        }
    }

    /// Begins a row.
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
        let skipped = CellOutcome::Skipped(cell.key.len());
        if !rules.includes() {
            return Judgement::Decided(skipped, rules);
        }
        if self.mob.is_some_and(|mob| mob.references_only) && !mob::is_reference(cell.tags) {
            return Judgement::Decided(skipped, rules.skipped());
        }
        let (Some(filter), Some(filtered)) = (filter, &mut self.filtered) else {
            return self.apply_limits(rules, cell, output);
        };
        match filtered.judge(&mut self.matcher, filter, cell, rules) {
            Ok(Verdict::Rules(verdict)) if !verdict.includes() => Judgement::Decided(skipped, verdict),
            Ok(Verdict::Rules(verdict)) => match &filter.transform(cell) {
                ValueForm::Whole(_) => self.apply_limits(verdict, cell, output),
                ValueForm::Empty => {
                    self.apply_limits(verdict, &Cell { value: &[], tags: &[], ..*cell }, output)
                }
                ValueForm::Length(len) => {
                    self.apply_limits(verdict, &Cell { value: len, tags: &[], ..*cell }, output)
                }
            },
            Ok(Verdict::Hint) => Judgement::Hint,
            Err(error) => Judgement::Failed(error),
        }
    }

    /// Accepts a cell, and writes it unless it is before the offset.
    #[inline]
    fn apply_limits(&mut self, verdict: Match, cell: &Cell<'_>, output: &mut Output<'_>) -> Judgement {
        self.passed += 1;
        let outcome = match self.passed <= self.offset {
            true => CellOutcome::Skipped(cell.key.len()),
            false => {
                output.write(cell);
                CellOutcome::Written(self.len_for_clients(cell))
            }
        };
        Judgement::Decided(outcome, if self.is_full() { Match::NextRow } else { verdict })
    }

    /// The size of a cell without tags; that of its real value, if it is a reference that will be
    /// resolved. HBase counts the bytes of the reference.
    #[inline]
    fn len_for_clients(&self, cell: &Cell<'_>) -> usize {
        let len = cell.len_without_tags();
        match self.mob {
            Some(mob) if !mob.raw => len - cell.value.len() + mob::value_len(cell),
            _ => len,
        }
    }

    /// Whether the row has returned its maximum number of cells. As in HBase, this is checked after
    /// a cell is returned, so a limit of 0 returns one cell.
    #[inline]
    fn is_full(&self) -> bool {
        self.passed > self.offset
            && self.limit.is_some_and(|limit| self.passed >= limit.saturating_add(self.offset))
    }

    /// The qualifier to go to when the current column is finished; `None` for the next one.
    #[inline]
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        self.matcher.hint()
    }

    /// Where the filter wants to go from a cell for which it gave a hint.
    pub(crate) fn hint_target<'a>(&self, filter: &'a mut ScanFilter, cell: &Cell<'_>) -> HintTarget<'a> {
        self.filtered.as_ref().map_or(HintTarget::Ignored, |filtered| filtered.hint_target(filter, cell))
    }
}
