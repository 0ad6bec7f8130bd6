//! A client's engine out of a pool: lent for as long as the client is there, or from the first
//! message outside of a transaction to the end of that.

use crate::engine::{
    Canceller, CopyPiece, Done, Engine, Failure, Kind, Opener, Outcome, Settings, Statement, Values,
};
use crate::observed::{Disclosed, Looks, Way};
use crate::pool::{lock, Engines, Item, Lender, Lent, Sharing, Text};
use crate::reply::{Column, Fields};
use crate::startup::Greeting;
use std::sync::{Arc, Mutex};

/// Lends engines to clients.
pub struct Pool<L: Lender>(Arc<Engines<L>>);

impl<L: Lender> Pool<L> {
    /// None is open at first.
    pub fn new(lender: L, sharing: Sharing) -> Self {
        Self(Arc::new(Engines::new(lender, sharing)))
    }
}

/// What a pool has: how many engines there are, are idle, and how many clients wait for one.
pub trait Pooled: Send + Sync {
    /// See there.
    fn counts(&self) -> (usize, usize, usize);
}

impl<L: Lender> Pooled for Engines<L> {
    fn counts(&self) -> (usize, usize, usize) {
        Self::counts(self)
    }
}

impl<L: Lender + 'static> Pool<L> {
    /// What it counts.
    pub fn pooled(&self) -> Arc<dyn Pooled> {
        Arc::clone(&self.0) as Arc<dyn Pooled>
    }
}

impl<L: Lender + 'static> Opener for Pool<L> {
    type Engine = Leased<L>;

    fn open(&self, greeting: &Greeting) -> Done<Leased<L>> {
        let mut leased = Leased {
            visitor: self.0.lender.visitor(greeting)?,
            engines: Arc::clone(&self.0),
            lease: None,
            home: None,
            last: None,
            settings: Settings::default(),
            stops: Arc::default(),
        };
        leased.item()?;
        leased.rest();
        Ok(leased)
    }
}

/// What stops a client's statement, wherever that is.
#[derive(Default)]
struct Stops(Mutex<Option<Arc<dyn Canceller>>>);

impl Canceller for Stops {
    fn cancel(&self) {
        // The lock is held, so that the engine is not given to another client meanwhile.
        if let Some(canceller) = &*lock(&self.0) {
            canceller.cancel();
        }
    }
}

impl Stops {
    fn set(&self, canceller: Option<Arc<dyn Canceller>>) {
        *lock(&self.0) = canceller;
    }
}

type Of<L> = <L as Lender>::Engine;

/// One client's.
pub struct Leased<L: Lender> {
    engines: Arc<Engines<L>>,
    visitor: <Of<L> as Lent>::Visitor,
    lease: Option<Box<Item<Of<L>>>>,
    /// The engine that it has to come back to.
    home: Option<u64>,
    /// The engine that it had last.
    last: Option<u64>,
    /// Those that were told last.
    settings: Settings,
    stops: Arc<Stops>,
}

/// How a statement is known: by the engine that the client has, or by its text.
pub enum Handle<H> {
    /// The client's only engine knows it.
    Own(Statement<H>),
    /// Each engine knows it by itself. What it looks like is known without one.
    Text(Arc<Text>, Looks),
}

