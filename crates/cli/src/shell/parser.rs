//! Parses tokens to commands: `name value, value, NAME => value`, with or without parentheses.
//!
//! A command ends at a semicolon or at the end of its line, unless a bracket, comma or arrow is
//! open there. Braces around the last options are optional; these options form one hash.

use super::error::{Position, SyntaxError};
use super::lexer::{Token, TokenKind, tokens};
use super::value::{Hash, Value};

/// Maximum nesting of brackets, which bounds the depth of recursion.
const DEPTH_MAX: usize = 32;

/// One command as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) name: String,
    pub(crate) at: Position,
    pub(crate) values: Vec<Value>,
}

/// Parses all commands of `source`. `start` is its position in the user's input.
///
/// # Errors
/// [`SyntaxError`]; it is `incomplete` if the source ends while something is open.
pub(crate) fn parse(source: &str, start: Position) -> Result<Vec<Statement>, SyntaxError> {
    let tokens = tokens(source, start)?;
    let end = source.chars().fold(start, Position::after);
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), end, depth: 0 };
    let mut statements = Vec::new();
    while parser.skip_ends() {
        statements.push(parser.statement()?);
    }
    Ok(statements)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    end: Position,
    depth: usize,
}

impl Parser {
    fn peek(&mut self) -> Option<&TokenKind> {
        self.tokens.peek().map(|token| &token.kind)
    }

    fn at(&mut self) -> Position {
        self.tokens.peek().map_or(self.end, |token| token.at)
    }

    /// Takes the next token if it is `kind`.
    fn take(&mut self, kind: &TokenKind) -> bool {
        self.tokens.next_if(|token| token.kind == *kind).is_some()
    }

    fn skip_newlines(&mut self) {
        while self.take(&TokenKind::Newline) {}
    }

    /// Skips the ends of commands. Returns whether another command follows.
    fn skip_ends(&mut self) -> bool {
        while self.take(&TokenKind::Newline) || self.take(&TokenKind::Semicolon) {}
        self.peek().is_some()
    }

