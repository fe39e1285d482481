//! Changes that depend on what rows hold: increments and appends, checks, and several mutations as one, mostly of one row.
//!
//! Under the row's lock the condition is judged, the new values are computed and all is published, as one edit. What is
//! read is what the last write left, durable or not: the log keeps the order, so nothing that depends on a write
//! survives without it. An answer that tells of others' writes waits until they are durable.
//!
//! A change that a client sends again under its nonce is not made again; the answer is read anew, as of the first time.

use std::sync::Arc;

use base::spent::{self, Phase};
use bytes::Bytes;
use cell::KeyValue;
use cell::condition::{Condition, Test};
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use hfile::Block;

use crate::error::{Error, Result};
use crate::nonces::{Claim, Turn};
use crate::region::Region;
use crate::region::batch::Batch;
use crate::region::check::{check_cell, check_filter, check_row, check_size};
use crate::region::write::{Halt, Published};

/// Elements that the filter of a condition may have.
const CONDITION_ELEMENTS_MAX: usize = 10_000;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Whether the condition held, or there was none. If not, nothing was changed.
    pub matched: bool,
    /// For each mutation the cells it has made, in order, if it is an increment or an append; no cells, if they were
    /// not asked for.
    pub results: Vec<Option<Vec<KeyValue>>>,
}

impl Changed {
    fn unmatched() -> Changed {
        Changed { matched: false, results: Vec::new() }
    }
}

/// Mutations and what they depend on.
#[derive(Clone, Copy)]
struct Change<'a> {
    conditions: &'a [Condition],
    mutations: &'a [Mutation],
    // Then no put is older than what the condition saw.
    of_one_row: bool,
}

impl<'a> Change<'a> {
    /// All rows that must not change meanwhile; of one row all are the first's.
    fn rows(self) -> impl Iterator<Item = &'a [u8]> {
        let mutated = self.mutations.iter().take(if self.of_one_row { 1 } else { usize::MAX });
        let judged = self.conditions.iter().filter(move |_| !self.of_one_row);
        mutated.map(|mutation| &mutation.row[..]).chain(judged.map(|condition| &condition.row[..]))
    }
}

/// What trying came to.
enum Attempt {
    Published(Published),
    /// The condition does not hold, as all up to this sequence id left the row.
    Unmatched(u64),
    /// There is nothing to write.
    Nothing,
}

impl Region {
    /// Makes changes of one row, all or none, if `condition` holds.
    ///
    /// The mutations see what the row held before, not what others among them do. The first nonce among them is that
    /// of the whole change.
    ///
    /// # Errors
    /// As [`Region::batch_atomic`]; [`Error::BadRequest`] also for mutations or a condition of several rows, and for
    /// an increment of what is no number.
    pub async fn change(&self, condition: Option<&Condition>, mutations: Vec<Mutation>) -> Result<Changed> {
        self.instruments.note_writes(mutations.len() as u64);
        self.admit()?;
        let Some(first) = mutations.first() else {
            return Ok(Changed { matched: true, results: Vec::new() });
        };
        self.check_change(condition, &mutations, &first.row)?;
        let conditions = condition.map(std::slice::from_ref).unwrap_or_default();
        self.claim_and_make(Change { conditions, mutations: &mutations, of_one_row: true }).await
    }

    /// Makes changes of rows of this region, all or none, if all `conditions` hold.
    ///
    /// # Errors
    /// As [`Region::batch_atomic`]; a row of another region is [`Error::WrongRegion`] if it is the first, and
    /// [`Error::BadRequest`] behind others, for then there is no region for all of them.
    pub async fn change_rows(&self, conditions: &[Condition], mutations: &[Mutation]) -> Result<Changed> {
        self.instruments.note_writes(mutations.len() as u64);
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
        self.claim_and_make(Change { conditions, mutations, of_one_row: false }).await
    }

    async fn claim_and_make(&self, change: Change<'_>) -> Result<Changed> {
        let nonces = change.mutations.iter().map(|mutation| mutation.nonce);
        let nonce = nonces.clone().find(|nonce| nonce.1 != 0).unwrap_or_default();
        let claim = self.services.nonces.claim(nonce);
        let claim = match spent::waited(Phase::Lock, &*self.services.env.clock, claim).await {
            Turn::First(claim) => claim,
            Turn::Again(seq_id) => return Box::pin(self.tell_again(change.mutations, seq_id)).await,
        };
        self.make(change, claim).await
    }

