//! What a client's statements do is written down before the client is told of it.

use crate::engine::{Engine, Failure, Statement};
use crate::observed::{self, Entry, Looks};
use crate::session::{Halt, Session, Step};
use std::collections::HashMap;

impl<E: Engine> Session<'_, E> {
    pub(crate) fn begins(&self, looks: Looks) -> Step<Entry> {
        Ok(self.observer.begin(looks, application(&self.settings))?)
    }

    /// Writes down what a statement did, before the client is told.
    pub(crate) fn ends<T>(
        &mut self,
        entry: &Entry,
        done: Step<T>,
        rows: impl Fn(&T) -> u64,
    ) -> Step<T> {
        let lost;
        let outcome = match &done {
            Ok(done) => Ok(rows(done)),
            Err(Halt::Failed(failure)) => Err(failure),
            Err(Halt::Lost(error)) => {
                lost = Failure::error(error.sqlstate(), "");
                Err(&lost)
            }
        };
        let (way, application) = (self.engine.way(), application(&self.settings));
        let disclosed = || self.engine.disclosed();
        match self
            .observer
            .end(entry, outcome, way, application, disclosed)
        {
            Ok(()) => done,
            Err(error) => Err(Failure::fatal(error.sqlstate(), error.to_string()).into()),
        }
    }

    /// Prepares a text; what cannot be is written down as well.
    pub(crate) fn prepared(
        &mut self,
        sql: &str,
        types: &[u32],
        name: &str,
    ) -> Step<Statement<E::Handle>> {
        let done = self.engine.prepare(sql, types, name);
        done.or_else(|failure| self.unprepared(failure))
    }

    pub(crate) fn unprepared<T>(&mut self, failure: Failure) -> Step<T> {
        let entry = self.begins(Looks::default())?;
        self.ends(&entry, Err(failure.into()), |_| 0)
    }

    /// A COPY has ended.
    pub(crate) fn copied(&mut self, done: Step<String>) -> Step<String> {
        match self.copying.take() {
            Some(entry) => self.ends(&entry, done, |tag| observed::counted(tag)),
            None => done,
        }
    }
}

fn application(settings: &HashMap<String, String>) -> &str {
    settings.get("application_name").map_or("", String::as_str)
}
