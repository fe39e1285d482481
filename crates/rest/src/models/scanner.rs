//! The request for a scanner.

use bytes::Bytes;
use cell::query::{CellSelection, Scan};
use prost::Message;
use proto::rest as pb;

use super::Invalid;
use crate::base64::{self, Alphabet};
use crate::media::Media;
use crate::row_spec::{selected, time_range};
use crate::{json, xml};

/// What to scan. All parts are optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannerModel {
    /// The first row.
    pub start_row: Bytes,
    /// The end (exclusive); empty for no end.
    pub end_row: Bytes,
    /// `family` or `family:qualifier`; empty for all.
    pub columns: Vec<Bytes>,
    /// Number of cells in one response; `None` for no limit.
    pub batch: Option<u64>,
    /// The first timestamp.
    pub start_time: i64,
    /// The end of the timestamps (exclusive).
    pub end_time: i64,
    /// Maximum number of versions.
    pub max_versions: u32,
    /// A filter in JSON form; empty for none.
    pub filter: String,
    /// Number of rows in one call to a server; `None` for the client's default.
    pub caching: Option<u32>,
    /// Whether blocks are cached.
    pub cache_blocks: bool,
    /// Maximum number of rows; `None` for no limit.
    pub limit: Option<u32>,
    /// Whether the first row is included.
    pub include_start_row: bool,
    /// Whether the last row is included.
    pub include_stop_row: bool,
}

impl Default for ScannerModel {
    fn default() -> ScannerModel {
        ScannerModel {
            start_row: Bytes::new(),
            end_row: Bytes::new(),
            columns: Vec::new(),
            batch: None,
            start_time: 0,
            end_time: i64::MAX,
            max_versions: i32::MAX.cast_unsigned(),
            filter: String::new(),
            caching: None,
            cache_blocks: true,
            limit: None,
            include_start_row: true,
            include_stop_row: false,
        }
    }
}

impl ScannerModel {
    /// Decodes a body.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn decode(media: Media, body: &Bytes) -> Result<ScannerModel, Invalid> {
        match media {
            Media::Json => ScannerModel::of_json(body),
            Media::Xml => ScannerModel::of_xml(body),
            _ => ScannerModel::of_protobuf(body),
        }
    }

    /// Decodes JSON.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_json(body: &[u8]) -> Result<ScannerModel, Invalid> {
        let (mut reader, mut model) = (json::Reader::new(body), ScannerModel::default());
        let read = reader.object(|reader, name| match name {
            _ if reader.null() => Ok(()),
            "column" => reader.array(|reader| {
                model.columns.push(strict(&reader.string()?).ok_or(json::NotJson)?);
                Ok(())
            }),
            "labels" => reader.array(|reader| reader.string().map(drop)),
            name => model.set(name, &reader.scalar()?, strict).ok_or(json::NotJson),
        });
        read.and_then(|()| reader.end()).map_err(|_| Invalid::Unreadable)?;
        Ok(model)
    }

    /// Decodes XML.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_xml(body: &[u8]) -> Result<ScannerModel, Invalid> {
        let mut read = Read::default();
        let outcome = xml::read(body, "Scanner", &mut read);
        match outcome {
            _ if read.has_bad_value => Err(Invalid::Unreadable),
            Ok(()) => Ok(read.model),
            Err(_) => Err(Invalid::Malformed),
        }
    }

    /// Decodes protobuf.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_protobuf(body: &Bytes) -> Result<ScannerModel, Invalid> {
        let message = pb::Scanner::decode(body.clone()).map_err(|_| Invalid::Unreadable)?;
        let default = ScannerModel::default();
        Ok(ScannerModel {
            start_row: message.start_row.unwrap_or_default(),
            end_row: message.end_row.unwrap_or_default(),
            columns: message.columns,
            batch: message.batch.and_then(|batch| u64::try_from(batch).ok()).filter(|batch| *batch > 0),
            start_time: message.start_time.unwrap_or(default.start_time),
            end_time: message.end_time.unwrap_or(default.end_time),
            max_versions: message
                .max_versions
                .map_or(default.max_versions, |versions| versions.max(0).cast_unsigned()),
            filter: message.filter.unwrap_or_default(),
            caching: message.caching.and_then(positive),
            cache_blocks: message.cache_blocks.unwrap_or(true),
            limit: message.limit.and_then(positive),
            include_start_row: message.include_start_row.unwrap_or(true),
            include_stop_row: message.include_stop_row.unwrap_or(false),
        })
    }

    /// Sets a member; `binary` decodes base64. `None` if the name or value is not valid.
    fn set(&mut self, name: &str, value: &str, binary: fn(&str) -> Option<Bytes>) -> Option<()> {
        let small = || value.trim().parse::<i32>().ok();
        let large = || value.trim().parse::<i64>().ok();
        match name {
            "startRow" => self.start_row = binary(value)?,
            "endRow" => self.end_row = binary(value)?,
            "batch" => self.batch = u64::try_from(small()?).ok().filter(|batch| *batch > 0),
            "startTime" => self.start_time = large()?,
            "endTime" => self.end_time = large()?,
            "maxVersions" => self.max_versions = small()?.max(0).cast_unsigned(),
            "filter" => self.filter = value.to_owned(),
            "caching" => self.caching = positive(small()?),
            "cacheBlocks" => self.cache_blocks = value == "true",
            "limit" => self.limit = positive(small()?),
            "includeStartRow" => self.include_start_row = value == "true",
            "includeStopRow" => self.include_stop_row = value == "true",
            _ => return None,
        }
        Some(())
    }

    /// The scan without its filter. `None` if a time or number of versions is not valid.
    pub(crate) fn scan(&self) -> Option<Scan> {
        let selection = CellSelection {
            columns: selected(&self.columns),
            time_range: time_range(self.start_time, self.end_time)?,
            max_versions: Some(self.max_versions).filter(|versions| *versions > 0)?,
            cache_blocks: self.cache_blocks,
            ..CellSelection::default()
        };
        Some(Scan {
            start_row: self.start_row.clone(),
            include_start_row: self.include_start_row,
            stop_row: self.end_row.clone(),
            include_stop_row: self.include_stop_row,
            selection,
            ..Scan::default()
        })
    }
}

