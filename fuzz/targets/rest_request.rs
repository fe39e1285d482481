//! A request to the REST API: the first line is its path, the second one its query; the rest is its
//! body, which is read in every form.
#![no_main]

use bytes::Bytes;
use rest::{CellSet, KeyEncoding, Route, RowSpec, ScannerModel};

libfuzzer_sys::fuzz_target!(|request: &[u8]| {
    let mut parts = request.splitn(3, |byte| *byte == b'\n');
    let path = parts.next().and_then(|path| std::str::from_utf8(path).ok()).unwrap_or("");
    let query = parts.next().and_then(|query| std::str::from_utf8(query).ok()).unwrap_or("");
    let body = Bytes::copy_from_slice(parts.next().unwrap_or(b""));
    if let Some(Route::Rows(_, spec)) = Route::parse(path) {
        for encoding in [KeyEncoding::Plain, KeyEncoding::Url, KeyEncoding::Standard] {
            _ = RowSpec::parse(spec, encoding);
        }
    }
    _ = RowSpec::parse(query, KeyEncoding::Plain);
    _ = CellSet::of_json(&body);
    _ = CellSet::of_xml(&body);
    _ = CellSet::of_protobuf(&body);
    let scanners =
        [ScannerModel::of_json(&body), ScannerModel::of_xml(&body), ScannerModel::of_protobuf(&body)];
    for scanner in scanners.into_iter().flatten() {
        _ = rest::filter::parse(&scanner.filter);
    }
    if let Some(filter) = std::str::from_utf8(&body).ok().and_then(rest::filter::parse) {
        // What was parsed can be sent.
        _ = wire::filter::to_proto(&filter);
    }
});
