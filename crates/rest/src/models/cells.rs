//! Cells of rows.

use bytes::{Bytes, BytesMut};
use cell::{KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::rest as pb;

use super::Invalid;
use crate::base64::{self, Alphabet};
use crate::media::Media;
use crate::{json, xml};

/// Maximum number of rows and cells of a body: each needs memory, however short its text is.
const PARTS_MAX: usize = 1 << 20;

/// Rows of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellSet {
    /// The rows, in order.
    pub rows: Vec<RowModel>,
}

/// A row of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowModel {
    /// Its key, if it is in the body.
    pub key: Option<Bytes>,
    /// Its cells, in order.
    pub cells: Vec<CellModel>,
}

/// A cell of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellModel {
    /// `family` or `family:qualifier`.
    pub column: Option<Bytes>,
    /// The timestamp; [`LATEST_TIMESTAMP`] for the server's time.
    pub timestamp: i64,
    /// The value.
    pub value: Bytes,
}

impl Default for CellModel {
    fn default() -> CellModel {
        CellModel { column: None, timestamp: LATEST_TIMESTAMP, value: Bytes::new() }
    }
}

impl CellSet {
    /// Decodes a body.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn decode(media: Media, body: &Bytes) -> Result<CellSet, Invalid> {
        match media {
            Media::Json => CellSet::of_json(body),
            Media::Xml => CellSet::of_xml(body),
            _ => CellSet::of_protobuf(body),
        }
    }

    /// Decodes JSON.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_json(body: &[u8]) -> Result<CellSet, Invalid> {
        let mut reader = json::Reader::new(body);
        if reader.peek().is_none() {
            return Err(Invalid::Empty);
        }
        let mut parts = Parts::default();
        let read = reader.object(|reader, name| match name {
            "Row" if reader.null() => Ok(()),
            "Row" => reader.array(|reader| parts.read_row(reader)),
            _ => Err(json::NotJson),
        });
        match read.and_then(|()| reader.end()) {
            _ if parts.are_too_many() => Err(Invalid::TooLarge),
            Ok(()) => Ok(CellSet { rows: parts.rows }),
            Err(json::NotJson) => Err(Invalid::Unreadable),
        }
    }

    /// Decodes XML.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_xml(body: &[u8]) -> Result<CellSet, Invalid> {
        let mut parts = Parts::default();
        let read = xml::read(body, "CellSet", &mut parts);
        match read {
            _ if parts.are_too_many() => Err(Invalid::TooLarge),
            _ if parts.has_bad_number => Err(Invalid::Unreadable),
            Ok(()) => Ok(CellSet { rows: parts.rows }),
            Err(xml::NotXml) => Err(Invalid::Malformed),
        }
    }

    /// Decodes protobuf.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of_protobuf(body: &Bytes) -> Result<CellSet, Invalid> {
        // Each row and cell takes at least two bytes.
        if parts_of_protobuf(body) > PARTS_MAX {
            return Err(Invalid::TooLarge);
        }
        let message = pb::CellSet::decode(body.clone()).map_err(|_| Invalid::Unreadable)?;
        let cell = |cell: pb::Cell| CellModel {
            column: Some(cell.column.unwrap_or_default()),
            timestamp: cell.timestamp.unwrap_or(LATEST_TIMESTAMP),
            value: cell.data.unwrap_or_default(),
        };
        let row = |row: pb::cell_set::Row| RowModel {
            key: Some(row.key),
            cells: row.values.into_iter().map(cell).collect(),
        };
        Ok(CellSet { rows: message.rows.into_iter().map(row).collect() })
    }
}

/// An upper bound of the number of rows and cells of an encoded message.
fn parts_of_protobuf(body: &Bytes) -> usize {
    if body.len() / 2 <= PARTS_MAX {
        return body.len() / 2;
    }
    let mut parts = 0;
    let mut rows = body.clone();
    while let Some((is_row, row)) = next_field(&mut rows, 1) {
        parts += usize::from(is_row);
        let mut cells = row;
        while let Some((is_cell, _)) = next_field(&mut cells, 2) {
            parts += usize::from(is_cell);
        }
    }
    parts
}

