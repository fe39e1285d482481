//! Changes that depend on the content of rows: increments, appends, conditional changes, and
//! several mutations applied atomically, usually to one row.
//!
//! Under the row lock, the condition is evaluated, the new values are computed, and the change is
//! published as one edit. The condition and the computation see the last write, even if it is not
//! durable yet. The log preserves the order, so a change never survives without a write that it has
//! read. A response that shows writes of other clients waits until these writes are durable.
//!
//! If a client retries a change with the same nonce, the change is not applied again. The response
//! is read again, as of the original change.

use base::spent::{self, Phase};
use bytes::Bytes;
use cell::KeyValue;
use cell::condition::{Condition, Test};
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, MobReads, Scan};

use crate::error::{Error, Result};
use crate::nonces::{Claim, ClaimOutcome};
use crate::region::Region;
use crate::region::batch::Batch;
use crate::region::check::{check_cell, check_filter, check_row, check_size};
use crate::region::write::{Published, Warm, WriteAbort};

/// Maximum number of elements in the filter of a condition.
const CONDITION_ELEMENTS_MAX: usize = 10_000;

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Whether the condition held, or there was none. If false, nothing was changed.
    pub matched: bool,
    /// One entry for each mutation. For an increment or append: the cells it wrote, in order, or
    /// none if results were not requested.
    pub results: Vec<Option<Vec<KeyValue>>>,
}

impl Changed {
    fn unmatched() -> Changed {
        Changed { matched: false, results: Vec::new() }
    }
}

/// Mutations and their conditions.
#[derive(Clone, Copy)]
struct Change<'a> {
    conditions: &'a [Condition],
    mutations: &'a [Mutation],
    // Whether all conditions and mutations are of the same row. If so, no put gets an older
    // timestamp than the cell that the condition read.
    of_one_row: bool,
}

impl<'a> Change<'a> {
    /// The rows to lock. If all mutations are of one row, only the row of the first mutation.
    fn rows(self) -> impl Iterator<Item = &'a [u8]> {
        let mutated = self.mutations.iter().take(if self.of_one_row { 1 } else { usize::MAX });
        let conditional = self.conditions.iter().filter(move |_| !self.of_one_row);
        mutated.map(|mutation| &mutation.row[..]).chain(conditional.map(|condition| &condition.row[..]))
    }
}

/// The result of an attempt.
enum ChangeAttempt {
    Published(Published),
    /// The condition does not hold. It depends on writes up to this sequence id.
    Unmatched(u64),
    /// There is nothing to write. The conditions hold for the writes up to this sequence id.
    Nothing(u64),
}

impl Region {
    /// Applies all `mutations`, which must be of one row, if `condition` holds. Otherwise changes
    /// nothing.
    ///
    /// Each mutation sees the row as it was before the change. The change has the nonce of the
    /// first mutation that has one.
    ///
    /// # Errors
    /// As [`Region::batch_atomic`]. Also [`Error::BadRequest`] if mutations and condition are not
    /// of the same row, or if a value to increment is not a number.
    pub async fn change(&self, condition: Option<&Condition>, mutations: Vec<Mutation>) -> Result<Changed> {
        self.instruments.count_writes(mutations.len() as u64);
        self.admit()?;
        let Some(first) = mutations.first() else {
            return Ok(Changed { matched: true, results: Vec::new() });
        };
        self.check_change(condition, &mutations, &first.row)?;
        let conditions = condition.map(std::slice::from_ref).unwrap_or_default();
        self.claim_and_apply(Change { conditions, mutations: &mutations, of_one_row: true }).await
    }

    /// Applies all `mutations`, of any rows of this region, if all `conditions` hold. Otherwise
    /// changes nothing.
    ///
    /// # Errors
    /// As [`Region::batch_atomic`]. If the first row belongs to another region,
    /// [`Error::WrongRegion`]; for a later row it is [`Error::BadRequest`], because no region has
    /// all rows.
    pub async fn change_rows(&self, conditions: &[Condition], mutations: &[Mutation]) -> Result<Changed> {
        self.instruments.count_writes(mutations.len() as u64);
        self.admit()?;
        for (at, mutation) in mutations.iter().enumerate() {
            match check_row(self, &mutation.row) {
                Err(Error::WrongRegion { .. }) if at > 0 => {
                    let row = mutation.row.escape_ascii();
                    return Err(Error::bad_request(format!("Requested row out of range '{row}'")));
                }
                checked => checked?,
            }
        }
        for condition in conditions {
            self.check_condition(condition)?;
        }
        self.check_cells(mutations)?;
        // This is a whole call of a client.
        let pause = self.write_pause(mutations.iter().map(Mutation::cells_len).sum());
        if !pause.is_zero() {
            self.services.env.clock.sleep(pause).await;
        }
        self.claim_and_apply(Change { conditions, mutations, of_one_row: false }).await
    }

