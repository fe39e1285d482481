//! Batches of actions, grouped by region and server. Each server gets one Multi call; failed
//! actions are retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::mutation::{Mutation, MutationKind};
use cell::query::Get;
use cell::region::ServerName;
use cell::schema::TableName;
use futures_util::future::join_all;
use proto::exception::JavaException;
use proto::{
    MultiRequest, MultiResponse, NameBytesPair, RegionAction, RegionActionResult, ResultOrException,
};
use rpc::CellBlock;
use wire::convert;

use crate::Client;
use crate::connections::OutgoingCall;
use crate::error::{Error, Reaction, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;

/// An action of a batch.
#[derive(Debug, Clone)]
pub enum Action {
    /// A read.
    Get(Get),
    /// A change.
    Mutate(Mutation),
}

impl Action {
    fn row(&self) -> &Bytes {
        match self {
            Action::Get(get) => &get.row,
            Action::Mutate(mutation) => &mutation.row,
        }
    }
}

/// The actions (as indexes) of each region of one server.
type ByRegion = Vec<(Arc<Location>, Vec<usize>)>;

/// Action indexes and their outcomes.
type Outcomes = Vec<(usize, Result<Row>)>;

/// Runs all actions; returns the outcomes in the order of the actions.
pub(crate) async fn run(client: &Client, table: &TableName, mut actions: Vec<Action>) -> Vec<Result<Row>> {
    let nonce_group = assign_nonces(client, &mut actions);
    let mut outcomes: Vec<Option<Result<Row>>> = actions.iter().map(|_| None).collect();
    let mut open: Vec<usize> = (0..actions.len()).collect();
    let mut retry = Retry::new(client.env(), client.options());
    while !open.is_empty() {
        let mut failed = Vec::new();
        let lookups = Lookups { client, table, retry: &retry, unreachable: None };
        let groups = group(lookups, &actions, &open, &mut failed).await;
        let calls = groups.into_values().map(|regions| call(client, &actions, nonce_group, regions));
        for (index, outcome) in join_all(calls).await.into_iter().flatten() {
            match outcome {
                Ok(row) => outcomes[index] = Some(Ok(row)),
                Err(error) => failed.push((index, error)),
            }
        }
        open = retry_failed(client, table, &mut retry, failed, &mut outcomes).await;
        debug_assert_eq!(
            open.len(),
            outcomes.iter().filter(|outcome| outcome.is_none()).count(),
            "each action has an outcome or is repeated"
        );
    }
    outcomes.into_iter().map(|outcome| outcome.expect("every action has an outcome")).collect()
}

/// Gives each increment and append a nonce if it has none, so that a retry does not apply it twice.
/// Returns the nonce group of the batch: a Multi has only one.
fn assign_nonces(client: &Client, actions: &mut [Action]) -> Option<u64> {
    let mut group = actions.iter().find_map(|action| match action {
        Action::Mutate(Mutation { nonce: (group, nonce), .. }) if *nonce != 0 => Some(*group),
        _ => None,
    });
    for action in actions {
        if let Action::Mutate(mutation) = action
            && matches!(mutation.kind, MutationKind::Increment | MutationKind::Append)
            && mutation.nonce.1 == 0
        {
            let (new_group, nonce) = client.nonce();
            mutation.nonce = (*group.get_or_insert(new_group), nonce);
        }
    }
    group
}

/// The lookups of one attempt. After one has failed because the cluster is not reachable, the
/// others fail too: each would take as long.
struct Lookups<'a> {
    client: &'a Client,
    table: &'a TableName,
    retry: &'a Retry<'a>,
    unreachable: Option<Error>,
}

impl Lookups<'_> {
    async fn locate(&mut self, row: &Bytes) -> Result<Arc<Location>> {
        let position = Position::At(row.clone());
        if let Some(error) = &self.unreachable {
            return self.client.cached_location(self.table, &position).ok_or_else(|| error.clone());
        }
        let located = self.client.locate(self.table, &position, self.retry).await;
        self.unreachable = located.as_ref().err().filter(|error| error.stops_lookups()).cloned();
        located
    }
}

/// Locates the region of each action. Adds actions that cannot be located to `failed`.
async fn group(
    mut lookups: Lookups<'_>,
    actions: &[Action],
    open: &[usize],
    failed: &mut Vec<(usize, Error)>,
) -> BTreeMap<ServerName, ByRegion> {
    let mut regions = ByRegion::new();
    let mut by_name: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut last = 0;
    for &index in open {
        let row = actions[index].row();
        // A row is usually in the same region as the previous row, and always if the table has only
        // one region. Only otherwise is a lookup needed.
        if !regions.get(last).is_some_and(|(location, _)| location.region.contains(row)) {
            match lookups.locate(row).await {
                Ok(location) => {
                    last = *by_name.entry(location.name().clone()).or_insert(regions.len());
                    if last == regions.len() {
                        regions.push((location, Vec::new()));
                    }
                }
                Err(error) => {
                    failed.push((index, error));
                    continue;
                }
            }
        }
        regions[last].1.push(index);
    }
    let mut groups: BTreeMap<ServerName, ByRegion> = BTreeMap::new();
    for region in regions {
        groups.entry(region.0.server.clone()).or_default().push(region);
    }
    groups
}

