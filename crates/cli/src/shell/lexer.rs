//! Tokens of the shell's language, which is the subset of Ruby that HBase's users write.
//!
//! ```text
//! 'text'   only \\ and \' are escapes          123  -5  1_000  0xff  1.5  1e3   numbers
//! "text"   \n \t .. \xHH \NNN \uXXXX           word  Constant                   names
//! , => { } [ ] ( ) ;  and the end of a line    # comment up to the end of the line
//! ```
//!
//! Text is bytes: `"\xff"` is one byte that is not UTF-8. Each token has its position.

use super::error::{Position, SyntaxError};

/// A token and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) at: Position,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name that begins with a lowercase letter: a command, `true`, `false`, `nil`.
    Word(String),
    /// A name that begins with an uppercase letter.
    Constant(String),
    /// Text without its quotes, with escapes replaced.
    Text(Vec<u8>),
    Integer(i64),
    Float(f64),
    Comma,
    /// `=>`
    Arrow,
    BraceOpen,
    BraceClose,
    BracketOpen,
    BracketClose,
    ParenOpen,
    ParenClose,
    Semicolon,
    /// The end of a line. It ends a command unless a bracket, comma or arrow is open.
    Newline,
}

/// Splits `source` into tokens. `start` is its position in the user's input.
///
/// # Errors
/// [`SyntaxError`]; it is `incomplete` if the source ends within quotes.
pub(crate) fn tokens(source: &str, start: Position) -> Result<Vec<Token>, SyntaxError> {
    let mut lexer = Lexer { rest: source, at: start };
    let mut found = Vec::new();
    while let Some(token) = lexer.next()? {
        found.push(token);
    }
    Ok(found)
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<Token>, SyntaxError> {
        self.skip_blank();
        let at = self.at;
        let Some(first) = self.peek() else { return Ok(None) };
        let kind = match first {
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '0'..='9' => self.number()?,
            '-' | '+' if self.second().is_some_and(|next| next.is_ascii_digit()) => self.number()?,
            '=' if self.second() == Some('>') => self.punctuation(2, TokenKind::Arrow),
            _ if first == '_' || first.is_alphabetic() => self.name(),
            _ => match single(first) {
                Some(kind) => self.punctuation(1, kind),
                None => return Err(self.error_at(at, unexpected(first))),
            },
        };
        Ok(Some(Token { kind, at }))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        self.at = self.at.after(next);
        Some(next)
    }

    fn error_at(&self, at: Position, message: impl Into<String>) -> SyntaxError {
        SyntaxError { at, message: message.into(), incomplete: false }
    }

    /// Skips spaces, comments, and a newline after a backslash.
    fn skip_blank(&mut self) {
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\r' => {}
                '#' => {
                    while self.peek().is_some_and(|next| next != '\n') {
                        self.bump();
                    }
                    continue;
                }
                '\\' if self.second() == Some('\n') => {
                    self.bump();
                }
                _ => return,
            }
            self.bump();
        }
    }

    fn punctuation(&mut self, length: usize, kind: TokenKind) -> TokenKind {
        for _ in 0..length {
            self.bump();
        }
        kind
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.peek().filter(|next| belongs(*next)) {
            taken.push(next);
            self.bump();
        }
        taken
    }

    fn name(&mut self) -> TokenKind {
        let mut name = self.take_while(|next| next == '_' || next.is_alphanumeric());
        if let Some(mark) = self.peek().filter(|next| matches!(next, '?' | '!')) {
            name.push(mark);
            self.bump();
        }
        match name.starts_with(char::is_uppercase) {
            true => TokenKind::Constant(name),
            false => TokenKind::Word(name),
        }
    }

    fn number(&mut self) -> Result<TokenKind, SyntaxError> {
        let at = self.at;
        let mut text = String::new();
        if let Some(sign) = self.peek().filter(|next| matches!(next, '+' | '-')) {
            text.push(sign);
            self.bump();
        }
        // An exponent's sign belongs to the number: `1e-3`.
        while let Some(next) = self.peek() {
            let belongs = next.is_ascii_alphanumeric()
                || next == '_'
                || (next == '.' && self.second().is_some_and(|digit| digit.is_ascii_digit()))
                || (matches!(next, '+' | '-') && text.ends_with(['e', 'E']) && !is_hex(&text));
            if !belongs {
                break;
            }
            text.push(next);
            self.bump();
        }
        parse_number(&text).map_err(|message| self.error_at(at, message))
    }

    fn single_quoted(&mut self) -> Result<TokenKind, SyntaxError> {
        let at = self.at;
        self.bump();
        let mut text = Vec::new();
        loop {
            match self.bump() {
                None => return Err(self.unclosed(at, '\'')),
                Some('\'') => return Ok(TokenKind::Text(text)),
                Some('\\') if matches!(self.peek(), Some('\\' | '\'')) => {
                    push(&mut text, self.bump().expect("the peeked character"));
                }
                Some(next) => push(&mut text, next),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<TokenKind, SyntaxError> {
        let at = self.at;
        self.bump();
        let mut text = Vec::new();
        loop {
            let here = self.at;
            match self.bump() {
                None => return Err(self.unclosed(at, '"')),
                Some('"') => return Ok(TokenKind::Text(text)),
                Some('\\') => self.escape(at, here, &mut text)?,
                Some('#') if self.peek() == Some('{') => {
                    return Err(
                        self.error_at(here, "#{..} within text is not supported; write \\# for a literal #")
                    );
                }
                Some(next) => push(&mut text, next),
            }
        }
    }

    /// Parses an escape within double quotes, after the backslash.
    fn escape(&mut self, quote: Position, here: Position, text: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(next) = self.bump() else { return Err(self.unclosed(quote, '"')) };
        match next {
            'x' => match self.digits(16, 2) {
                Some(byte) => text.push(u8::try_from(byte).expect("two hexadecimal digits")),
                None => {
                    return Err(
                        self.error_at(here, "\\x requires one or two hexadecimal digits, as in \\x0A")
                    );
                }
            },
            'u' => push(text, self.unicode(here)?),
            '0'..='7' => {
                let first = next.to_digit(8).expect("an octal digit");
                let more = self.octal_rest(first);
                // As in Ruby: \777 exceeds a byte, so its low byte is used.
                text.push((more & 0xff) as u8);
            }
            '\n' => {}
            _ => push(text, named_escape(next)),
        }
        Ok(())
    }

    fn octal_rest(&mut self, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            value = value * 8 + digit;
            self.bump();
        }
        value
    }

    fn unicode(&mut self, here: Position) -> Result<char, SyntaxError> {
        let in_braces = self.peek() == Some('{');
        if in_braces {
            self.bump();
        }
        let code = self.digits(16, if in_braces { 6 } else { 4 });
        if in_braces && self.bump() != Some('}') {
            return Err(self.error_at(here, "\\u{ requires up to six hexadecimal digits and }"));
        }
        let found = code.and_then(char::from_u32);
        found.ok_or_else(|| self.error_at(here, "\\u requires the code point of a character, as in \\u00e9"))
    }

    /// Parses up to `max` digits; `None` if there is none.
    fn digits(&mut self, radix: u32, max: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..max {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0) * radix + digit);
            self.bump();
        }
        value
    }

    fn unclosed(&self, at: Position, quote: char) -> SyntaxError {
        SyntaxError { at, message: format!("text has no closing {quote}"), incomplete: true }
    }
}

