use proptest::prelude::*;

use super::*;

const DOTALL: i32 = 0x20;

fn search(source: &str, flags: i32, text: &str) -> Search {
    Regex::new(source, flags).unwrap().find(text.as_bytes(), Charset::Utf8, STEPS_MAX)
}

fn found(source: &str, flags: i32, text: &str) -> bool {
    search(source, flags, text).found.unwrap()
}

/// The expected results are those of `java.util.regex` in Java 17.
#[test]
fn expressions_match_as_in_java() {
    for (source, flags, text, expected) in [
        ("^(?!tmp).*", DOTALL, "tmp1", false),
        ("^(?!tmp).*", DOTALL, "temp", true),
        ("(?<!x)y", DOTALL, "xy", false),
        ("(?<!x)y", DOTALL, "zy", true),
        ("(?<=ab?)c", DOTALL, "abc", true),
        ("(?<=a+)b", 0, "aab", true),
        ("(?<=\\X)a", 0, "xa", false),
        ("(a)\\1", DOTALL, "aa", true),
        ("(a)\\1", DOTALL, "ab", false),
        ("(a)\\2", DOTALL, "aa", false),
        ("(?<n>a)\\k<n>", DOTALL, "aa", true),
        ("(?i)(a)\\1", DOTALL, "aA", true),
        ("a*+a", DOTALL, "aaa", false),
        ("^b(a+)??$", DOTALL, "b", true),
        ("^b((?:a?b){1,}){0,2}$", DOTALL, "b", true),
        ("(?>a*)a", DOTALL, "aaa", false),
        ("(?:a|ab)++c", DOTALL, "abc", false),
        ("^[a-z&&[^bc]]$", DOTALL, "b", false),
        ("^[a-z&&[^bc]]$", DOTALL, "d", true),
        ("^[a-c[x-z]]$", DOTALL, "y", true),
        ("[a&&[b]&]", 0, "a", true),
        ("[a[^b]]", 0, "b", false),
        ("[[:alpha:]]", 0, "p", true),
        ("[[:alpha:]]", 0, "b", false),
        ("^\\p{IsAlphabetic}$", DOTALL, "é", true),
        ("\\p{IsLatin}", DOTALL, "я", false),
        ("\\p{InGreek}", DOTALL, "α", true),
        ("\\p{InGREEK AND COPTIC}", DOTALL, "α", true),
        ("\\p{javaLowerCase}", DOTALL, "ª", true),
        ("\\p{IsHan}", DOTALL, "中", true),
        ("\\p{script=Latn}", DOTALL, "a", true),
        ("(?i)\\p{Lu}", 0, "a", true),
        ("a\\Rb", DOTALL, "a\r\nb", true),
        ("\\R{2}", 0, "\r\n", false),
        ("^\\X$", 0, "👨\u{200d}👩", true),
        ("^\\X$", 0, "\u{915}\u{94d}\u{937}", false),
        ("\\Ga", 0, "ba", false),
        ("(?m)b$", 0, "ab\nc", true),
        ("(?m)^", 0, "", false),
        ("(?m)^c", 0, "ab\r\nc", true),
        ("(?U)\\w+$", 0, "é", true),
        ("\\bé", 0, "é", true),
        ("\\b\u{301}", 0, "e\u{301}", false),
        ("\\N{LATIN SMALL LETTER A}", 0, "a", true),
        ("\\N{CJK UNIFIED IDEOGRAPHS 4E00}", 0, "一", true),
        ("\\N{LINE FEED (LF)}", 0, "\n", true),
        ("(\\b)*a\\1", 0, "a", false),
        ("(?:(?=(a))b|a\\1)", 0, "aa", true),
        ("\\P{So}", 0, "😀", false),
        ("{2}a", 0, "a", true),
        ("r[13]$", DOTALL, "r1\n", true),
        ("r[13]$", DOTALL, "r1\n\n", false),
        ("a\r$", DOTALL, "a\r\n", false),
        ("r[13]\\z", DOTALL, "r1\n", false),
        ("a.c", 0, "a\u{85}c", false),
        ("\\d+", DOTALL, "\u{663}", false),
        ("\\w", DOTALL, "é", false),
        ("K", 0x02, "k", true),
        ("k", 0x02, "\u{212a}", false),
        ("k", 0x42, "\u{212a}", true),
        ("[^a-c]", 0x02, "B", false),
        ("\\Qa.b\\E.", DOTALL, "a.bc", true),
        ("a.b", 0x10, "axb", false),
        ("a b # two", 0x04, "ab", true),
        ("(?i)ab(?-i)c", DOTALL, "ABC", false),
        ("[]a]", DOTALL, "]", true),
        ("~[--~]", DOTALL, "~~", true),
        ("", 0, "", true),
    ] {
        assert_eq!(found(source, flags, text), expected, "{source} {flags} {text:?}");
    }
}

