//! Increments and appends with nonces: each is applied once, however often it is sent.
//!
//! An account is a row with a sum and a text in one family, and twice the sum and the same text in
//! the other. Its owner sends one operation at a time. So after a kill the account must have the
//! acknowledged balance, or that plus the one operation without a response. That operation is then
//! sent again with its nonce and must be applied exactly once. While the server runs, acknowledged
//! operations are sometimes resent too, which must change nothing.
//!
//! A start that was killed may have flushed and closed a region. The next start does not replay the
//! entries before a close, so it does not know their nonces, as in HBase ([`Nonces`]).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Get;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Row, Table};

use crate::cells;
use crate::choices::RandomChoices;
use crate::world::LoadState;
use crate::writer::Witness;

const ACCOUNTS: u64 = 12;
/// A longer text is cleared.
const TEXT_BYTES_MAX: usize = 2_000;
/// The columns of the sum, the text, twice the sum, and the copy of the text.
const SUM: (&[u8], &[u8]) = (b"a", b"sum");
const TEXT: (&[u8], &[u8]) = (b"a", b"text");
const TWICE: (&[u8], &[u8]) = (b"b", b"twice");
const COPY: (&[u8], &[u8]) = (b"b", b"copy");

/// The content of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    sum: i64,
    text: String,
}

#[derive(Clone, Debug)]
enum Operation {
    Add(i64),
    Append(String),
    // A put of both texts, which is idempotent.
    Clear,
}

#[derive(Clone, Debug)]
struct SentOperation {
    operation: Operation,
    nonce: (u64, u64),
}

#[derive(Default)]
struct Account {
    acknowledged: Balance,
    open: Option<SentOperation>,
}

impl Balance {
    fn after(&self, operation: &Operation) -> Balance {
        let mut next = self.clone();
        match operation {
            Operation::Add(amount) => next.sum += amount,
            Operation::Append(piece) => next.text.push_str(piece),
            Operation::Clear => next.text.clear(),
        }
        next
    }

    /// The balance of a row, whose two families must agree.
    fn from_row(row: &Row) -> Result<Balance, String> {
        let number = |column: (&[u8], &[u8])| {
            let bytes = row.value(column.0, column.1).unwrap_or(&[0; 8]);
            bytes.try_into().map(i64::from_be_bytes).map_err(|_| format!("no number: {bytes:?}"))
        };
        let text = |column: (&[u8], &[u8])| {
            String::from_utf8_lossy(row.value(column.0, column.1).unwrap_or_default()).into_owned()
        };
        let (sum, twice, text, copy) = (number(SUM)?, number(TWICE)?, text(TEXT), text(COPY));
        match sum * 2 == twice && text == copy {
            true => Ok(Balance { sum, text }),
            false => Err(format!("torn: {sum} and {twice}, {text:?} and {copy:?}")),
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The beginning of a long text is not informative.
        let from = self.text.len().saturating_sub(40);
        write!(f, "{} …{:?} ({})", self.sum, &self.text[from..], self.text.len())
    }
}

impl Account {
    /// Compares the balance found after a kill with the required one.
    fn check(&self, found: &Balance) -> Result<(), String> {
        if *found == self.acknowledged {
            return Ok(());
        }
        match self.open.as_ref().map(|open| (open, self.acknowledged.after(&open.operation))) {
            Some((_, after)) if *found == after => Ok(()),
            Some((open, after)) if *found == after.after(&open.operation) => {
                Err(format!("doubled: {found}, acknowledged {}, sent {open:?}", self.acknowledged))
            }
            open => {
                let open = open.map(|(open, _)| open);
                Err(format!("lost or invented: {found}, acknowledged {}, sent {open:?}", self.acknowledged))
            }
        }
    }
}

impl Operation {
    fn next(balance: &Balance, number: u64, choices: &RandomChoices) -> Operation {
        match choices.within(0..3) {
            0 if balance.text.len() > TEXT_BYTES_MAX => Operation::Clear,
            0 => Operation::Append(format!("{number}.")),
            _ => Operation::Add(choices.within(1..1000) as i64),
        }
    }

