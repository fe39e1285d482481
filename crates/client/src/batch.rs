//! Many actions at once: grouped by region and server, one Multi each, what failed tried again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Get;
use cell::region::ServerName;
use cell::schema::TableName;
use futures_util::future::join_all;
use proto::{
    MultiRequest, MultiResponse, NameBytesPair, RegionAction, RegionActionResult, ResultOrException,
};
use rpc::CellBlock;
use wire::convert;
use wire::exception::JavaException;

use crate::Client;
use crate::connections::Outgoing;
use crate::error::{Error, Reaction, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;

/// One of many actions.
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

/// The actions (by their place in the list) of each region of one server.
type ByRegion = Vec<(Arc<Location>, Vec<usize>)>;

/// Actions by their place in the list, and what became of them.
type Outcomes = Vec<(usize, Result<Row>)>;

/// Runs all actions; the outcomes in their order.
pub(crate) async fn run(client: &Client, table: &TableName, actions: Vec<Action>) -> Vec<Result<Row>> {
    let mut outcomes: Vec<Option<Result<Row>>> = actions.iter().map(|_| None).collect();
    let mut open: Vec<usize> = (0..actions.len()).collect();
    let mut retry = Retry::new(client.env(), client.options());
    while !open.is_empty() {
        let mut failed = Vec::new();
        let groups = group(client, table, &actions, &open, &mut failed).await;
        let calls = groups.into_values().map(|regions| call(client, &actions, regions));
        for (index, outcome) in join_all(calls).await.into_iter().flatten() {
            match outcome {
                Ok(row) => outcomes[index] = Some(Ok(row)),
                Err(error) => failed.push((index, error)),
            }
        }
        open = try_again(client, table, &mut retry, failed, &mut outcomes).await;
    }
    outcomes.into_iter().map(|outcome| outcome.expect("every action has ended")).collect()
}

/// Locates the region of each action; those that have none go to `failed`.
async fn group(
    client: &Client,
    table: &TableName,
    actions: &[Action],
    open: &[usize],
    failed: &mut Vec<(usize, Error)>,
) -> BTreeMap<ServerName, ByRegion> {
    let mut regions = ByRegion::new();
    let mut places: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut last = 0;
    for &index in open {
        let row = actions[index].row();
        // Mostly it is the region of the row before, above all where the table has only one.
        if !regions.get(last).is_some_and(|(location, _)| location.region.contains(row)) {
            match client.locate(table, &Position::At(row.clone())).await {
                Ok(location) => {
                    last = *places.entry(location.name().clone()).or_insert(regions.len());
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

/// Settles what is final, waits, and gives back what is to be tried again.
async fn try_again(
    client: &Client,
    table: &TableName,
    retry: &mut Retry<'_>,
    failed: Vec<(usize, Error)>,
    outcomes: &mut [Option<Result<Row>>],
) -> Vec<usize> {
    let mut again = Vec::new();
    for (index, error) in failed {
        match error.reaction() {
            Reaction::Fail => outcomes[index] = Some(Err(error)),
            _ => again.push((index, error)),
        }
    }
    // All wait for the one that needs it longest.
    let Some((_, worst)) = again.iter().max_by_key(|(_, error)| error.reaction() == Reaction::AgainLater)
    else {
        return Vec::new();
    };
    let paused = match client.refuse_if_disabled(table, worst).await {
        Ok(()) => retry.pause(worst.clone()).await,
        Err(disabled) => Err(disabled),
    };
    match paused {
        Ok(()) => again.into_iter().map(|(index, _)| index).collect(),
        Err(over) => {
            for (index, last) in again {
                outcomes[index] = Some(Err(match &over {
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

/// One Multi to one server; the outcome of each of its actions.
async fn call(client: &Client, actions: &[Action], regions: ByRegion) -> Outcomes {
    let mut cells = CellBlock::new();
    let region_action =
        regions.iter().map(|(location, indexes)| region_action(location, indexes, actions, &mut cells));
    let request = MultiRequest { region_action: region_action.collect(), ..MultiRequest::default() };
    let first = &regions.first().expect("a server's group has a region").0;
    let priority = if first.region.table.is_system() { crate::connections::HIGH_PRIORITY } else { 0 };
    let call = Outgoing { cells, priority, ..Outgoing::new("ClientService", "Multi", &request) };
    let answered: Result<(MultiResponse, Bytes)> = client.call_region(first, call).await;
    let outcomes = answered.and_then(|(response, cells)| read(response, cells, &regions));
    let outcomes = outcomes.unwrap_or_else(|error| {
        let failed = |(_, indexes): &(Arc<Location>, Vec<usize>)| {
            indexes.iter().map(|index| (*index, Err(error.clone()))).collect()
        };
        regions.iter().map(failed).collect()
    });
    for ((location, _), outcomes) in regions.iter().zip(&outcomes) {
        for error in outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err()) {
            client.learn(location, error);
        }
    }
    outcomes.into_iter().flatten().collect()
}

fn region_action(
    location: &Location,
    indexes: &[usize],
    actions: &[Action],
    cells: &mut CellBlock,
) -> RegionAction {
    let action = |(place, index): (usize, &usize)| {
        let place = Some(place as u32);
        match &actions[*index] {
            Action::Get(get) => {
                proto::Action { index: place, get: Some(convert::to_proto::get(get)), ..Default::default() }
            }
            Action::Mutate(mutation) => proto::Action {
                index: place,
                mutation: Some(convert::to_proto::mutation_in_block(mutation, cells.tail())),
                ..Default::default()
            },
        }
    };
    let action = indexes.iter().enumerate().map(action).collect();
    RegionAction { region: location.specifier(), action, ..RegionAction::default() }
}

/// Takes the answer to a Multi apart, region by region. Cells lie in the block in the order of the entries.
fn read(
    response: MultiResponse,
    cells: Bytes,
    regions: &[(Arc<Location>, Vec<usize>)],
) -> Result<Vec<Outcomes>> {
    if response.region_action_result.len() != regions.len() {
        return Err(Error::Malformed("a Multi's answer has not one part for each region".into()));
    }
    let mut cells = Cells::of(cells);
    let parts = response.region_action_result.iter().zip(regions);
    parts.map(|(result, (_, indexes))| read_region(result, indexes, &mut cells)).collect()
}

fn read_region(result: &RegionActionResult, indexes: &[usize], cells: &mut Cells) -> Result<Outcomes> {
    if let Some(exception) = &result.exception {
        let error = exception_of(exception);
        return Ok(indexes.iter().map(|index| (*index, Err(error.clone()))).collect());
    }
    let mut answered = vec![false; indexes.len()];
    let mut outcomes = Vec::with_capacity(indexes.len());
    for entry in &result.result_or_exception {
        let place = entry.index() as usize;
        if place >= indexes.len() || std::mem::replace(&mut answered[place], true) {
            return Err(Error::Malformed("a Multi's answer is to an action that was not asked".into()));
        }
        outcomes.push((indexes[place], read_entry(entry, cells)?));
    }
    match answered.contains(&false) {
        true => Err(Error::Malformed("a Multi's answer lacks an action's".into())),
        false => Ok(outcomes),
    }
}

fn read_entry(entry: &ResultOrException, cells: &mut Cells) -> Result<Result<Row>> {
    match (&entry.exception, &entry.result) {
        (Some(exception), _) => Ok(Err(exception_of(exception))),
        (None, Some(result)) => cells.row(result).map(Ok),
        (None, None) => Ok(Ok(Row::default())),
    }
}

fn exception_of(pair: &NameBytesPair) -> Error {
    JavaException::from_pair(pair).into()
}
