//! Chains of conditional changes: each link is put on the condition that its predecessor is the
//! newest.
//!
//! Several tasks contend for each link, each with a unique token. One family has the newest link,
//! the other the last [`SLOTS`] links; both change atomically. So at any time: a link has one
//! winner; a link whose writer got a success is in the chain and stays there; all links before the
//! newest are present.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use base::env::Env;
use bytes::Bytes;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::CompareOp;
use cell::mutation::Mutation;
use cell::query::{Get, TimeRange};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Row, Table};

use crate::cells;
use crate::choices::RandomChoices;
use crate::world::LoadState;

const CHAINS: u64 = 6;
/// Number of stored links up to the newest.
const SLOTS: u64 = 16;
const HEAD: (&[u8], &[u8]) = (b"a", b"head");
const SLOT_FAMILY: &[u8] = b"b";

/// A link's number, from 1, and the token of its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    number: u64,
    token: u64,
}

impl Link {
    fn text(self) -> String {
        format!("{}#{}", self.number, self.token)
    }

    fn parse(bytes: &[u8]) -> Option<Link> {
        let (number, token) = std::str::from_utf8(bytes).ok()?.split_once('#')?;
        Some(Link { number: number.parse().ok()?, token: token.parse().ok()? })
    }

    fn slot(number: u64) -> String {
        format!("slot{:02}", number % SLOTS)
    }
}

/// A chain, as the tasks that contend for its links know it.
#[derive(Default)]
struct Chain {
    // Links that were acknowledged or found after a kill; only recent ones.
    winners: BTreeMap<u64, u64>,
    // Links sent and neither acknowledged nor rejected.
    open: BTreeSet<Link>,
}

impl Chain {
    /// Records that a link was acknowledged.
    fn record_won(&mut self, link: Link) -> Result<(), String> {
        self.open.remove(&link);
        match self.winners.insert(link.number, link.token) {
            Some(other) => Err(format!("doubled: {link:?} was won by {other} too")),
            None => Ok(()),
        }
    }

    fn newest(&self) -> u64 {
        self.winners.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Compares the state found after a kill with the required state, and adopts it.
    fn settle(&mut self, head: Option<Link>, slots: &BTreeMap<u64, Link>) -> Result<(), String> {
        let newest = head.map_or(0, |head| head.number);
        if newest < self.newest() {
            return Err(format!("lost: the newest is {head:?}, acknowledged {}", self.newest()));
        }
        for number in newest.saturating_sub(SLOTS - 1).max(1)..=newest {
            let link = slots.get(&(number % SLOTS)).copied().filter(|link| link.number == number);
            let link = link.ok_or_else(|| format!("torn: the newest is {head:?}, no link {number}"))?;
            self.check(link)?;
            self.winners.insert(number, link.token);
        }
        if head.is_some_and(|head| self.winners.get(&head.number) != Some(&head.token)) {
            return Err(format!("torn: the newest is {head:?}, its slot {:?}", slots.get(&(newest % SLOTS))));
        }
        self.open.clear();
        self.winners = self.winners.split_off(&newest.saturating_sub(SLOTS));
        Ok(())
    }

    fn check(&self, link: Link) -> Result<(), String> {
        match self.winners.get(&link.number) {
            Some(token) if *token == link.token => Ok(()),
            Some(token) => Err(format!("lost: link {} of {token}, found {link:?}", link.number)),
            None if self.open.contains(&link) => Ok(()),
            None => Err(format!("invented: {link:?}")),
        }
    }
}

/// The changes that put `link`, as one mutation or as several.
fn changes(row: &Bytes, link: Link, as_one: bool) -> Vec<Mutation> {
    let slot = Link::slot(link.number);
    let cell = |family, qualifier| {
        KeyValue::new(row, family, qualifier, LATEST_TIMESTAMP, CellType::Put, link.text().as_bytes())
    };
    let (head, slot) = (cell(HEAD.0, HEAD.1), cell(SLOT_FAMILY, slot.as_bytes()));
    match as_one {
        true => vec![Mutation::put(row.clone(), vec![head, slot])],
        false => vec![Mutation::put(row.clone(), vec![slot]), Mutation::put(row.clone(), vec![head])],
    }
}

/// The condition that `head` is the newest link.
fn condition(row: &Bytes, head: Option<Link>) -> Condition {
    let test = ColumnTest {
        family: HEAD.0.into(),
        qualifier: HEAD.1.into(),
        operator: CompareOp::Equal,
        value: head.map(Link::text).unwrap_or_default().into(),
    };
    Condition { row: row.clone(), time_range: TimeRange::ALL, test: Test::Column(test) }
}

fn head(row: &Row) -> Option<Link> {
    row.value(HEAD.0, HEAD.1).and_then(Link::parse)
}

async fn read(table: &Table, row: &Bytes) -> client::Result<Row> {
    table.get(&Get { row: row.clone(), selection: Default::default(), existence_only: false }).await
}

/// The chains of a table.
pub struct Chains {
    chains: Vec<(Bytes, Mutex<Chain>)>,
    choices: RandomChoices,
}

impl Chains {
    pub fn new(choices: RandomChoices) -> Chains {
        let chain = |number| (cells::row_key("chain", number), Mutex::default());
        Chains { chains: (0..CHAINS).map(chain).collect(), choices }
    }