impl<L: Lender + 'static> Leased<L> {
    /// The engine, which is waited for where there is none yet.
    fn item(&mut self) -> Done<&mut Item<Of<L>>> {
        if self.lease.is_none() {
            let stops = Arc::clone(&self.stops);
            let taken = self.engines.take(self.home, self.last, |waiting| {
                stops.set(Some(Arc::clone(waiting) as Arc<dyn Canceller>));
            });
            self.stops.set(None);
            let mut item = taken?;
            if let Err(failure) = item.engine.enter(&mut self.visitor) {
                self.engines.end(item);
                return Err(failure);
            }
            self.last = Some(item.number);
            self.stops.set(Some(item.engine.canceller()));
            self.lease = Some(item);
        }
        match &mut self.lease {
            Some(item) => Ok(item),
            None => Err(Failure::error("XX000", "a client without an engine")),
        }
    }

    fn engine(&mut self) -> Done<&mut Of<L>> {
        Ok(&mut self.item()?.engine)
    }

    fn by_transaction(&self) -> bool {
        self.engines.sharing.by_transaction
    }

    fn give_back(&mut self) -> Option<Box<Item<Of<L>>>> {
        let item = self.lease.take();
        self.stops.set(None);
        item
    }

    /// The statement on the engine that there is, which learns of it first if need be.
    fn known(
        &mut self,
        statement: &Statement<Handle<HandleOf<L>>>,
        text: &Arc<Text>,
    ) -> Done<(&mut Of<L>, &Statement<HandleOf<L>>)> {
        let item = self.item()?;
        if item.known(text).1.is_none() {
            let fresh = item.engine.prepare(&text.0, &text.1, "")?;
            require_same(statement, &fresh)?;
            item.learn(Arc::clone(text), fresh);
        }
        match item.known(text) {
            (engine, Some(statement)) => Ok((engine, statement)),
            _ => Err(Failure::error("XX000", "a statement that is not known")),
        }
    }
}

/// A statement that the client's only engine knows.
fn outer<H>(inner: Statement<H>) -> Statement<Handle<H>> {
    Statement {
        kind: inner.kind,
        parameters: inner.parameters.clone(),
        columns: inner.columns.clone(),
        deallocates: inner.deallocates.clone(),
        cursor: inner.cursor.clone(),
        handle: Handle::Own(inner),
    }
}

type HandleOf<L> = <Of<L> as Engine>::Handle;

/// A client that was told of types may rely on them.
fn require_same<A, B>(shown: &Statement<A>, fresh: &Statement<B>) -> Done<()> {
    let types = |columns: &Option<Vec<Column>>| {
        let all = columns.as_ref();
        all.map(|all| all.iter().map(|c| c.type_).collect::<Vec<_>>())
    };
    if shown.parameters == fresh.parameters && types(&shown.columns) == types(&fresh.columns) {
        return Ok(());
    }
    let message = "cached plan must not change result type";
    Err(Failure::error("0A000", message))
}

