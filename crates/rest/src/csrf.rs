//! Protection against requests that a page of another site makes a browser send: a header that
//! such a page cannot set.

use hyper::Method;
use hyper::header::HeaderMap;
use regex::Regex;

/// Options of the protection. Source: Hadoop `RestCsrfPreventionFilter`.
#[derive(Clone, Debug)]
pub struct CsrfOptions {
    /// The header that a browser's request must have, with any value.
    pub header: String,
    /// Methods that need no header.
    pub ignored_methods: Vec<String>,
    /// Expressions for the `User-Agent` of browsers. Other clients need no header.
    pub browsers: Vec<Regex>,
}

impl CsrfOptions {
    /// Whether a request may be executed.
    pub(crate) fn admits(&self, method: &Method, headers: &HeaderMap) -> bool {
        let agent =
            headers.get(hyper::header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("");
        self.ignored_methods.iter().any(|ignored| ignored == method.as_str())
            || !self.browsers.iter().any(|browser| browser.is_match(agent))
            || headers.contains_key(&self.header)
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn browsers_need_the_header_for_changes() {
        let options = CsrfOptions {
            header: "X-XSRF-HEADER".into(),
            ignored_methods: vec!["GET".into()],
            browsers: vec![Regex::new("^Mozilla.*").unwrap()],
        };
        let mut headers = HeaderMap::new();
        assert!(options.admits(&Method::PUT, &headers), "not a browser");
        headers.insert("User-Agent", HeaderValue::from_static("Mozilla/5.0"));
        assert!(!options.admits(&Method::PUT, &headers));
        assert!(options.admits(&Method::GET, &headers));
        headers.insert("x-xsrf-header", HeaderValue::from_static(""));
        assert!(options.admits(&Method::PUT, &headers));
    }
}
