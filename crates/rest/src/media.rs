//! Media types, and which of them a client accepts.

/// A media type of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// `text/plain`: a form for people.
    Text,
    /// `text/xml`.
    Xml,
    /// `application/json`.
    Json,
    /// `application/x-protobuf`.
    Protobuf,
    /// `application/protobuf`.
    ProtobufIetf,
    /// `application/octet-stream`: the bytes of one value.
    Octets,
}

/// The media types of table contents; the first one is the default.
pub(crate) const CELLS: &[Media] = &[Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf];
/// The media types of rows and scanners, which may be single values. HBase has no fixed default: it
/// depends on the order in which its JVM lists methods, and is this one or XML.
pub(crate) const CELLS_AND_VALUES: &[Media] =
    &[Media::Octets, Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf];
/// The media types of the results of changes, and of stateless scans.
pub(crate) const RESULTS: &[Media] = &[Media::Protobuf, Media::ProtobufIetf, Media::Xml, Media::Json];
/// The media types of descriptions.
pub(crate) const DESCRIPTIONS: &[Media] =
    &[Media::Text, Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf];
/// The media types of the cluster's version.
pub(crate) const VERSIONS: &[Media] = &[Media::Text, Media::Xml, Media::Json];

impl Media {
    /// The name in headers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Media::Text => "text/plain",
            Media::Xml => "text/xml",
            Media::Json => "application/json",
            Media::Protobuf => "application/x-protobuf",
            Media::ProtobufIetf => "application/protobuf",
            Media::Octets => "application/octet-stream",
        }
    }

    /// The media type of a `Content-Type` header.
    pub(crate) fn of_name(name: &str) -> Option<Media> {
        let essence = name.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        [Media::Text, Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf, Media::Octets]
            .into_iter()
            .find(|media| media.name() == essence)
    }
}

/// The best of `offered` by an `Accept` header. Without a header, or if everything is accepted, it
/// is the first one. `None` if none is accepted.
pub(crate) fn best(accept: Option<&str>, offered: &[Media]) -> Option<Media> {
    let Some(accept) = accept else { return offered.first().copied() };
    let names: Vec<&str> = offered.iter().map(|media| media.name()).collect();
    best_name(accept, &names).map(|at| offered[at])
}

/// As [`best`], for any names; returns the position of the best one.
pub(crate) fn best_name(accept: &str, offered: &[&str]) -> Option<usize> {
    let mut best: Option<(Rank, usize)> = None;
    for range in accept.split(',') {
        let Some((range, quality)) = parse_range(range) else { continue };
        let Some(at) = offered.iter().position(|name| matches(&range, name)) else { continue };
        let stars = range.matches('*').count();
        let rank = Rank { quality, exactness: 2 - stars.min(2) };
        if quality > 0 && best.as_ref().is_none_or(|(of_best, _)| rank > *of_best) {
            best = Some((rank, at));
        }
    }
    best.map(|(_, at)| at)
}

/// The order of media ranges: by quality, then exact ones first, then as in the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    quality: u32,
    exactness: usize,
}

/// A media range in lower case, and its quality in thousandths.
fn parse_range(text: &str) -> Option<(String, u32)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| range.contains('/') || *range == "*")?.to_ascii_lowercase();
    let range = if range == "*" { "*/*".to_owned() } else { range };
    let quality =
        parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |text| text.parse::<f32>().ok())?;
    Some((range, (quality.clamp(0.0, 1.0) * 1000.0) as u32))
}

fn matches(range: &str, name: &str) -> bool {
    match range.strip_suffix("/*") {
        Some("*") => true,
        Some(kind) => name.split('/').next() == Some(kind),
        None => range == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_exactness_and_order_decide() {
        let best = |accept: &str| best(Some(accept), CELLS_AND_VALUES);
        assert_eq!(super::best(None, DESCRIPTIONS), Some(Media::Text));
        assert_eq!(best("*/*"), Some(Media::Octets));
        assert_eq!(best("*"), Some(Media::Octets));
        assert_eq!(best("application/*"), Some(Media::Octets));
        assert_eq!(best("text/*"), Some(Media::Xml));
        assert_eq!(best("application/json;q=0.5, text/xml;q=0.9"), Some(Media::Xml));
        assert_eq!(best("application/json, text/xml"), Some(Media::Json));
        assert_eq!(best("*/*, application/protobuf"), Some(Media::ProtobufIetf));
        assert_eq!(best("image/png, application/octet-stream;q=0.1"), Some(Media::Octets));
        assert_eq!(best("image/png"), None);
        assert_eq!(best("text/xml;q=0"), None);
        assert_eq!(best("nonsense"), None);
    }

    #[test]
    fn parameters_of_content_types_are_ignored() {
        assert_eq!(Media::of_name("Application/JSON; charset=utf-8"), Some(Media::Json));
        assert_eq!(Media::of_name("text/csv"), None);
    }
}