fn single(sign: char) -> Option<TokenKind> {
    Some(match sign {
        ',' => TokenKind::Comma,
        '{' => TokenKind::BraceOpen,
        '}' => TokenKind::BraceClose,
        '[' => TokenKind::BracketOpen,
        ']' => TokenKind::BracketClose,
        '(' => TokenKind::ParenOpen,
        ')' => TokenKind::ParenClose,
        ';' => TokenKind::Semicolon,
        '\n' => TokenKind::Newline,
        _ => return None,
    })
}

fn unexpected(sign: char) -> String {
    match sign {
        '=' => "unexpected '='; options are written NAME => value, and there are no variables".to_string(),
        '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {
            format!("unexpected {sign}; text is written in ' or \"")
        }
        _ => format!("unexpected {:?}", sign.to_string()),
    }
}

fn named_escape(letter: char) -> char {
    match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'e' => '\x1b',
        'f' => '\x0c',
        'v' => '\x0b',
        's' => ' ',
        itself => itself,
    }
}

fn push(text: &mut Vec<u8>, next: char) {
    text.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
}

fn is_hex(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).starts_with("0x")
}

fn parse_number(text: &str) -> Result<TokenKind, String> {
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.trim_start_matches('+')),
    };
    let integer = match digits.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|digit: char| digit.is_ascii_hexdigit()) => {
            Some(i64::from_str_radix(&format!("{sign}{hex}"), 16))
        }
        _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(format!("{sign}{digits}").parse()),
        _ => None,
    };
    match integer {
        Some(Ok(number)) => Ok(TokenKind::Integer(number)),
        Some(Err(error)) if is_hex(text) && !too_large(&error) => Err(format!("{text} is not a number")),
        Some(Err(_)) => Err(format!("{text} is out of range; numbers have 64 bits")),
        None => match plain.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(TokenKind::Float(number)),
            Ok(_) => Err(format!("{text} is out of range")),
            Err(_) => Err(format!("{text} is not a number; text is written in quotes")),
        },
    }
}