/// Records final outcomes, pauses, and returns the actions to retry.
async fn retry_failed(
    client: &Client,
    table: &TableName,
    retry: &mut Retry<'_>,
    failed: Vec<(usize, Error)>,
    outcomes: &mut [Option<Result<Row>>],
) -> Vec<usize> {
    let mut retryable = Vec::new();
    for (index, error) in failed {
        match error.reaction() {
            Reaction::Fail => outcomes[index] = Some(Err(error)),
            _ => retryable.push((index, error)),
        }
    }
    // All wait for the longest pause.
    let Some((_, worst)) =
        retryable.iter().max_by_key(|(_, error)| error.reaction() == Reaction::RetryOverloaded)
    else {
        return Vec::new();
    };
    let paused = match client.refuse_if_disabled(table, worst).await {
        Ok(()) => retry.pause(worst.clone()).await,
        Err(disabled) => Err(disabled),
    };
    match paused {
        Ok(()) => retryable.into_iter().map(|(index, _)| index).collect(),
        Err(exhausted) => {
            for (index, last) in retryable {
                outcomes[index] = Some(Err(match &exhausted {
                    Error::Exhausted { attempts, .. } => {
                        Error::Exhausted { attempts: *attempts, last: Box::new(last) }
                    }
                    other => other.clone(),
                }));
            }
            Vec::new()
        }
    }
}

/// Sends one Multi to one server; returns the outcome of each action.
async fn call(client: &Client, actions: &[Action], nonce_group: Option<u64>, regions: ByRegion) -> Outcomes {
    let mut cells = CellBlock::new();
    let region_action = regions
        .iter()
        .map(|(location, indexes)| region_action(client, location, indexes, actions, &mut cells));
    let request =
        MultiRequest { region_action: region_action.collect(), nonce_group, ..MultiRequest::default() };
    let first = &regions.first().expect("each server has at least one region").0;
    let priority = if first.region.table.is_system() { crate::connections::HIGH_PRIORITY } else { 0 };
    let call = OutgoingCall { cells, priority, ..OutgoingCall::new("ClientService", "Multi", &request) };
    let response: Result<(MultiResponse, Bytes)> = client.call_region(first, call).await;
    let outcomes = response.and_then(|(response, cells)| read(response, cells, &regions));
    let outcomes = outcomes.unwrap_or_else(|error| {
        let failed = |(_, indexes): &(Arc<Location>, Vec<usize>)| {
            indexes.iter().map(|index| (*index, Err(error.clone()))).collect()
        };
        regions.iter().map(failed).collect()
    });
    for ((location, _), outcomes) in regions.iter().zip(&outcomes) {
        for error in outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err()) {
            client.update_on_error(location, error);
        }
    }
    outcomes.into_iter().flatten().collect()
}

fn region_action(
    client: &Client,
    location: &Location,
    indexes: &[usize],
    actions: &[Action],
    cells: &mut CellBlock,
) -> RegionAction {
    let action = |(position, index): (usize, &usize)| {
        let position = Some(position as u32);
        match &actions[*index] {
            Action::Get(get) => proto::Action {
                index: position,
                get: Some(convert::to_proto::get(get)),
                ..Default::default()
            },
            Action::Mutate(mutation) => proto::Action {
                index: position,
                mutation: Some(convert::to_proto::mutation_in_block_of(
                    client.codec(),
                    mutation,
                    cells.tail(),
                )),
                ..Default::default()
            },
        }
    };
    let action = indexes.iter().enumerate().map(action).collect();
    RegionAction { region: location.specifier(), action, ..RegionAction::default() }
}

/// Decodes the response to a Multi, region by region. The cell block `cells` has the cells of all
/// results, in the order in which the results are in the response.
fn read(
    response: MultiResponse,
    cells: Bytes,
    regions: &[(Arc<Location>, Vec<usize>)],
) -> Result<Vec<Outcomes>> {
    if response.region_action_result.len() != regions.len() {
        return Err(Error::Malformed("a Multi response does not have one result per region".into()));
    }
    let mut cells = Cells::of(cells);
    let parts = response.region_action_result.iter().zip(regions);
    parts.map(|(result, (_, indexes))| read_region(result, indexes, &mut cells)).collect()
}

fn read_region(result: &RegionActionResult, indexes: &[usize], cells: &mut Cells) -> Result<Outcomes> {
    if let Some(exception) = &result.exception {
        let error = remote_error(exception);
        return Ok(indexes.iter().map(|index| (*index, Err(error.clone()))).collect());
    }
    let mut has_outcome = vec![false; indexes.len()];
    let mut outcomes = Vec::with_capacity(indexes.len());
    for entry in &result.result_or_exception {
        let position = entry.index() as usize;
        if position >= indexes.len() || std::mem::replace(&mut has_outcome[position], true) {
            return Err(Error::Malformed(
                "a Multi response has a result for an unknown action, or two results for one action".into(),
            ));
        }
        outcomes.push((indexes[position], read_entry(entry, cells)?));
    }
    match has_outcome.contains(&false) {
        true => Err(Error::Malformed("a Multi response lacks the result of an action".into())),
        false => Ok(outcomes),
    }
}

fn read_entry(entry: &ResultOrException, cells: &mut Cells) -> Result<Result<Row>> {
    match (&entry.exception, &entry.result) {
        (Some(exception), _) => Ok(Err(remote_error(exception))),
        (None, Some(result)) => cells.row(result).map(Ok),
        (None, None) => Ok(Ok(Row::default())),
    }
}

fn remote_error(pair: &NameBytesPair) -> Error {
    JavaException::from_pair(pair).into()
}
