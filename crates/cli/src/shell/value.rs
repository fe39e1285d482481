//! Values of the shell's language: the arguments of commands.

use std::fmt;

use super::text::{binary, quoted};

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// The bytes of quoted text.
    Text(Vec<u8>),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Nil,
    /// A name in capitals. Its value is its own name.
    Constant(String),
    Array(Vec<Value>),
    Hash(Hash),
}

/// Pairs of name and value, in the order written.
pub(crate) type Hash = Vec<(Value, Value)>;

impl Value {
    /// The bytes of text, or of a value that Ruby would convert to text: a row may be written `1`.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string().into_bytes()),
            Value::Float(number) => Some(number.to_string().into_bytes()),
            Value::Boolean(flag) => Some(flag.to_string().into_bytes()),
            Value::Constant(name) => Some(name.clone().into_bytes()),
            Value::Nil | Value::Array(_) | Value::Hash(_) => None,
        }
    }

    /// The same as a string, if it is UTF-8.
    pub(crate) fn string(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// An integer, also in quotes.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            Value::Text(_) => self.string()?.parse().ok(),
            _ => None,
        }
    }

    /// `true` or `false`, also in quotes.
    pub(crate) fn boolean(&self) -> Option<bool> {
        match self {
            Value::Boolean(flag) => Some(*flag),
            Value::Text(_) => self.string()?.to_ascii_lowercase().parse().ok(),
            _ => None,
        }
    }

    /// The elements of an array. Any other value becomes an array of one element.
    pub(crate) fn into_elements(self) -> Vec<Value> {
        match self {
            Value::Array(elements) => elements,
            single => vec![single],
        }
    }

    /// Formats the value as Ruby's `inspect` does. HBase's shell uses that in messages and at its
    /// prompt.
    pub(crate) fn inspect(&self) -> String {
        match self {
            Value::Text(text) => format!("\"{}\"", binary(text).replace('"', "\\\"")),
            Value::Constant(name) => format!("\"{name}\""),
            Value::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(Value::inspect).collect();
                format!("[{}]", elements.join(", "))
            }
            Value::Hash(entries) => {
                let pair =
                    |(name, value): &(Value, Value)| format!("{}=>{}", name.inspect(), value.inspect());
                let entries: Vec<String> = entries.iter().map(pair).collect();
                format!("{{{}}}", entries.join(", "))
            }
            plain => plain.to_string(),
        }
    }

    /// The Ruby class of the value, for messages of HBase's shell.
    pub(crate) fn ruby_class(&self) -> &'static str {
        match self {
            Value::Text(_) | Value::Constant(_) => "String",
            Value::Integer(_) => "Integer",
            Value::Float(_) => "Float",
            Value::Boolean(true) => "TrueClass",
            Value::Boolean(false) => "FalseClass",
            Value::Nil => "NilClass",
            Value::Array(_) => "Array",
            Value::Hash(_) => "Hash",
        }
    }

    /// The kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Integer(_) => "a number",
            Value::Float(_) => "a fraction",
            Value::Boolean(_) => "true or false",
            Value::Nil => "nil",
            Value::Constant(_) => "a name",
            Value::Array(_) => "an array",
            Value::Hash(_) => "a hash",
        }
    }
}

impl fmt::Display for Value {
    /// Formats the value as the user would write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::Boolean(flag) => write!(f, "{flag}"),
            Value::Nil => f.write_str("nil"),
            Value::Constant(name) => f.write_str(name),
            Value::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(Value::to_string).collect();
                write!(f, "[{}]", elements.join(", "))
            }
            Value::Hash(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(name, value)| format!("{name} => {value}")).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}
