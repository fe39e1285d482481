//! Split keys of a new table: from a list, from a file, or computed by an algorithm for a number of
//! regions of equal size.

use std::path::Path;

use bytes::Bytes;
use cell::schema::TableDescriptor;

use crate::shell::arguments::Options;
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::text::{binary, from_binary};
use crate::shell::value::Value;

/// Parses `SPLITS`, `SPLITS_FILE`, or `NUMREGIONS` with `SPLITALGO`; `None` without any.
pub(super) fn take(options: &mut Options, table: &mut TableDescriptor) -> Result<Option<Vec<Bytes>>> {
    let mut splits = options.take("SPLITS");
    if let Some(path) = options.bytes("SPLITS_FILE")? {
        let path = String::from_utf8_lossy(&path).into_owned();
        splits = Some(Value::Array(lines(&path)?));
        // HBase's shell stores the path in the table's attributes.
        table.attributes.insert(Bytes::from_static(b"SPLITS_FILE"), path.into());
    }
    let regions: Option<u64> = options.number("NUMREGIONS", 0)?;
    let algorithm = options.bytes("SPLITALGO")?;
    match (splits, regions, algorithm) {
        (Some(splits), ..) => keys(splits).map(Some),
        (None, None, None) => Ok(None),
        (None, None, Some(_)) => usage("Number of regions must be specified"),
        (None, Some(_), None) => usage("Split algorithm must be specified"),
        (None, Some(..=1), Some(_)) => usage("Number of regions must be greater than 1"),
        (None, Some(regions), Some(algorithm)) => {
            equal(&String::from_utf8_lossy(&algorithm), regions).map(Some)
        }
    }
}

/// Maximum number of regions to compute keys for.
const REGIONS_MAX: u64 = 1 << 20;

#[allow(clippy::disallowed_methods, reason = "a file of the user's, not one of the store's")]
fn lines(path: &str) -> Result<Vec<Value>> {
    if !Path::new(path).exists() {
        return usage(format!("Splits file {path} doesn't exist"));
    }
    let bytes =
        std::fs::read(path).map_err(|error| ShellError::Usage(format!("cannot read {path}: {error}")))?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = |line: &[u8]| Value::Text(line.strip_suffix(b"\r").unwrap_or(line).to_vec());
    Ok(text.split(|byte| *byte == b'\n').map(line).collect())
}

/// The keys of a list, sorted; `\xHH` in them is a byte.
fn keys(splits: Value) -> Result<Vec<Bytes>> {
    let Value::Array(splits) = splits else {
        return usage(format!("SPLITS must be an array, not {splits}"));
    };
    let key = |value: &Value| match value.bytes() {
        Some(key) if !key.is_empty() => Ok(Bytes::from(from_binary(&key))),
        _ => usage(format!("SPLITS must contain row keys, not {value}")),
    };
    let mut keys = splits.iter().map(key).collect::<Result<Vec<Bytes>>>()?;
    keys.sort();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let key = binary(&pair[0]);
            usage(format!("All split keys must be unique, found duplicate: {key}, {key}"))
        }
        None => Ok(keys),
    }
}

/// Split keys for regions of equal size. Source: HBase `RegionSplitter`.
fn equal(algorithm: &str, regions: u64) -> Result<Vec<Bytes>> {
    if regions > REGIONS_MAX {
        return usage(format!("Number of regions must be at most {REGIONS_MAX}"));
    }
    let parts = |range: u128| {
        let size = range / u128::from(regions);
        (1..u128::from(regions)).map(move |at| size * at)
    };
    match algorithm {
        "HexStringSplit" => Ok(parts(1 << 32).map(|key| format!("{key:08x}").into()).collect()),
        "DecimalStringSplit" => Ok(parts(100_000_000).map(|key| format!("{key:08}").into()).collect()),
        "UniformSplit" => Ok(parts(1 << 64)
            .map(|key| Bytes::copy_from_slice(&u64::try_from(key).expect("below 2^64").to_be_bytes()))
            .collect()),
        _ => usage(format!(
            "unknown split algorithm {algorithm}; expected HexStringSplit, DecimalStringSplit or UniformSplit"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(keys: &[Bytes]) -> String {
        keys.iter().map(|key| binary(key)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn regions_of_equal_size() {
        let check = |algorithm, regions, expected: &str| {
            assert_eq!(shown(&equal(algorithm, regions).unwrap()), expected);
        };
        check("HexStringSplit", 4, "40000000 80000000 c0000000");
        check("DecimalStringSplit", 4, "25000000 50000000 75000000");
        check("UniformSplit", 2, r"\x80\x00\x00\x00\x00\x00\x00\x00");
        assert!(equal("NoSuch", 2).is_err());
        assert!(equal("HexStringSplit", u64::MAX).is_err());
    }

    #[test]
    fn keys_are_sorted_and_of_bytes() {
        let list = |texts: &[&str]| {
            Value::Array(texts.iter().map(|text| Value::Text(text.as_bytes().to_vec())).collect())
        };
        assert_eq!(shown(&keys(list(&["b", "a", r"\x20"])).unwrap()), "  a b");
        let twice = keys(list(&["a", "a"])).unwrap_err().to_string();
        assert_eq!(twice, "All split keys must be unique, found duplicate: a, a");
        assert!(keys(list(&[""])).is_err());
        assert!(keys(Value::Integer(1)).is_err());
    }
}