impl<L: Lender + 'static> Engine for Leased<L> {
    type Handle = Handle<HandleOf<L>>;

    fn settings(&mut self) -> Settings {
        if let Some(item) = &mut self.lease {
            self.settings = item.engine.settings();
        }
        Arc::clone(&self.settings)
    }

    fn split(&mut self, sql: &str) -> Done<Vec<(String, u32)>> {
        self.engine()?.split(sql)
    }

    fn prepare(&mut self, sql: &str, types: &[u32], name: &str) -> Done<Statement<Self::Handle>> {
        let by_transaction = self.by_transaction();
        let item = self.item()?;
        let inner = item.engine.prepare(sql, types, name)?;
        if !by_transaction {
            return Ok(outer(inner));
        }
        let text = Arc::new((sql.to_owned(), types.to_vec()));
        let shown = Statement {
            kind: inner.kind,
            parameters: inner.parameters.clone(),
            columns: inner.columns.clone(),
            deallocates: inner.deallocates.clone(),
            cursor: inner.cursor.clone(),
            handle: Handle::Text(Arc::clone(&text), item.engine.looks(&inner)),
        };
        item.learn(text, inner);
        Ok(shown)
    }

    fn named(&mut self, name: &str) -> Done<Option<Statement<Self::Handle>>> {
        if self.by_transaction() {
            return Ok(None);
        }
        Ok(self.engine()?.named(name)?.map(outer))
    }

    fn close_named(&mut self, name: &str) -> Done<()> {
        if self.by_transaction() {
            return Ok(());
        }
        self.engine()?.close_named(name)
    }

    fn describe(&mut self, statement: &Statement<Self::Handle>) -> Done<Option<Vec<Column>>> {
        match &statement.handle {
            Handle::Own(inner) => self.engine()?.describe(inner),
            Handle::Text(text, _) => {
                let (engine, inner) = self.known(statement, text)?;
                engine.describe(inner)
            }
        }
    }

    fn cursor(&mut self, name: &str) -> Done<Option<Vec<Column>>> {
        self.engine()?.cursor(name)
    }

    fn run(
        &mut self,
        statement: &Statement<Self::Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome> {
        match &statement.handle {
            Handle::Own(inner) => self.engine()?.run(inner, values, formats),
            Handle::Text(..) if statement.kind == Kind::Empty => Ok(Outcome::Empty),
            Handle::Text(text, _) => {
                let (engine, inner) = self.known(statement, text)?;
                engine.run(inner, values, formats)
            }
        }
    }

    fn copy_in(&mut self, data: &[u8]) -> Done<()> {
        self.engine()?.copy_in(data)
    }

    fn copy_end(&mut self, reason: Option<&str>) -> Done<String> {
        self.engine()?.copy_end(reason)
    }

    fn copy_out(&mut self) -> Done<Option<CopyPiece>> {
        self.engine()?.copy_out()
    }

    fn begin(&mut self) -> Done<()> {
        self.engine()?.begin()
    }

    fn end(&mut self, commit: bool) -> Done<()> {
        self.engine()?.end(commit)
    }

    fn fail(&mut self) {
        if let Some(item) = &mut self.lease {
            item.engine.fail();
        }
    }

    fn status(&mut self) -> u8 {
        let lease = self.lease.as_mut();
        lease.map_or(b'I', |item| item.engine.status())
    }

    fn notices(&mut self) -> Vec<Fields> {
        let lease = self.lease.as_mut();
        lease.map_or_else(Vec::new, |item| item.engine.notices())
    }

    fn listens(&self) -> bool {
        self.lease.as_ref().is_some_and(|i| i.engine.listens())
    }

    fn notifications(&mut self) -> Done<Vec<(u32, String, String)>> {
        match &mut self.lease {
            Some(item) => item.engine.notifications(),
            None => Ok(Vec::new()),
        }
    }

    fn looks(&self, statement: &Statement<Self::Handle>) -> Looks {
        match (&statement.handle, &self.lease) {
            (Handle::Text(_, looks), _) => looks.clone(),
            (Handle::Own(inner), Some(item)) => item.engine.looks(inner),
            (Handle::Own(_), None) => Looks::default(),
        }
    }

    fn way(&self) -> Way {
        let lease = self.lease.as_ref();
        lease.map_or_else(Way::default, |item| item.engine.way())
    }

    fn shows(&mut self) -> bool {
        let lease = self.lease.as_mut();
        lease.is_some_and(|item| item.engine.shows())
    }

    fn disclosed(&mut self) -> Disclosed {
        let lease = self.lease.as_mut();
        lease.map_or_else(Disclosed::default, |item| item.engine.disclosed())
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(&self.stops) as Arc<dyn Canceller>
    }

    fn rest(&mut self) {
        if !self.by_transaction() || self.status() != b'I' {
            return;
        }
        self.settings();
        let Some(mut item) = self.give_back() else {
            return;
        };
        match item.engine.leave(&mut self.visitor) {
            Ok(stays) => {
                self.home = stays.then_some(item.number);
                self.engines.give(item);
            }
            Err(_) => self.engines.end(item),
        }
    }
}

impl<L: Lender> Drop for Leased<L> {
    fn drop(&mut self) {
        self.stops.set(None);
        let Some(mut item) = self.lease.take() else {
            return;
        };
        let keeps = self.engines.sharing.size > 0;
        // A panic within the engine would be followed by another one here.
        if keeps && !std::thread::panicking() && item.engine.reset() {
            self.engines.give(item);
        } else {
            self.engines.end(item);
        }
    }
}