    async fn claim_and_apply(&self, change: Change<'_>) -> Result<Changed> {
        let nonces = change.mutations.iter().map(|mutation| mutation.nonce);
        let nonce = nonces.clone().find(|nonce| nonce.1 != 0).unwrap_or_default();
        let claim = self.services.nonces.claim(nonce);
        let claim = match spent::timed_wait(Phase::Lock, &*self.services.env.clock, claim).await {
            ClaimOutcome::Run(claim) => claim,
            ClaimOutcome::AlreadyDone(seq_id) => {
                return Box::pin(self.repeat_response(change.mutations, seq_id)).await;
            }
        };
        self.apply(change, claim).await
    }

    async fn apply(&self, change: Change<'_>, claim: Claim) -> Result<Changed> {
        let mut warm = Warm::default();
        let attempt = loop {
            match self.try_change(change, &warm) {
                Ok(attempt) => break attempt,
                Err(WriteAbort::Cold(cold)) => self.load(cold, &mut warm).await?,
                Err(WriteAbort::Failed(error)) => return Err(error),
            }
        };
        let mut results: Vec<Option<Vec<KeyValue>>> =
            change.mutations.iter().map(|mutation| mutation.kind.reads().then(Vec::new)).collect();
        match attempt {
            ChangeAttempt::Nothing(seq_id) => self.wait_visible(seq_id).await?,
            ChangeAttempt::Unmatched(seq_id) => {
                self.wait_visible(seq_id).await?;
                return Ok(Changed::unmatched());
            }
            ChangeAttempt::Published(Published { seq_id, returned }) => {
                // Before the next await: if the call is dropped there, a retry must not apply the
                // change again.
                claim.done(seq_id, self.services.env.clock.now_ms());
                for (at, cell) in returned {
                    results[at].get_or_insert_default().push(cell);
                }
                self.wait_visible(seq_id).await?;
            }
        }
        Ok(Changed { matched: true, results })
    }

    /// Evaluates the conditions and publishes, under the row locks.
    fn try_change(&self, change: Change<'_>, warm: &Warm) -> std::result::Result<ChangeAttempt, WriteAbort> {
        let Change { conditions, mutations, of_one_row } = change;
        let _locked = self.rows.lock(change.rows().collect());
        let mut batch = Batch::default();
        for condition in conditions {
            match self.evaluate(condition, warm)? {
                ConditionResult::Holds { newest } if of_one_row => batch.puts_not_before = newest,
                ConditionResult::Holds { .. } => {}
                ConditionResult::Fails => return Ok(ChangeAttempt::Unmatched(self.mvcc.write_point())),
            }
        }
        self.check_families(mutations)?;
        for (at, mutation) in mutations.iter().enumerate() {
            if mutation.kind.reads() {
                let computed = self.compute(mutation, warm)?;
                batch.add_computed(self, (at, mutation), &computed);
            } else {
                batch.add(self, mutation)?;
            }
        }
        if batch.is_empty() {
            return Ok(ChangeAttempt::Nothing(self.mvcc.write_point()));
        }
        self.publish_locked(&mut batch, warm).map(ChangeAttempt::Published)
    }

    fn evaluate(
        &self,
        condition: &Condition,
        warm: &Warm,
    ) -> std::result::Result<ConditionResult, WriteAbort> {
        let found = self.read_published(&condition_read(condition), warm)?;
        let newest = found.cells.first().map(|(cell, _)| cell.view(0));
        let holds = match &condition.test {
            Test::Column(test) => {
                let passes = test.passes(newest.map(|cell| cell.value));
                passes.map_err(|error| Error::bad_request(error.to_string()))?
            }
            Test::Filter(_) => newest.is_some(),
        };
        Ok(match holds {
            true => ConditionResult::Holds { newest: newest.map(|cell| cell.timestamp()) },
            false => ConditionResult::Fails,
        })
    }

    /// The checks that do not need the row.
    fn check_change(&self, condition: Option<&Condition>, mutations: &[Mutation], row: &Bytes) -> Result<()> {
        check_row(self, row)?;
        if mutations.iter().any(|mutation| mutation.row != row) {
            return Err(Error::bad_request("All rows of an atomic batch must be the same"));
        }
        if let Some(condition) = condition {
            if condition.row != row {
                return Err(Error::bad_request("Action's getRow must match"));
            }
            self.check_condition(condition)?;
        }
        self.check_cells(mutations)
    }