/// The next length-delimited field of a message: whether it has the number `wanted`, and its bytes.
/// `None` at the end, or if the message is not valid, which the decoder reports.
fn next_field(rest: &mut Bytes, wanted: u64) -> Option<(bool, Bytes)> {
    let key = prost::encoding::decode_varint(rest).ok()?;
    match key & 7 {
        0 => prost::encoding::decode_varint(rest).ok().map(|_| (false, Bytes::new())),
        2 => {
            let len = usize::try_from(prost::encoding::decode_varint(rest).ok()?).ok()?;
            (len <= rest.len()).then(|| (key >> 3 == wanted, rest.split_to(len)))
        }
        _ => None,
    }
}

/// Rows that are being read.
#[derive(Default)]
struct Parts {
    rows: Vec<RowModel>,
    cells: usize,
    has_bad_number: bool,
}

impl Parts {
    fn are_too_many(&self) -> bool {
        self.rows.len() + self.cells > PARTS_MAX
    }

    fn read_row(&mut self, reader: &mut json::Reader<'_>) -> json::Result<()> {
        let mut row = RowModel::default();
        reader.object(|reader, name| match name {
            "key" | "Cell" if reader.null() => Ok(()),
            "key" => {
                row.key = Some(base64_of(&reader.string()?)?);
                Ok(())
            }
            "Cell" => reader.array(|reader| {
                row.cells.push(read_cell(reader)?);
                self.cells += 1;
                if self.are_too_many() { Err(json::NotJson) } else { Ok(()) }
            }),
            _ => Err(json::NotJson),
        })?;
        self.rows.push(row);
        if self.are_too_many() { Err(json::NotJson) } else { Ok(()) }
    }
}

fn read_cell(reader: &mut json::Reader<'_>) -> json::Result<CellModel> {
    let mut cell = CellModel::default();
    reader.object(|reader, name| {
        match name {
            "column" | "timestamp" | "$" if reader.null() => {}
            "column" => cell.column = Some(base64_of(&reader.string()?)?),
            "timestamp" => cell.timestamp = reader.integer()?,
            "$" => cell.value = base64_of(&reader.string()?)?,
            _ => return Err(json::NotJson),
        }
        Ok(())
    })?;
    Ok(cell)
}

fn base64_of(text: &str) -> json::Result<Bytes> {
    base64::decode(text.as_bytes(), Alphabet::Standard).map(Bytes::from).ok_or(json::NotJson)
}

impl xml::Handler for Parts {
    fn start(&mut self, path: &[String], attributes: &[(String, String)]) -> Result<(), xml::NotXml> {
        let value =
            |name: &str| attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let binary =
            |name: &str| value(name).map(|text| Bytes::from(base64::decode_loosely(text.as_bytes())));
        match path {
            [_, row] if row == "Row" => self.rows.push(RowModel { key: binary("key"), cells: Vec::new() }),
            [_, row, cell] if row == "Row" && cell == "Cell" => {
                let timestamp = value("timestamp").map_or(Ok(LATEST_TIMESTAMP), |text| text.trim().parse());
                self.has_bad_number |= timestamp.is_err();
                let timestamp = timestamp.map_err(|_| xml::NotXml)?;
                let cell = CellModel { column: binary("column"), timestamp, value: Bytes::new() };
                self.cells += 1;
                self.rows.last_mut().ok_or(xml::NotXml)?.cells.push(cell);
            }
            _ => {}
        }
        if self.are_too_many() { Err(xml::NotXml) } else { Ok(()) }
    }

    fn end(&mut self, path: &[String], text: &str) -> Result<(), xml::NotXml> {
        if let [_, row, cell] = path
            && row == "Row"
            && cell == "Cell"
        {
            let cell = self.rows.last_mut().and_then(|row| row.cells.last_mut()).ok_or(xml::NotXml)?;
            cell.value = base64::decode_loosely(text.as_bytes()).into();
        }
        Ok(())
    }
}