fn positive(number: i32) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number > 0)
}

fn strict(text: &str) -> Option<Bytes> {
    base64::decode(text.as_bytes(), Alphabet::Standard).map(Bytes::from)
}

fn loose(text: &str) -> Option<Bytes> {
    Some(base64::decode_loosely(text.as_bytes()).into())
}

#[derive(Default)]
struct Read {
    model: ScannerModel,
    has_bad_value: bool,
}

impl xml::Handler for Read {
    fn start(&mut self, path: &[String], attributes: &[(String, String)]) -> Result<(), xml::NotXml> {
        if path.len() == 1 {
            // Unknown attributes are ignored.
            const KNOWN: [&str; 10] = [
                "startRow",
                "endRow",
                "batch",
                "startTime",
                "endTime",
                "maxVersions",
                "caching",
                "cacheBlocks",
                "limit",
                "includeStartRow",
            ];
            let known = |name: &str| KNOWN.contains(&name) || name == "includeStopRow";
            for (name, value) in attributes.iter().filter(|(name, _)| known(name)) {
                self.has_bad_value |= self.model.set(name, value, loose).is_none();
            }
        }
        Ok(())
    }

    fn end(&mut self, path: &[String], text: &str) -> Result<(), xml::NotXml> {
        match path {
            [_, name] if name == "column" => {
                self.model.columns.push(base64::decode_loosely(text.as_bytes()).into());
            }
            [_, name] if name == "filter" => self.model.filter = text.to_owned(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_describe_the_same_scanner() {
        let expected = ScannerModel {
            start_row: "row1".into(),
            columns: vec!["cf:a".into()],
            batch: Some(2),
            filter: "{\"type\":\"KeyOnlyFilter\"}".into(),
            ..ScannerModel::default()
        };
        let json = r#"{"batch":2,"startRow":"cm93MQ==","column":["Y2Y6YQ=="],"filter":"{\"type\":\"KeyOnlyFilter\"}"}"#;
        assert_eq!(ScannerModel::of_json(json.as_bytes()).unwrap(), expected);
        let document = r#"<Scanner batch="2" startRow="cm93MQ=="><column>Y2Y6YQ==</column>
            <filter>{"type":"KeyOnlyFilter"}</filter></Scanner>"#;
        assert_eq!(ScannerModel::of_xml(document.as_bytes()).unwrap(), expected);
        let message = pb::Scanner {
            start_row: Some("row1".into()),
            columns: vec!["cf:a".into()],
            batch: Some(2),
            filter: Some(expected.filter.clone()),
            ..pb::Scanner::default()
        };
        assert_eq!(ScannerModel::of_protobuf(&message.encode_to_vec().into()).unwrap(), expected);
        assert_eq!(ScannerModel::of_json(b"{}").unwrap(), ScannerModel::default());
        assert_eq!(ScannerModel::of_xml(b"<Scanner/>").unwrap(), ScannerModel::default());
    }

    #[test]
    fn invalid_scanners_are_refused() {
        for text in ["", r#"{"rows":1}"#, r#"{"batch":"x"}"#, r#"{"startRow":"!"}"#] {
            assert_eq!(ScannerModel::of_json(text.as_bytes()), Err(Invalid::Unreadable), "{text}");
        }
        assert_eq!(ScannerModel::of_xml(b""), Err(Invalid::Malformed));
        assert_eq!(ScannerModel::of_xml(b"<Scanner batch='x'/>"), Err(Invalid::Unreadable));
        let model = ScannerModel { start_time: 2, end_time: 1, ..ScannerModel::default() };
        assert_eq!(model.scan(), None);
    }
}