    fn check_condition(&self, condition: &Condition) -> Result<()> {
        check_row(self, &condition.row)?;
        if let Test::Column(test) = &condition.test {
            self.store_of(&test.family)?;
        }
        if let Test::Filter(filter) = &condition.test {
            // The filter is evaluated under the row lock, without yielding.
            check_filter(filter, self.options().filter_elements_max.min(CONDITION_ELEMENTS_MAX))?;
        }
        Ok(())
    }

    fn check_cells(&self, mutations: &[Mutation]) -> Result<()> {
        for mutation in mutations.iter().filter(|mutation| mutation.kind.reads()) {
            for cell in mutation.cells.iter().map(|cell| cell.view(0)) {
                check_cell(mutation, &cell)?;
                check_size(self, &cell)?;
            }
        }
        Ok(())
    }

    /// Checks the families of all mutations. As in HBase, this comes after the evaluation of the
    /// condition and before the computation of new values.
    fn check_families(&self, mutations: &[Mutation]) -> Result<()> {
        let mut cells = mutations.iter().flat_map(|mutation| &mutation.cells);
        cells.try_for_each(|cell| self.store_of(cell.view(0).family()).map(|_| ()))
    }

    /// The response to a retry of a change that was published under `seq_id`.
    async fn repeat_response(&self, mutations: &[Mutation], seq_id: u64) -> Result<Changed> {
        // If the nonce was used in a region that no longer exists, the sequence id may be greater.
        // There is then nothing to wait for.
        if seq_id <= self.mvcc.write_point() {
            self.wait_visible(seq_id).await?;
        }
        let mut results = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            results.push(match mutation.kind.reads() {
                true if mutation.return_results => Some(self.reread_result(mutation, seq_id).await?),
                true => Some(Vec::new()),
                false => None,
            });
        }
        Ok(Changed { matched: true, results })
    }

    /// The columns of an increment or append as of `seq_id`, or their current state if a flush or
    /// compaction has dropped that version.
    async fn reread_result(&self, mutation: &Mutation, seq_id: u64) -> Result<Vec<KeyValue>> {
        let columns = columns_of(mutation);
        let wanted: usize = columns.iter().map(|family| family.qualifiers.as_ref().map_or(0, Vec::len)).sum();
        let selection = CellSelection { columns, ..CellSelection::default() };
        let get = Get { row: mutation.row.clone(), selection: selection.into(), existence_only: false };
        let mut found = self.scan_all(&Scan { read_point: Some(seq_id), ..Scan::of(&get) }).await?;
        // If that version was dropped, an older file may still have the version before it.
        let is_dropped = found.cells.iter().any(|(_, cell_seq_id)| *cell_seq_id != seq_id);
        if is_dropped || found.cells.len() < wanted {
            found = self.get(&get).await?;
        }
        Ok(found.cells.into_iter().map(|(cell, _)| cell).collect())
    }
}

/// The result of evaluating a condition.
enum ConditionResult {
    /// It holds. `newest` is the timestamp of the cell it was compared with, if there is one.
    Holds {
        newest: Option<i64>,
    },
    Fails,
}

/// The read that a condition needs.
fn condition_read(condition: &Condition) -> Get {
    // A filter only determines whether a cell exists.
    let mob = MobReads { raw: matches!(condition.test, Test::Filter(_)), ..MobReads::default() };
    let (columns, filter) = match &condition.test {
        Test::Column(test) => {
            let qualifiers = Some(vec![test.qualifier.clone()]);
            (vec![FamilyColumns { family: test.family.clone(), qualifiers }], None)
        }
        Test::Filter(filter) => (Vec::new(), Some(filter.clone())),
    };
    let selection = CellSelection {
        columns,
        filter,
        time_range: condition.time_range,
        // As in HBase's own reads. Reads by clients load families on demand by default.
        load_families_on_demand: Some(false),
        mob,
        ..CellSelection::default()
    };
    Get { row: condition.row.clone(), selection: selection.into(), existence_only: false }
}

/// The columns of a mutation's cells, sorted and without duplicates.
pub(super) fn columns_of(mutation: &Mutation) -> Vec<FamilyColumns> {
    let mut columns: Vec<(Bytes, Bytes)> = mutation
        .cells
        .iter()
        .map(|cell| {
            let (bytes, view) = (cell.bytes(), cell.view(0));
            (bytes.slice_ref(view.family()), bytes.slice_ref(view.qualifier()))
        })
        .collect();
    columns.sort_unstable();
    columns.dedup();
    let mut families: Vec<FamilyColumns> = Vec::new();
    for (family, qualifier) in columns {
        match families.last_mut() {
            Some(last) if last.family == family => {
                last.qualifiers.get_or_insert_default().push(qualifier);
            }
            _ => families.push(FamilyColumns { family, qualifiers: Some(vec![qualifier]) }),
        }
    }
    families
}