/// Writes rows of a response.
pub(crate) struct CellSetWriter {
    media: Media,
    rows: usize,
    out: Vec<u8>,
}

impl CellSetWriter {
    pub(crate) fn new(media: Media) -> CellSetWriter {
        CellSetWriter { media, rows: 0, out: Vec::new() }
    }

    /// Appends a row, which has at least one cell.
    pub(crate) fn row(&mut self, cells: &[KeyValue]) {
        let Some(first) = cells.first() else { return };
        let key = first.view(0).row();
        match self.media {
            Media::Json => self.json_row(key, cells),
            Media::Protobuf | Media::ProtobufIetf => self.protobuf_row(key, cells),
            _ => self.xml_row(key, cells),
        }
        self.rows += 1;
    }

    fn json_row(&mut self, key: &[u8], cells: &[KeyValue]) {
        self.out.extend_from_slice(if self.rows == 0 { b"{\"Row\":[" } else { b"," });
        self.out.extend_from_slice(b"{\"key\":\"");
        base64::encode_to(&mut self.out, key);
        self.out.extend_from_slice(b"\",\"Cell\":");
        json::array_to(&mut self.out, cells, |out, cell| {
            let cell = cell.view(0);
            out.extend_from_slice(b"{\"column\":\"");
            base64::encode_to(out, &column_of(&cell));
            out.extend_from_slice(format!("\",\"timestamp\":{},\"$\":\"", cell.timestamp()).as_bytes());
            base64::encode_to(out, cell.value);
            out.extend_from_slice(b"\"}");
        });
        self.out.push(b'}');
    }

    fn xml_row(&mut self, key: &[u8], cells: &[KeyValue]) {
        if self.rows == 0 {
            self.out.extend_from_slice(xml::DECLARATION.as_bytes());
            self.out.extend_from_slice(b"<CellSet>");
        }
        self.out.extend_from_slice(b"<Row key=\"");
        base64::encode_to(&mut self.out, key);
        self.out.extend_from_slice(b"\">");
        for cell in cells {
            let cell = cell.view(0);
            self.out.extend_from_slice(b"<Cell column=\"");
            base64::encode_to(&mut self.out, &column_of(&cell));
            self.out.extend_from_slice(format!("\" timestamp=\"{}\">", cell.timestamp()).as_bytes());
            base64::encode_to(&mut self.out, cell.value);
            self.out.extend_from_slice(b"</Cell>");
        }
        self.out.extend_from_slice(b"</Row>");
    }

    fn protobuf_row(&mut self, key: &[u8], cells: &[KeyValue]) {
        let value = |cell: &KeyValue| {
            let cell = cell.view(0);
            pb::Cell {
                row: None,
                column: Some(column_of(&cell).into()),
                timestamp: (cell.timestamp() != LATEST_TIMESTAMP).then_some(cell.timestamp()),
                data: Some(Bytes::copy_from_slice(cell.value)),
            }
        };
        let row =
            pb::cell_set::Row { key: Bytes::copy_from_slice(key), values: cells.iter().map(value).collect() };
        let set = pb::CellSet { rows: vec![row] };
        self.out.extend_from_slice(&set.encode_to_vec());
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes written since the last call.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    /// Number of bytes written and not taken.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Appends the end of the body.
    pub(crate) fn finish(&mut self) {
        match (self.media, self.rows) {
            (Media::Protobuf | Media::ProtobufIetf, _) => {}
            (Media::Json, 0) => self.out.extend_from_slice(b"{\"Row\":[]}"),
            (Media::Json, _) => self.out.extend_from_slice(b"]}"),
            (_, 0) => {
                self.out.extend_from_slice(xml::DECLARATION.as_bytes());
                self.out.extend_from_slice(b"<CellSet/>");
            }
            (_, _) => self.out.extend_from_slice(b"</CellSet>"),
        }
    }
}

/// `family:qualifier`.
pub(crate) fn column_of(cell: &cell::Cell<'_>) -> BytesMut {
    let mut column = BytesMut::with_capacity(cell.family().len() + 1 + cell.qualifier().len());
    column.extend_from_slice(cell.family());
    column.extend_from_slice(b":");
    column.extend_from_slice(cell.qualifier());
    column
}

#[cfg(test)]
mod tests {
    use cell::CellType;