    fn mutation(&self, row: &Bytes, nonce: (u64, u64)) -> Mutation {
        let cell = |column: (&[u8], &[u8]), value: &[u8]| {
            KeyValue::new(row, column.0, column.1, LATEST_TIMESTAMP, CellType::Put, value)
        };
        let number = |column, amount: i64| cell(column, &amount.to_be_bytes());
        let (row, mutation) = (row.clone(), |mutation| Mutation { nonce, ..mutation });
        match self {
            Operation::Add(amount) => {
                mutation(Mutation::increment(row, vec![number(SUM, *amount), number(TWICE, amount * 2)]))
            }
            Operation::Append(piece) => {
                let piece = piece.as_bytes();
                mutation(Mutation::append(row, vec![cell(TEXT, piece), cell(COPY, piece)]))
            }
            Operation::Clear => Mutation::put(row, vec![cell(TEXT, b""), cell(COPY, b"")]),
        }
    }
}

/// Sends an operation and returns the resulting values of the columns that it changed.
async fn send(table: &Table, row: &Bytes, sent: &SentOperation) -> client::Result<Row> {
    let mutation = sent.operation.mutation(row, sent.nonce);
    match &sent.operation {
        Operation::Clear => table.mutate(&mutation).await.map(|()| Row::default()),
        _ => table.change(&mutation).await,
    }
}

/// Whether a response contains the balance, in the columns that the operation changes.
fn matches_balance(answer: &Row, balance: &Balance, operation: &Operation) -> bool {
    let value = |column: (&[u8], &[u8])| answer.value(column.0, column.1);
    let (text, (once, twice)) = (balance.text.as_bytes(), (balance.sum, balance.sum * 2));
    match operation {
        Operation::Add(_) => {
            value(SUM) == Some(&once.to_be_bytes()) && value(TWICE) == Some(&twice.to_be_bytes())
        }
        Operation::Append(_) => value(TEXT) == Some(text) && value(COPY) == Some(text),
        Operation::Clear => true,
    }
}

async fn read(table: &Table, row: &Bytes) -> client::Result<Row> {
    table.get(&Get { row: row.clone(), selection: Default::default(), existence_only: false }).await
}

/// Whether the server must know the nonces of the last load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nonces {
    Known,
    /// A start was killed since that load.
    MayBeForgotten,
}

/// The accounts of a table, as their owners know them.
pub struct Accounts {
    accounts: Vec<(Bytes, Mutex<Account>)>,
    choices: RandomChoices,
    witness: Witness,
    operations: AtomicU64,
}

impl Accounts {
    pub fn new(choices: RandomChoices, witness: Witness) -> Accounts {
        let account = |number| (cells::row_key("account", number), Mutex::default());
        Accounts {
            accounts: (0..ACCOUNTS).map(account).collect(),
            choices,
            witness,
            operations: AtomicU64::new(0),
        }
    }

    /// Changes the accounts of one of `owners` until the load ends.
    pub async fn run(self: Arc<Self>, owner: u64, owners: u64, table: Table, env: Env, load: Arc<LoadState>) {
        let own: Vec<_> = self.accounts.iter().skip(owner as usize).step_by(owners as usize).collect();
        for number in 0.. {
            if load.has_ended() {
                return;
            }
            let (row, account) = own[self.choices.within(0..own.len() as u64) as usize];
            match self.operate(&table, row, account, number).await {
                Ok(None) => {}
                Ok(Some(wrong)) => load.record_violation(format!("account {}: {wrong}", row.escape_ascii())),
                Err(error) => load.record_failure(&format!("change of {}", row.escape_ascii()), &error),
            }
            if self.choices.once_in(8) {
                env.clock.sleep(self.choices.millis(1..10)).await;
            }
        }
    }

    /// Sends an operation, sometimes twice. Returns the violation, if any.
    async fn operate(
        &self,
        table: &Table,
        row: &Bytes,
        account: &Mutex<Account>,
        number: u64,
    ) -> client::Result<Option<String>> {
        let (sent, after) = {
            let mut account = lock(account);
            let operation = Operation::next(&account.acknowledged, number, &self.choices);
            let sent = SentOperation { operation, nonce: self.nonce() };
            account.open = Some(sent.clone());
            (sent.clone(), account.acknowledged.after(&sent.operation))
        };
        let answer = send(table, row, &sent).await?;
        self.operations.fetch_add(1, Ordering::Relaxed);
        {
            let mut account = lock(account);
            account.acknowledged = after.clone();
            account.open = None;
        }
        if !matches_balance(&answer, &after, &sent.operation) {
            return Ok(Some(format!("{sent:?} left {answer:?}, not {after}")));
        }
        if !self.choices.once_in(5) {
            return Ok(None);
        }
        self.resend(table, row, &sent, &after).await
    }

