//! Texts that clients of the front door send again and again without a name: what begins and ends
//! transactions, and what is run within one.

use crate::proxy_statements::Handle;
use louver_proxy::{Kind, Statement};
use std::collections::HashMap;

const MOST: usize = 256;
const LONGEST: usize = 8_192;
/// Texts that are known to be cut into nothing but one statement are as short as `COMMIT`.
const LONGEST_PART: usize = 64;

/// One session's.
#[derive(Default)]
pub(crate) struct Texts {
    generation: u64,
    prepared: HashMap<(String, Vec<u32>), Statement<Handle>>,
    parts: HashMap<String, Vec<(String, u32)>>,
}

impl Texts {
    /// The statement of a text, which means the same still where a transaction begins or ends, and
    /// within one.
    pub(crate) fn find(
        &mut self,
        sql: &str,
        types: &[u32],
        generation: u64,
        state: u8,
    ) -> Option<Statement<Handle>> {
        if self.generation != generation {
            self.prepared.clear();
            self.generation = generation;
        }
        let known = self.prepared.get(&(sql.to_owned(), types.to_vec()))?;
        let holds = match (known.kind, state) {
            (Kind::Controls, _) | (Kind::Begins, b'I' | b'T') => true,
            (kind, state) => kind == Kind::Other && state == b'T',
        };
        holds.then(|| known.clone())
    }

    /// A text was prepared, `within` a transaction or outside of any.
    pub(crate) fn add(
        &mut self,
        sql: &str,
        types: &[u32],
        generation: u64,
        statement: &Statement<Handle>,
        within: bool,
    ) {
        let fits = match statement.kind {
            Kind::Begins | Kind::Controls => true,
            Kind::Other => within,
            _ => false,
        };
        if !fits || sql.len() > LONGEST {
            return;
        }
        if self.generation != generation || self.prepared.len() >= MOST {
            self.prepared.clear();
            self.generation = generation;
        }
        let key = (sql.to_owned(), types.to_vec());
        self.prepared.insert(key, statement.clone());
    }

    /// What a text is cut into.
    pub(crate) fn split(&self, sql: &str) -> Option<Vec<(String, u32)>> {
        self.parts.get(sql).cloned()
    }

    /// A text was cut.
    pub(crate) fn add_split(&mut self, sql: &str, parts: &[(String, u32)]) {
        let is_plain = |byte: u8| byte.is_ascii_alphabetic() || b" ;".contains(&byte);
        let fits = sql.len() <= LONGEST_PART && sql.bytes().all(is_plain) && parts.len() == 1;
        if fits && self.parts.len() < MOST {
            self.parts.insert(sql.to_owned(), parts.to_vec());
        }
    }

    /// Another client comes, which may not know what these show.
    pub(crate) fn clear(&mut self) {
        self.prepared.retain(|_, known| known.kind != Kind::Other);
    }
}
