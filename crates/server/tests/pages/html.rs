//! Parses a page like a browser: checks that its tags match, and returns its links.

/// Elements without an end tag.
const VOID: [&str; 6] = ["meta", "link", "input", "br", "hr", "img"];

/// A tag: its name, whether it is an end tag, and the rest of its text.
struct Tag<'a> {
    name: &'a str,
    is_end: bool,
    rest: &'a str,
}

/// The tags of a page, without the content of style sheets.
fn tags(page: &str) -> Vec<Tag<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = end_of_tag(rest);
        let (inner, behind) = (&rest[..end], &rest[end + 1..]);
        rest = behind;
        if inner.starts_with('!') {
            continue;
        }
        let is_end = inner.starts_with('/');
        let inner = inner.trim_start_matches('/');
        let (name, more) = inner.split_once(|c: char| c.is_whitespace()).unwrap_or((inner, ""));
        found.push(Tag { name: name.trim_end_matches('/'), is_end, rest: more });
        if name == "style" && !is_end {
            rest = &rest[rest.find("</style").expect("the end of a style sheet")..];
        }
    }
    found
}

/// The end of a tag: the first `>` outside of quotes.
fn end_of_tag(text: &str) -> usize {
    let mut is_quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return at,
            '<' => panic!("a tag in a tag: {}", &text[..at.min(200)]),
            _ => {}
        }
    }
    panic!("a tag without an end: {}", &text[..text.len().min(200)]);
}

/// Checks that elements are properly nested and that ids are unique.
pub fn check(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"), "{}", &page[..page.len().min(100)]);
    let (mut open, mut ids) = (Vec::new(), Vec::new());
    for tag in tags(page) {
        if tag.is_end {
            assert_eq!(open.pop(), Some(tag.name), "within {open:?}");
        } else if !VOID.contains(&tag.name) && !tag.rest.ends_with('/') {
            open.push(tag.name);
        }
        assert_ne!(tag.name, "script");
        ids.extend(attribute(tag.rest, "id"));
    }
    assert!(open.is_empty(), "{open:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");
}

/// The unescaped value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let at = tag.find(&format!("{name}=\"")).filter(|at| *at == 0 || tag.as_bytes()[at - 1] == b' ')?;
    let value = &tag[at + name.len() + 2..];
    Some(&value[..value.find('"')?])
}

/// The targets of a page's links.
pub fn links(page: &str) -> Vec<String> {
    let of_links = |tag: &Tag<'_>| tag.name == "a" && !tag.is_end;
    let found = tags(page)
        .into_iter()
        .filter(of_links)
        .filter_map(|tag| Some(attribute(tag.rest, "href")?.to_owned()));
    let mut links: Vec<String> = found.map(|link| link.replace("&amp;", "&")).collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// The ids of a page.
pub fn ids(page: &str) -> Vec<&str> {
    tags(page).iter().filter_map(|tag| attribute(tag.rest, "id")).collect()
}