    /// Resends an operation: the response must be the same, and the account unchanged.
    async fn resend(
        &self,
        table: &Table,
        row: &Bytes,
        sent: &SentOperation,
        after: &Balance,
    ) -> client::Result<Option<String>> {
        let nonce = if self.witness == Witness::FreshNonces { self.nonce() } else { sent.nonce };
        let again = SentOperation { nonce, ..sent.clone() };
        let answer = send(table, row, &again).await?;
        let found = Balance::from_row(&read(table, row).await?);
        if !matches_balance(&answer, after, &sent.operation) || found.as_ref() != Ok(after) {
            return Ok(Some(format!(
                "doubled: {again:?} sent again left {answer:?}, {found:?}, not {after}"
            )));
        }
        Ok(None)
    }

    /// Checks every account after a start, and resends operations without a response. Returns the
    /// violations.
    pub async fn verify(&self, table: &Table, nonces: Nonces) -> client::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (row, account) in &self.accounts {
            let found = Balance::from_row(&read(table, row).await?);
            let checked = found.and_then(|found| lock(account).check(&found));
            let outcome = match checked {
                Err(what) => Some(what),
                Ok(()) => self.settle(table, row, account, nonces).await?,
            };
            wrong.extend(outcome.map(|what| format!("account {}: {what}", row.escape_ascii())));
        }
        Ok(wrong)
    }

    async fn settle(
        &self,
        table: &Table,
        row: &Bytes,
        account: &Mutex<Account>,
        nonces: Nonces,
    ) -> client::Result<Option<String>> {
        let (sent, after) = {
            let account = lock(account);
            let Some(sent) = account.open.clone() else { return Ok(None) };
            let after = account.acknowledged.after(&sent.operation);
            (sent, after)
        };
        if nonces == Nonces::MayBeForgotten
            && Balance::from_row(&read(table, row).await?).as_ref() == Ok(&after)
        {
            *lock(account) = Account { acknowledged: after, open: None };
            return Ok(None);
        }
        // Send twice: the first send may apply the operation, or already be a repetition.
        for _ in 0..2 {
            if let Some(wrong) = self.resend(table, row, &sent, &after).await? {
                return Ok(Some(wrong));
            }
        }
        *lock(account) = Account { acknowledged: after, open: None };
        Ok(None)
    }

    /// The number of operations.
    pub fn summary(&self) -> String {
        format!("{} increments and appends", self.operations.load(Ordering::Relaxed))
    }

    fn nonce(&self) -> (u64, u64) {
        (self.choices.seed() | 1, self.choices.seed() | 1)
    }
}

fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().expect("no holder of this lock panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(sum: i64, open: Option<Operation>) -> Account {
        let open = open.map(|operation| SentOperation { operation, nonce: (1, 1) });
        Account { acknowledged: Balance { sum, text: "1.".into() }, open }
    }

    fn check(account: &Account, sum: i64, text: &str, expected: &str) {
        let found = account.check(&Balance { sum, text: text.into() });
        let words = found.err().unwrap_or_default();
        assert_eq!(words.split(':').next().unwrap(), expected, "{words}");
    }

    #[test]
    fn acknowledged_operations_exist_and_an_open_one_may_exist_once() {
        check(&account(5, None), 5, "1.", "");
        let adding = account(5, Some(Operation::Add(3)));
        check(&adding, 5, "1.", "");
        check(&adding, 8, "1.", "");
        check(&adding, 11, "1.", "doubled");
        check(&adding, 0, "1.", "lost or invented");
        let appending = account(5, Some(Operation::Append("2.".into())));
        check(&appending, 5, "1.2.", "");
        check(&appending, 5, "1.2.2.", "doubled");
        check(&appending, 5, "", "lost or invented");
        check(&account(5, Some(Operation::Clear)), 5, "", "");
        check(&account(5, None), 8, "1.", "lost or invented");
    }

    #[test]
    fn differing_families_are_torn() {
        let row = |mutation: Mutation| Row { cells: mutation.cells };
        let row_key = Bytes::from_static(b"r");
        let whole = row(Operation::Add(3).mutation(&row_key, (1, 1)));
        assert_eq!(Balance::from_row(&whole), Ok(Balance { sum: 3, text: String::new() }));
        for operation in [Operation::Add(3), Operation::Append("1.".into())] {
            let mut part = row(operation.mutation(&row_key, (1, 1)));
            part.cells.pop();
            assert!(Balance::from_row(&part).unwrap_err().starts_with("torn"), "{operation:?}");
        }
    }
}
