//! How the families of a table are stored: compression, encoding and Bloom filters, chosen at
//! random and altered under load.
//!
//! After a kill, an altered table must be as before the interrupted change or as after it.

use cell::schema::{BlockEncoding, BloomType, Compression, FamilyDescriptor, TableDescriptor, TableName};
use client::Admin;

use crate::choices::RandomChoices;

/// Rows start with four hexadecimal digits.
const PREFIX: (&str, &str) = ("RowPrefixBloomFilter.prefix_length", "4");
const COMPRESSIONS: [&str; 5] = ["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"];
const ENCODINGS: [&str; 5] = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];
const BLOOMS: [&str; 4] = ["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
/// Storage policies that name different tiers. Without tiers they have no effect.
const POLICIES: [&str; 3] = ["ALL_SSD", "HOT", "COLD"];
/// Small blocks, so that a file has many.
const BLOCK_BYTES: &str = "4096";

/// A family with random storage settings.
pub fn family(name: &str, choices: &RandomChoices) -> FamilyDescriptor {
    let one_of = |names: &[&'static str]| names[choices.within(0..names.len() as u64) as usize];
    let mut family = FamilyDescriptor::new(name.to_string())
        .with("COMPRESSION", one_of(&COMPRESSIONS))
        .with("DATA_BLOCK_ENCODING", one_of(&ENCODINGS))
        .with("BLOOMFILTER", one_of(&BLOOMS))
        .with("BLOCKSIZE", BLOCK_BYTES);
    if choices.once_in(2) {
        family = family.with("STORAGE_POLICY", one_of(&POLICIES));
    }
    family.configuration.insert(PREFIX.0.into(), PREFIX.1.into());
    family
}

/// The compared part of a table's descriptor.
type Form = Vec<(Vec<u8>, Option<Compression>, BlockEncoding, BloomType)>;

fn form(table: &TableDescriptor) -> Form {
    let of = |family: &FamilyDescriptor| {
        (family.name.to_vec(), family.compression(), family.block_encoding(), family.bloom_type())
    };
    table.families.values().map(of).collect()
}

/// A table's descriptor, as the client that alters it knows it.
#[derive(Clone)]
pub struct AlteredTable {
    known: TableDescriptor,
    attempted: Option<TableDescriptor>,
}

impl AlteredTable {
    /// A table with the families `a` and `b`.
    pub fn new(name: TableName, choices: &RandomChoices) -> AlteredTable {
        let known =
            TableDescriptor::new(name).with_family(family("a", choices)).with_family(family("b", choices));
        AlteredTable { known, attempted: None }
    }

    /// The last known descriptor.
    pub fn descriptor(&self) -> &TableDescriptor {
        &self.known
    }

    /// Returns a descriptor with changed families, or with one family more or less, and records it
    /// as about to be sent.
    pub fn next(&mut self, choices: &RandomChoices) -> TableDescriptor {
        let mut next = self.known.clone();
        match choices.within(0..4) {
            0 if next.families.remove(&b"c"[..]).is_some() => {}
            0 => next = next.with_family(family("c", choices)),
            1 => next = next.with_family(family("a", choices)),
            2 => next = next.with_family(family("b", choices)),
            _ => next = next.with_family(family("a", choices)).with_family(family("b", choices)),
        }
        self.attempted = Some(next.clone());
        next
    }

    /// Records that the last change was acknowledged.
    pub fn record_acknowledged(&mut self) {
        self.known = self.attempted.take().expect("a change was recorded");
    }

    /// Compares the descriptor with the expected one after a start. Returns the violations.
    pub async fn verify(&mut self, admin: &Admin) -> client::Result<Vec<String>> {
        let found = admin.describe(&self.known.name).await?;
        let attempted = self.attempted.take();
        if form(&found) == form(&self.known) {
            return Ok(Vec::new());
        }
        match attempted {
            Some(attempted) if form(&found) == form(&attempted) => {
                self.known = attempted;
                Ok(Vec::new())
            }
            attempted => Ok(vec![format!(
                "is {:?}, known {:?}, attempted {:?}",
                form(&found),
                form(&self.known),
                attempted.as_ref().map(form)
            )]),
        }
    }
}