    /// Contends for links until the load ends.
    pub async fn run(self: Arc<Self>, table: Table, env: Env, load: Arc<LoadState>) {
        while !load.has_ended() {
            let (row, chain) = &self.chains[self.choices.within(0..CHAINS) as usize];
            match self.contend(&table, row, chain).await {
                Ok(Ok(())) => {}
                Ok(Err(wrong)) => load.record_violation(format!("chain {}: {wrong}", row.escape_ascii())),
                Err(error) => load.record_failure(&format!("chain {}", row.escape_ascii()), &error),
            }
            if self.choices.once_in(8) {
                env.clock.sleep(self.choices.millis(1..10)).await;
            }
        }
    }

    async fn contend(
        &self,
        table: &Table,
        row: &Bytes,
        chain: &Mutex<Chain>,
    ) -> client::Result<Result<(), String>> {
        let newest = head(&read(table, row).await?);
        let link = Link { number: newest.map_or(0, |link| link.number) + 1, token: self.choices.seed() };
        lock(chain).open.insert(link);
        let changes = changes(row, link, self.choices.once_in(2));
        let won = table.check_and_mutate(&condition(row, newest), &changes).await?;
        let mut chain = lock(chain);
        if won {
            return Ok(chain.record_won(link));
        }
        chain.open.remove(&link);
        Ok(Ok(()))
    }

    /// The number of links.
    pub fn summary(&self) -> String {
        let links: u64 = self.chains.iter().map(|(_, chain)| lock(chain).newest()).sum();
        format!("{links} links of chains")
    }

    /// Checks every chain after a start. Returns the violations.
    pub async fn verify(&self, table: &Table) -> client::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (row, chain) in &self.chains {
            let found = read(table, row).await?;
            let slot = |number| {
                let link = found.value(SLOT_FAMILY, Link::slot(number).as_bytes()).and_then(Link::parse);
                link.map(|link| (number, link))
            };
            let settled = lock(chain).settle(head(&found), &(0..SLOTS).filter_map(slot).collect());
            wrong.extend(settled.err().map(|what| format!("chain {}: {what}", row.escape_ascii())));
        }
        Ok(wrong)
    }
}

fn lock(chain: &Mutex<Chain>) -> MutexGuard<'_, Chain> {
    chain.lock().expect("no holder of this lock panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn link(number: u64, token: u64) -> Link {
        Link { number, token }
    }

    /// A chain whose first links were won by 11, 12 and so on. The write of the fourth link is
    /// unanswered.
    fn chain(won: u64) -> Chain {
        let mut chain = Chain::default();
        (1..=won).for_each(|number| chain.record_won(link(number, 10 + number)).unwrap());
        chain.open.insert(link(4, 99));
        chain
    }

    fn check(mut chain: Chain, head: Link, slots: &[Link], expected: &str) {
        let slots = slots.iter().map(|link| (link.number % SLOTS, *link)).collect();
        let words = chain.settle(Some(head), &slots).err().unwrap_or_default();
        assert_eq!(words.split(':').next().unwrap(), expected, "{words}");
    }

    #[test]
    fn acknowledged_links_stay_and_an_open_one_may_appear() {
        let three = [link(1, 11), link(2, 12), link(3, 13)];
        let four = [&three[..], &[link(4, 99)]].concat();
        check(chain(3), link(3, 13), &three, "");
        check(chain(3), link(4, 99), &four, "");
        check(chain(3), link(2, 12), &three[..2], "lost");
        check(chain(3), link(3, 14), &three, "torn");
        check(chain(3), link(4, 99), &three, "torn");
        check(chain(3), link(3, 13), &[three[0], three[2]], "torn");
        check(chain(2), link(3, 13), &three, "invented");
        check(chain(3), link(3, 7), &[three[0], three[1], link(3, 7)], "lost");
    }

    #[test]
    fn a_link_has_one_winner() {
        assert!(chain(3).record_won(link(4, 99)).is_ok());
        assert!(chain(3).record_won(link(3, 99)).unwrap_err().starts_with("doubled"));
    }
}