fn too_large(error: &std::num::ParseIntError) -> bool {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    matches!(error.kind(), PosOverflow | NegOverflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        tokens(source, Position::START).unwrap().into_iter().map(|token| token.kind).collect()
    }

    fn text(source: &str) -> Vec<u8> {
        match kinds(source).as_slice() {
            [TokenKind::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn refused(source: &str) -> SyntaxError {
        tokens(source, Position::START).unwrap_err()
    }

    #[test]
    fn names_and_punctuation() {
        use TokenKind::*;
        assert_eq!(
            kinds("scan 't', {LIMIT => -5}; x?\n[1_000]"),
            [
                Word("scan".into()),
                Text(b"t".to_vec()),
                Comma,
                BraceOpen,
                Constant("LIMIT".into()),
                Arrow,
                Integer(-5),
                BraceClose,
                Semicolon,
                Word("x?".into()),
                Newline,
                BracketOpen,
                Integer(1000),
                BracketClose,
            ]
        );
    }

    #[test]
    fn single_quotes_have_two_escapes() {
        assert_eq!(text(r"'a\'b\\c\n\x00'"), br"a'b\c\n\x00");
        assert_eq!(text("'\u{e9}'"), "\u{e9}".as_bytes());
    }

    #[test]
    fn double_quotes_have_ruby_escapes() {
        assert_eq!(text(r#""\x00\xfF\x7z\n\"\\\e\s\q""#), b"\x00\xff\x07z\n\"\\\x1b q");
        assert_eq!(text(r#""\101\0\377\u00e9\u{1F40B}\#{x}""#), b"A\0\xff\xc3\xa9\xf0\x9f\x90\x8b#{x}");
    }

    #[test]
    fn numbers() {
        assert_eq!(kinds("0xff -0x10 1.5 1e3 2e-1"), {
            use TokenKind::*;
            [Integer(255), Integer(-16), Float(1.5), Float(1000.0), Float(0.2)]
        });
        assert_eq!(kinds("9223372036854775807"), [TokenKind::Integer(i64::MAX)]);
        assert_eq!(kinds("-9223372036854775808"), [TokenKind::Integer(i64::MIN)]);
        assert!(refused("9223372036854775808").message.contains("64 bits"));
        assert!(refused("0xfffffffffffffffff").message.contains("64 bits"));
        for wrong in ["12ab", "0xfg", "0x", "1e", "0x-5", "1_2_x"] {
            assert!(
                refused(wrong).message.contains("not a number"),
                "{wrong}: {:?}",
                tokens(wrong, Position::START)
            );
        }
    }

    #[test]
    fn comments_and_joined_lines_are_blank() {
        use TokenKind::*;
        assert_eq!(
            kinds("a # 'b\nc \\\n d"),
            [Word("a".into()), Newline, Word("c".into()), Word("d".into())]
        );
    }

    #[test]
    fn errors_have_a_position() {
        let error = refused("put 't',\n  \u{e9} @");
        assert_eq!((error.at.line, error.at.column), (2, 5));
        assert!(!error.incomplete);
        let error = refused("\nput 't");
        assert_eq!((error.at.line, error.at.column, error.incomplete), (2, 5, true));
        assert!(refused(r#""abc\"#).incomplete);
        assert!(refused("\"#{x}\"").message.contains("not supported"));
        assert!(refused(r#""\xg""#).message.contains("hexadecimal"));
        assert!(refused(r#""\ud800""#).message.contains("character"));
        assert!(refused(r#""\u{41""#).message.contains('}'));
    }
}