    async fn make(&self, change: Change<'_>, claim: Claim) -> Result<Changed> {
        let mut warm = Vec::new();
        let attempt = loop {
            match self.try_change(change, &warm) {
                Ok(attempt) => break attempt,
                Err(Halt::Cold(miss)) => self.load(miss, &mut warm).await?,
                Err(Halt::Failed(error)) => return Err(error),
            }
        };
        let mut results: Vec<Option<Vec<KeyValue>>> =
            change.mutations.iter().map(|mutation| mutation.kind.reads().then(Vec::new)).collect();
        match attempt {
            Attempt::Nothing => {}
            Attempt::Unmatched(seq_id) => {
                self.wait_visible(seq_id).await?;
                return Ok(Changed::unmatched());
            }
            Attempt::Published(Published { seq_id, answers }) => {
                // Before anything is waited for: a call that is given up must not be made again.
                claim.done(seq_id, self.services.env.clock.now_ms());
                for (at, cell) in answers {
                    results[at].get_or_insert_default().push(cell);
                }
                self.wait_visible(seq_id).await?;
            }
        }
        Ok(Changed { matched: true, results })
    }

    /// Judges and publishes under the rows' locks.
    fn try_change(&self, change: Change<'_>, warm: &[Arc<Block>]) -> std::result::Result<Attempt, Halt> {
        let Change { conditions, mutations, of_one_row } = change;
        let _locked = self.rows.lock(change.rows().collect());
        let mut batch = Batch::default();
        for condition in conditions {
            match self.judge(condition, warm)? {
                Judged::Holds { newest } if of_one_row => batch.puts_not_before = newest,
                Judged::Holds { .. } => {}
                Judged::Fails => return Ok(Attempt::Unmatched(self.mvcc.write_point())),
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
            return Ok(Attempt::Nothing);
        }
        self.publish_locked(&mut batch, warm).map(Attempt::Published)
    }

    fn judge(&self, condition: &Condition, warm: &[Arc<Block>]) -> std::result::Result<Judged, Halt> {
        let found = self.read_published(&asked_by(condition), warm)?;
        let newest = found.cells.first().map(|(cell, _)| cell.view(0));
        let holds = match &condition.test {
            Test::Column(test) => {
                let passes = test.passes(newest.map(|cell| cell.value));
                passes.map_err(|error| Error::bad_request(error.to_string()))?
            }
            Test::Filter(_) => newest.is_some(),
        };
        Ok(match holds {
            true => Judged::Holds { newest: newest.map(|cell| cell.timestamp()) },
            false => Judged::Fails,
        })
    }

    /// What can be refused without a look at the row.
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
            // It is judged under the row's lock, where nothing else gets a turn.
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

    /// HBase looks at the families of all mutations before it computes anything, but not before it judges the condition.
    fn check_families(&self, mutations: &[Mutation]) -> Result<()> {
        let mut cells = mutations.iter().flat_map(|mutation| &mutation.cells);
        cells.try_for_each(|cell| self.store_of(cell.view(0).family()).map(|_| ()))
    }

    /// Answers a change that was made under `seq_id`.
    async fn tell_again(&self, mutations: &[Mutation], seq_id: u64) -> Result<Changed> {
        // A nonce of a region that is gone may be greater than any here; then there is nothing to wait for.
        if seq_id <= self.mvcc.write_point() {
            self.wait_visible(seq_id).await?;
        }
        let mut results = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            results.push(match mutation.kind.reads() {
                true if mutation.return_results => Some(self.read_again(mutation, seq_id).await?),
                true => Some(Vec::new()),
                false => None,
            });
        }
        Ok(Changed { matched: true, results })
    }

    /// The columns of an increment or append as of `seq_id`; as they are now, if a flush dropped what was then.
    async fn read_again(&self, mutation: &Mutation, seq_id: u64) -> Result<Vec<KeyValue>> {
        let columns = columns_of(mutation);
        let wanted: usize = columns.iter().map(|family| family.qualifiers.as_ref().map_or(0, Vec::len)).sum();
        let selection = CellSelection { columns, ..CellSelection::default() };
        let get = Get { row: mutation.row.clone(), selection: selection.into(), existence_only: false };
        let mut found = self.scan_all(&Scan { read_point: Some(seq_id), ..Scan::of(&get) }).await?;
        if found.cells.len() < wanted {
            found = self.get(&get).await?;
        }
        Ok(found.cells.into_iter().map(|(cell, _)| cell).collect())
    }
}

/// What a condition came to.
enum Judged {
    /// It holds; the timestamp of the cell looked at, if there is one.
    Holds {
        newest: Option<i64>,
    },
    Fails,
}

/// The read that tells whether a condition holds.
fn asked_by(condition: &Condition) -> Get {
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
        // As HBase reads for itself; clients' reads are on demand by default.
        load_families_on_demand: Some(false),
        ..CellSelection::default()
    };
    Get { row: condition.row.clone(), selection: selection.into(), existence_only: false }
}

/// The columns of a mutation's cells, each once, in order.
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
