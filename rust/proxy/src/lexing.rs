//! Tokens of a statement's text, as PostgreSQL's own scanner cuts them, of a small part of its
//! language: a text with anything else in it has none.

const LONGEST: usize = 8_192;
const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`";
/// An operator with one of these may end with a sign.
const SPECIAL: &[u8] = b"~!@#%^&|`";
const COMPARISONS: [&str; 7] = ["=", "<", ">", "<=", ">=", "<>", "!="];

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string in quotes, without escapes.
    Text,
    /// A string with `E` before it, whose only escapes are those of quotes and backslashes.
    Escaped,
    /// Digits, with a point and an exponent or without.
    Number,
    /// See [`COMPARISONS`].
    Comparison,
    /// A plus or a minus.
    Sign,
    /// Any other operator.
    Operator,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `::`
    Cast,
    /// A point or a bracket.
    Other,
}

/// A part of a text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn text<'a>(&self, sql: &'a str) -> &'a str {
        sql.get(self.start..self.end).unwrap_or_default()
    }

    /// A word in upper case; of names and strings in quotes no more than their kind.
    pub(crate) fn keyword(&self, sql: &str) -> String {
        match self.kind {
            Kind::Quoted | Kind::Text | Kind::Escaped => "'".to_owned(),
            _ => self.text(sql).to_ascii_uppercase(),
        }
    }
}

/// The tokens of a text of one statement, which may end with a semicolon; None where there is
/// anything that is not known here: comments, escapes, parameters, more statements.
pub(crate) fn tokens(sql: &str) -> Option<Vec<Token>> {
    (sql.len() <= LONGEST).then_some(())?;
    let mut scanner = Scanner {
        bytes: sql.as_bytes(),
        at: 0,
        tokens: Vec::new(),
    };
    while scanner.next()? {}
    // Two strings may be parts of one.
    let is_text = |token: &Token| matches!(token.kind, Kind::Text | Kind::Escaped);
    let mut pairs = scanner.tokens.windows(2);
    (!pairs.any(|pair| pair.iter().all(is_text))).then_some(scanner.tokens)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
}

fn is_blank(byte: u8) -> bool {
    b" \t\n\r\x0c".contains(&byte)
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

impl Scanner<'_> {
    /// Takes one token; false at the end.
    fn next(&mut self) -> Option<bool> {
        self.skip(is_blank);
        let start = self.at;
        let Some(byte) = self.byte(0) else {
            return Some(false);
        };
        match byte {
            b';' => {
                self.at += 1;
                self.skip(is_blank);
                return self.byte(0).is_none().then_some(false);
            }
            b'\'' => self.quoted(byte, Kind::Text)?,
            b'"' => self.quoted(byte, Kind::Quoted)?,
            b'(' => self.put(start, start + 1, Kind::Open),
            b')' => self.put(start, start + 1, Kind::Close),
            b',' => self.put(start, start + 1, Kind::Comma),
            b'[' | b']' => self.put(start, start + 1, Kind::Other),
            b':' if self.byte(1) == Some(b':') => self.put(start, start + 2, Kind::Cast),
            b'.' if !self.byte(1).is_some_and(is_digit) => {
                self.put(start, start + 1, Kind::Other);
            }
            b'.' | b'0'..=b'9' => self.number()?,
            _ if is_letter(byte) => self.word()?,
            _ if OPERATORS.contains(&byte) => self.operator()?,
            _ => return None,
        }
        Some(true)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&is_part) {
            self.at += 1;
        }
    }

    fn put(&mut self, start: usize, end: usize, kind: Kind) {
        self.tokens.push(Token { kind, start, end });
        self.at = end;
    }

    /// What ends with the quote that it began with; a doubled one is part of it.
    fn quoted(&mut self, quote: u8, kind: Kind) -> Option<()> {
        let start = self.at;
        self.at += 1;
        loop {
            self.skip(|byte| byte != quote);
            self.byte(0)?;
            self.at += 1;
            if self.byte(0) != Some(quote) {
                break;
            }
            self.at += 1;
        }
        self.put(start, self.at, kind);
        Some(())
    }

    /// What stands between single quotes, behind an E that has a place already.
    fn escaped(&mut self, start: usize) -> Option<()> {
        self.at += 1;
        loop {
            self.skip(|byte| byte != b'\'' && byte != b'\\');
            let pair = (self.byte(0)?, self.byte(1));
            self.at += 1;
            match pair {
                (b'\'', Some(b'\'')) | (b'\\', Some(b'\'' | b'\\')) => self.at += 1,
                (b'\'', _) => break,
                _ => return None,
            }
        }
        self.put(start, self.at, Kind::Escaped);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.skip(is_digit);
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.skip(is_digit);
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.byte(0).filter(|&byte| is_digit(byte))?;
            self.skip(is_digit);
        }
        let joins = |byte: u8| is_letter(byte) || is_digit(byte) || byte == b'.';
        (!self.byte(0).is_some_and(joins)).then_some(())?;
        self.put(start, self.at, Kind::Number);
        Some(())
    }

    /// A word; None where it is the prefix of a string or of a name.
    fn word(&mut self) -> Option<()> {
        let start = self.at;
        self.skip(|byte| is_letter(byte) || is_digit(byte));
        if self.byte(0) == Some(b'\'')
            && matches!(self.bytes.get(start..self.at), Some(b"E" | b"e"))
        {
            return self.escaped(start);
        }
        let is_prefix = match self.byte(0) {
            Some(b'\'' | b'"' | b'$') => true,
            Some(b'&') => matches!(self.byte(1), Some(b'\'' | b'"')),
            _ => false,
        };
        (!is_prefix).then_some(())?;
        self.put(start, self.at, Kind::Word);
        Some(())
    }

    fn operator(&mut self) -> Option<()> {
        let start = self.at;
        self.skip(|byte| OPERATORS.contains(&byte));
        let end = self.at;
        let run = std::str::from_utf8(self.bytes.get(start..end)?).ok()?;
        (!run.contains("--") && !run.contains("/*")).then_some(())?;
        let is_special = run.bytes().any(|byte| SPECIAL.contains(&byte));
        let shorter = run.trim_end_matches(['+', '-']);
        // As PostgreSQL's scanner has it: `=-` is two operators, and `@-` is one.
        if !is_special && !shorter.is_empty() && shorter.len() < run.len() {
            let middle = start + shorter.len();
            self.put(start, middle, kind_of(shorter));
            for sign in middle..end {
                self.put(sign, sign + 1, Kind::Sign);
            }
        } else {
            self.put(start, end, kind_of(run));
        }
        Some(())
    }
}

fn kind_of(operator: &str) -> Kind {
    match operator {
        "+" | "-" => Kind::Sign,
        _ if COMPARISONS.contains(&operator) => Kind::Comparison,
        _ => Kind::Operator,
    }
}