    fn error<T>(&mut self, at: Position, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { at, message: message.into(), incomplete: false })
    }

    /// An error: the next token is not `wanted`.
    fn unexpected<T>(&mut self, wanted: &str) -> Result<T, SyntaxError> {
        let at = self.at();
        match self.peek().map(described) {
            Some(found) => self.error(at, format!("expected {wanted}, found {found}")),
            None => Err(SyntaxError {
                at,
                message: format!("expected {wanted}, found the end"),
                incomplete: true,
            }),
        }
    }

    fn statement(&mut self) -> Result<Statement, SyntaxError> {
        let at = self.at();
        let name = match self.tokens.next_if(|token| matches!(token.kind, TokenKind::Word(_))) {
            Some(Token { kind: TokenKind::Word(name), .. }) => name,
            _ => return self.unexpected("a command"),
        };
        let values = match self.take(&TokenKind::ParenOpen) {
            true => self.values_up_to(&TokenKind::ParenClose, "')'")?,
            false if self.at_end() => Vec::new(),
            false => self.values()?,
        };
        match self.at_end() {
            true => Ok(Statement { name, at, values }),
            false => self.unexpected("',' or the end of the command"),
        }
    }

    fn at_end(&mut self) -> bool {
        matches!(self.peek(), None | Some(TokenKind::Newline | TokenKind::Semicolon))
    }

    /// Parses one or more values, separated by commas. Pairs at the end form one hash.
    fn values(&mut self) -> Result<Vec<Value>, SyntaxError> {
        let mut values = Vec::new();
        let mut options = Hash::new();
        loop {
            let at = self.at();
            let value = self.value()?;
            if self.take(&TokenKind::Arrow) {
                options.push((value, self.value()?));
            } else if options.is_empty() {
                values.push(value);
            } else {
                return self.error(at, "value after options; options come last");
            }
            if !self.take(&TokenKind::Comma) {
                break;
            }
        }
        if !options.is_empty() {
            values.push(Value::Hash(options));
        }
        Ok(values)
    }

    /// Parses values up to and including a closing bracket.
    fn values_up_to(&mut self, close: &TokenKind, shown: &str) -> Result<Vec<Value>, SyntaxError> {
        self.skip_newlines();
        let mut values = Vec::new();
        if self.peek() != Some(close) {
            values = self.values()?;
            self.skip_newlines();
        }
        match self.take(close) {
            true => Ok(values),
            false => self.unexpected(&format!("',' or {shown}")),
        }
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        self.skip_newlines();
        let at = self.at();
        let starts_value = |token: &Token| {
            use TokenKind::{BraceOpen, BracketOpen, Constant, Float, Integer, Text, Word};
            matches!(
                token.kind,
                Text(_) | Integer(_) | Float(_) | Constant(_) | Word(_) | BracketOpen | BraceOpen
            )
        };
        let Some(token) = self.tokens.next_if(starts_value) else { return self.unexpected("a value") };
        match token.kind {
            TokenKind::Text(text) => Ok(Value::Text(text)),
            TokenKind::Integer(number) => Ok(Value::Integer(number)),
            TokenKind::Float(number) => Ok(Value::Float(number)),
            TokenKind::Constant(name) => Ok(Value::Constant(name)),
            TokenKind::BracketOpen => self
                .nested(at, |parser| parser.values_up_to(&TokenKind::BracketClose, "']'").map(Value::Array)),
            TokenKind::BraceOpen => self.nested(at, |parser| parser.hash().map(Value::Hash)),
            TokenKind::Word(word) => match word.as_str() {
                "true" => Ok(Value::Boolean(true)),
                "false" => Ok(Value::Boolean(false)),
                "nil" => Ok(Value::Nil),
                _ => self.error(at, format!("unknown word {word}; text is written in quotes: '{word}'")),
            },
            _ => unreachable!("only tokens that start a value are taken"),
        }
    }

    fn nested(
        &mut self,
        at: Position,
        parse: impl FnOnce(&mut Parser) -> Result<Value, SyntaxError>,
    ) -> Result<Value, SyntaxError> {
        if self.depth == DEPTH_MAX {
            return self.error(at, format!("brackets are nested more than {DEPTH_MAX} levels deep"));
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    /// Parses pairs up to and including the closing brace.
    fn hash(&mut self) -> Result<Hash, SyntaxError> {
        let mut pairs = Hash::new();
        loop {
            self.skip_newlines();
            if self.take(&TokenKind::BraceClose) {
                return Ok(pairs);
            }
            let name = self.value()?;
            if !self.take(&TokenKind::Arrow) {
                return self.unexpected("'=>'");
            }
            pairs.push((name, self.value()?));
            self.skip_newlines();
            if !self.take(&TokenKind::Comma) && self.peek() != Some(&TokenKind::BraceClose) {
                return self.unexpected("',' or '}'");
            }
        }
    }
}

fn described(kind: &TokenKind) -> String {
    let sign = match kind {
        TokenKind::Word(name) | TokenKind::Constant(name) => name,
        TokenKind::Text(text) => return super::text::quoted(text),
        TokenKind::Integer(number) => return number.to_string(),
        TokenKind::Float(number) => return number.to_string(),
        TokenKind::Newline => return "the end of the line".to_string(),
        TokenKind::Comma => "','",
        TokenKind::Arrow => "'=>'",
        TokenKind::BraceOpen => "'{'",
        TokenKind::BraceClose => "'}'",
        TokenKind::BracketOpen => "'['",
        TokenKind::BracketClose => "']'",
        TokenKind::ParenOpen => "'('",
        TokenKind::ParenClose => "')'",
        TokenKind::Semicolon => "';'",
    };
    sign.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of `source` in a normalized form.
    fn shown(source: &str) -> String {
        let statements = parse(source, Position::START).unwrap_or_else(|error| panic!("{source}: {error}"));
        let show = |statement: &Statement| {
            let values: Vec<String> = statement.values.iter().map(Value::to_string).collect();
            format!("{} {}", statement.name, values.join(", ")).trim_end().to_string()
        };
        statements.iter().map(show).collect::<Vec<_>>().join("; ")
    }

    fn refused(source: &str) -> String {
        match parse(source, Position::START) {
            Err(error) => format!("{}{error}", if error.incomplete { "incomplete: " } else { "" }),
            Ok(statements) => panic!("{source}: {statements:?}"),
        }
    }

    #[test]
    fn commands_end_at_semicolons_and_lines() {
        assert_eq!(shown(""), "");
        assert_eq!(shown(" ;\n; # nothing"), "");
        assert_eq!(shown("list; status\nversion"), "list; status; version");
    }

    #[test]
    fn options_at_the_end_are_one_hash() {
        assert_eq!(
            shown("create 't', 'f', SPLITS => ['a', 'b'], OWNER => 'me'"),
            "create 't', 'f', {SPLITS => ['a', 'b'], OWNER => 'me'}"
        );
        assert_eq!(
            shown("create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => []"),
            "create 't', {NAME => 'f', VERSIONS => 3}, {SPLITS => []}"
        );
    }

    #[test]
    fn all_kinds_of_values() {
        assert_eq!(
            shown("x 'a', \"b\\x00\", 1, -2.5, TRUE, true, false, nil, {}, {'k' => [1, {A => B}]}"),
            "x 'a', \"b\\x00\", 1, -2.5, TRUE, true, false, nil, {}, {'k' => [1, {A => B}]}"
        );
        assert_eq!(shown("put('t', 'r', 'f:q', 'v')"), "put 't', 'r', 'f:q', 'v'");
        assert_eq!(shown("list()"), "list");
        assert_eq!(shown("x {A => 1,}"), "x {A => 1}");
    }

    #[test]
    fn open_brackets_and_quotes_continue_on_the_next_line() {
        assert_eq!(
            shown("create 't',\n {NAME =>\n 'f',\n VERSIONS => 1\n},\n\n SPLITS => [\n'a',\n'b'\n]\nlist"),
            "create 't', {NAME => 'f', VERSIONS => 1}, {SPLITS => ['a', 'b']}; list"
        );
        for open in
            ["put 't',", "x {", "x {A", "x {A =>", "x {A => 1", "x [1", "x A =>", "x(", "x('a'", "x 'a"]
        {
            assert!(refused(open).starts_with("incomplete: "), "{open}: {}", refused(open));
        }
    }

    #[test]
    fn errors_have_a_position_and_a_reason() {
        let check = |source: &str, expected: &str| assert_eq!(refused(source), expected);
        check("'t'", "line 1, column 1: expected a command, found 't'");
        check("put t, 'r'", "line 1, column 5: unknown word t; text is written in quotes: 't'");
        check("put 't' 'r'", "line 1, column 9: expected ',' or the end of the command, found 'r'");
        check("list\nput 't', 'r')", "line 2, column 13: expected ',' or the end of the command, found ')'");
        check("x A => 1, 'b'", "line 1, column 11: value after options; options come last");
        check("x {1 2}", "line 1, column 6: expected '=>', found 2");
        check("x {A => 1 B => 2}", "line 1, column 11: expected ',' or '}', found B");
        check("x ['a';]", "line 1, column 7: expected ',' or ']', found ';'");
        check("x 1,;", "line 1, column 5: expected a value, found ';'");
        check(
            "t = 1",
            "line 1, column 3: unexpected '='; options are written NAME => value, and there are no variables",
        );
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = |depth: usize| format!("x {}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(parse(&deep(DEPTH_MAX), Position::START).unwrap().len(), 1);
        assert!(refused(&deep(DEPTH_MAX + 1)).contains("levels deep"));
        assert!(refused(&deep(100_000)).contains("levels deep"));
    }

    #[test]
    fn no_input_causes_a_panic() {
        let pieces = [
            "put", "'t'", "\"\\x0", "\"", "'", ",", "=>", "{", "}", "[", "]", "(", ")", ";", "\n", "A", "-1",
            "0x", "1e9", ".", "\\", "#", "\u{e9}", "\0", " ",
        ];
        let random = base::testing::SeededRandom::new(7);
        let pick = |below: usize| {
            usize::try_from(base::env::Random::next_u64(&random) % below as u64).expect("small")
        };
        for _ in 0..20_000 {
            let source: String = (0..pick(14)).map(|_| pieces[pick(pieces.len())]).collect();
            if let Ok(statements) = parse(&source, Position::START) {
                assert!(statements.iter().all(|statement| !statement.name.is_empty()), "{source:?}");
            }
        }
    }
}