    use super::*;

    fn expected() -> CellSet {
        let cell = CellModel { column: Some("cf:a".into()), timestamp: 1, value: "value".into() };
        let row = RowModel { key: Some("row1".into()), cells: vec![cell] };
        CellSet { rows: vec![row] }
    }

    fn written(media: Media) -> Bytes {
        let mut writer = CellSetWriter::new(media);
        writer.row(&[KeyValue::new(b"row1", b"cf", b"a", 1, CellType::Put, b"value")]);
        writer.finish();
        writer.take()
    }

    #[test]
    fn written_rows_are_read() {
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            assert_eq!(CellSet::decode(media, &written(media)).unwrap(), expected(), "{media:?}");
        }
        let json =
            r#"{"Row":[{"key":"cm93MQ==","Cell":[{"column":"Y2Y6YQ==","timestamp":1,"$":"dmFsdWU="}]}]}"#;
        assert_eq!(written(Media::Json), json);
        let cell = r#"<Cell column="Y2Y6YQ==" timestamp="1">dmFsdWU=</Cell>"#;
        let document = format!("{}<CellSet><Row key=\"cm93MQ==\">{cell}</Row></CellSet>", xml::DECLARATION);
        assert_eq!(written(Media::Xml), document);
    }

    #[test]
    fn missing_parts_have_defaults() {
        let bare = CellSet { rows: vec![RowModel { key: None, cells: vec![CellModel::default()] }] };
        assert_eq!(CellSet::of_json(br#"{"Row":[{"Cell":[{}]}]}"#).unwrap(), bare);
        assert_eq!(CellSet::of_xml(b"<CellSet><Row><Cell/></Row></CellSet>").unwrap(), bare);
        assert_eq!(CellSet::of_json(b"{}").unwrap(), CellSet::default());
    }

    #[test]
    fn invalid_bodies_are_refused_as_by_hbase() {
        assert_eq!(CellSet::of_json(b" "), Err(Invalid::Empty));
        for text in
            [r#"{"Row":{}}"#, r#"{"Row":[{"x":1}]}"#, r#"{"Row":[{"key":"!"}]}"#, r#"{"Row":"#, "{} x"]
        {
            assert_eq!(CellSet::of_json(text.as_bytes()), Err(Invalid::Unreadable), "{text}");
        }
        for text in ["", "<Other/>", "<CellSet><Row"] {
            assert_eq!(CellSet::of_xml(text.as_bytes()), Err(Invalid::Malformed), "{text}");
        }
        let number = b"<CellSet><Row><Cell timestamp='x'/></Row></CellSet>";
        assert_eq!(CellSet::of_xml(number), Err(Invalid::Unreadable));
        assert_eq!(CellSet::of_protobuf(&Bytes::from_static(b"\x0a\xff")), Err(Invalid::Unreadable));
    }

    #[test]
    fn many_short_parts_are_refused() {
        let json = format!("{{\"Row\":[{}{{}}]}}", "{},".repeat(PARTS_MAX));
        assert_eq!(CellSet::of_json(json.as_bytes()), Err(Invalid::TooLarge));
        let xml = format!("<CellSet>{}</CellSet>", "<Row/>".repeat(PARTS_MAX + 1));
        assert_eq!(CellSet::of_xml(xml.as_bytes()), Err(Invalid::TooLarge));
        let protobuf = Bytes::from(b"\x0a\x00".repeat(PARTS_MAX + 1));
        assert_eq!(CellSet::of_protobuf(&protobuf), Err(Invalid::TooLarge));
    }
}