#[test]
fn expressions_that_java_rejects_are_rejected() {
    for source in [
        "\\y",
        "*a",
        "a**",
        "a{,3}",
        "a{2,1}",
        "a{2147483648}",
        "(",
        ")",
        "[a",
        "[a-",
        "[b-a]",
        "\\",
        "\\c",
        "\\E",
        "(?<a>x)(?<a>y)",
        "\\k<a>",
        "(?^i)a",
        "\\p{IsNothing}",
        "\\p{L",
        "\\p{}",
        "(?<=a|\\1)b",
        "(?<=(a|b)*)c",
        "[&&&a]",
        "\\N{LINE FEED}",
        "\\x{110000}",
        "\\u12",
        "\\08",
        "(?<1>a)",
        "[\\b]",
        "x(?i)*",
        "(?$a)",
    ] {
        let error = Regex::new(source, DOTALL).unwrap_err();
        assert!(matches!(error, Error::Syntax { .. }), "{source}: {error}");
    }
    assert!(matches!(Regex::new("a", 0x80), Err(Error::Unsupported(_))));
    assert!(matches!(Regex::new("a", 0x200), Err(Error::Unsupported(_))));
}

#[test]
fn matches_can_require_the_whole_text() {
    let matches =
        |source: &str, text: &str| Regex::new(source, 0).unwrap().matches(text, 1000).found.unwrap();
    assert!(matches("t.*", "t1") && !matches("t", "t1") && matches("t|t1", "t1"));
    assert!(matches("(?!tmp).*", "t1") && !matches("(?!tmp).*", "tmp1"));
}

#[test]
fn bytes_that_are_no_text_can_be_searched() {
    let find = |source: &str, bytes: &[u8], charset| {
        Regex::new(source, DOTALL).unwrap().find(bytes, charset, STEPS_MAX).found.unwrap()
    };
    assert!(find("a.b", b"a\xffb", Charset::Utf8) && find("^.$", b"\xff", Charset::Utf8));
    assert!(find("^.$", b"\xed\xa0\x80", Charset::Utf8), "an encoded surrogate is one character");
    assert!(find("^(?!b)\u{e9}$", b"\xe9", Charset::Latin1) && find("\u{e9}", b"\xe9", Charset::Latin1));
    assert!(find("^\u{fffd}$", b"\xe9", Charset::Ascii));
}

#[test]
fn catastrophic_expressions_end_at_the_limit() {
    let text = "a".repeat(5000) + "!";
    for source in [
        "(?=(a+))(?:a+)+\\1$",
        "^(a|aa)+\\1b",
        "(?<!x)(a|aa)*?b\\1",
        "^(?:(?:a*)*)*(?!!)$",
        "(x+x+)+(?=y)|(a*)*\\2b",
    ] {
        let search = search(source, DOTALL, &text);
        assert_eq!(search.found, Err(TooManySteps { limit: STEPS_MAX + text.len() as u64 }), "{source}");
        assert!(search.steps <= STEPS_MAX + text.len() as u64 + 5000);
    }
}

#[test]
fn expressions_without_back_references_are_searched_in_linear_time() {
    let text = "a".repeat(5000) + "!";
    for source in ["(a+)+$", "(a|aa)*b", "(a|a?)+=", "(.*)*x", "([a-z]+)*=", "(?:a{1,3}){2,40}b"] {
        let search = search(source, 0, &text);
        assert_eq!((search.found, search.steps), (Ok(false), 0), "{source}");
    }
}

#[test]
fn compiling_is_bounded() {
    let nested = |open: &str, close: &str, count: usize| open.repeat(count) + "a" + &close.repeat(count);
    for source in [
        nested("(", ")", 100_000),
        nested("(?:", ")*", 50_000),
        nested("(?=", ")", 50_000),
        nested("[", "]", 100_000),
        format!("[{}]", "a&&".repeat(50_000)),
        "a".repeat(300_000),
        "[^\\p{L}]|[\\p{L}a]|[\\p{IsAlphabetic}b]|".repeat(6_000),
    ] {
        assert!(Regex::new(&source, 0).is_err(), "{}", &source[..20]);
    }
    for source in [
        "((((a{100}){100}){100}){100})".to_string(),
        "a|".repeat(100_000),
        "(a|b)".repeat(30_000),
        nested("(", ")", 150),
    ] {
        assert!(Regex::new(&source, 0).is_ok(), "{}", &source[..20]);
    }
}

proptest! {
    /// Both engines return the same result.
    #[test]
    fn engines_agree(source in "[ab.^$()|*+?\\[\\]{}0-2&\\\\wdb-]{0,12}", text in "[abé\r\n ]{0,8}", flags in 0i32..0x40) {
        if let Ok(regex) = Regex::new(&source, flags & !0x10) {
            let either = regex.find(text.as_bytes(), Charset::Utf8, STEPS_MAX).found;
            prop_assert_eq!(either, regex.find_backtracking(text.as_bytes(), Charset::Utf8, STEPS_MAX).found);
        }
    }

    #[test]
    fn anything_can_be_parsed(source in "\\PC{0,40}", flags in 0i32..0x200) {
        _ = Regex::new(&source, flags);
    }
}

#[test]
fn expressions_that_need_it_backtrack() {
    for (source, backtracks) in [("a+b", false), ("^(?:x|y)*$", false), ("(a)\\1", true), ("a(?!b)", true)] {
        assert_eq!(Regex::new(source, 0).unwrap().backtracks(), backtracks, "{source}");
    }
}
