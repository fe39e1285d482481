//! How the families of a table are stored: compression, encoding and Bloom filters, chosen at random and altered under
//! load.
//!
//! An altered table is after a kill as it was, or as the interrupted change would have it.

use cell::schema::{BlockEncoding, BloomType, Compression, FamilyDescriptor, TableDescriptor, TableName};
use client::Admin;

use crate::chance::Chance;

/// Rows begin with four hexadecimal digits.
const PREFIX: (&str, &str) = ("RowPrefixBloomFilter.prefix_length", "4");
const COMPRESSIONS: [&str; 5] = ["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"];
const ENCODINGS: [&str; 5] = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];
const BLOOMS: [&str; 4] = ["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
/// Small blocks, so that a file has many.
const BLOCK_BYTES: &str = "4096";

/// A family that is stored in some way.
pub fn family(name: &str, chance: &Chance) -> FamilyDescriptor {
    let one_of = |names: &[&'static str]| names[chance.within(0..names.len() as u64) as usize];
    let mut family = FamilyDescriptor::new(name.to_string())
        .with("COMPRESSION", one_of(&COMPRESSIONS))
        .with("DATA_BLOCK_ENCODING", one_of(&ENCODINGS))
        .with("BLOOMFILTER", one_of(&BLOOMS))
        .with("BLOCKSIZE", BLOCK_BYTES);
    family.configuration.insert(PREFIX.0.into(), PREFIX.1.into());
    family
}

/// What of a table's descriptor is looked at.
type Form = Vec<(Vec<u8>, Option<Compression>, BlockEncoding, BloomType)>;

fn form(table: &TableDescriptor) -> Form {
    let of = |family: &FamilyDescriptor| {
        (family.name.to_vec(), family.compression(), family.block_encoding(), family.bloom_type())
    };
    table.families.values().map(of).collect()
}

/// A table's descriptor, as the one who alters it knows it.
#[derive(Clone)]
pub struct Altered {
    known: TableDescriptor,
    attempted: Option<TableDescriptor>,
}

impl Altered {
    /// A table with the families `a` and `b`.
    pub fn new(name: TableName, chance: &Chance) -> Altered {
        let known =
            TableDescriptor::new(name).with_family(family("a", chance)).with_family(family("b", chance));
        Altered { known, attempted: None }
    }

    /// What is known of it.
    pub fn descriptor(&self) -> &TableDescriptor {
        &self.known
    }

    /// A change of one family, or one more or less; noted as about to be sent.
    pub fn next(&mut self, chance: &Chance) -> TableDescriptor {
        let mut next = self.known.clone();
        match chance.within(0..4) {
            0 if next.families.remove(&b"c"[..]).is_some() => {}
            0 => next = next.with_family(family("c", chance)),
            1 => next = next.with_family(family("a", chance)),
            2 => next = next.with_family(family("b", chance)),
            _ => next = next.with_family(family("a", chance)).with_family(family("b", chance)),
        }
        self.attempted = Some(next.clone());
        next
    }

    /// The change noted last was acknowledged.
    pub fn done(&mut self) {
        self.known = self.attempted.take().expect("it was noted before");
    }

    /// Asks for the descriptor after a start; what is wrong, in words.
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
