//! Engines that clients use one after the other: each for as long as it is there, or for a
//! transaction at a time (docs/decisions/0035).

use crate::engine::{Canceller, Done, Engine, Failure, Statement};
use crate::startup::Greeting;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An engine that can be lent to one client after the other.
pub trait Lent: Engine + Send {
    /// Who a client is, with the settings that it takes along from one engine to another.
    type Visitor: Send;

    /// Serves a client from now on, with its settings.
    ///
    /// # Errors
    /// Why it cannot; the engine is not used any more then.
    fn enter(&mut self, visitor: &mut Self::Visitor) -> Done<()>;

    /// Sees a client off, outside of a transaction, and keeps its settings for it: whether it has
    /// to come back to this very engine, since it knows numbers that others have not.
    ///
    /// # Errors
    /// Why no other client can be served; the engine is not used any more then.
    fn leave(&mut self, visitor: &mut Self::Visitor) -> Done<bool>;

    /// Clears away whatever a session has, as DISCARD ALL does, an open transaction first: whether
    /// another client can be served.
    fn reset(&mut self) -> bool;
}

/// Opens engines.
pub trait Lender: Send + Sync {
    /// What it opens.
    type Engine: Lent;

    /// The client that has said who it is.
    ///
    /// # Errors
    /// Why it is not served.
    fn visitor(&self, greeting: &Greeting) -> Done<<Self::Engine as Lent>::Visitor>;

    /// An engine of no client's.
    ///
    /// # Errors
    /// Why there is none.
    fn open(&self) -> Done<Self::Engine>;
}

/// How engines are shared.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Whether a client has an engine for a transaction only, and not for as long as it is there.
    pub by_transaction: bool,
    /// How many engines there are at most, or by session: how many are kept for later clients.
    pub size: usize,
    /// How long a client waits for an engine.
    pub patience: Duration,
}

/// What a statement was prepared of.
pub(crate) type Text = (String, Vec<u32>);
/// So many statements of an engine are remembered.
const MOST_STATEMENTS: usize = 1024;

/// An engine with its number and, where it is shared by transaction, the statements it knows.
pub(crate) struct Item<E: Engine> {
    pub(crate) number: u64,
    pub(crate) engine: E,
    statements: HashMap<Arc<Text>, Statement<E::Handle>>,
    /// From the oldest on.
    texts: VecDeque<Arc<Text>>,
}

impl<E: Engine> Item<E> {
    pub(crate) fn learn(&mut self, text: Arc<Text>, statement: Statement<E::Handle>) {
        if self
            .statements
            .insert(Arc::clone(&text), statement)
            .is_none()
        {
            self.texts.push_back(text);
        }
        if self.texts.len() > MOST_STATEMENTS {
            if let Some(oldest) = self.texts.pop_front() {
                self.statements.remove(&oldest);
            }
        }
    }

    /// Its engine, and a statement of it.
    pub(crate) fn known(&mut self, text: &Text) -> (&mut E, Option<&Statement<E::Handle>>) {
        (&mut self.engine, self.statements.get(text))
    }
}

/// What a client that waits is given.
enum Slot<E: Engine> {
    Nothing,
    Engine(Box<Item<E>>),
    /// There is room for one more, which is counted already.
    Room,
    Cancelled,
}

/// One client that waits.
pub(crate) struct Waiting<E: Engine> {
    slot: Mutex<Slot<E>>,
    filled: Condvar,
}

impl<E: Engine> Waiting<E> {
    /// Fills the slot of one that still waits; what is not taken comes back.
    fn fill(&self, with: Slot<E>) -> Option<Slot<E>> {
        let mut slot = lock(&self.slot);
        if !matches!(*slot, Slot::Nothing) {
            return Some(with);
        }
        *slot = with;
        self.filled.notify_all();
        None
    }
}

impl<E: Lent> Canceller for Waiting<E> {
    fn cancel(&self) {
        self.fill(Slot::Cancelled);
    }
}

struct State<E: Engine> {
    idle: Vec<Box<Item<E>>>,
    /// Those that are idle, in use, or being opened.
    total: usize,
    /// The numbers of those that there are.
    alive: HashSet<u64>,
    next: u64,
    /// Who waits, and for which engine; the first one first.
    queue: VecDeque<(Option<u64>, Arc<Waiting<E>>)>,
}

/// A pool of engines.
pub(crate) struct Engines<L: Lender> {
    pub(crate) lender: L,
    pub(crate) sharing: Sharing,
    state: Mutex<State<L::Engine>>,
}

impl<L: Lender> Engines<L> {
    pub(crate) fn new(lender: L, sharing: Sharing) -> Self {
        let state = State {
            idle: Vec::new(),
            total: 0,
            alive: HashSet::new(),
            next: 1,
            queue: VecDeque::new(),
        };
        Self {
            lender,
            sharing,
            state: Mutex::new(state),
        }
    }

    /// An engine, of a certain number if that is given and still there, or else rather the one that
    /// is `liked`. Where all are in use the client waits its turn; `waits` learns of that first.
    pub(crate) fn take(
        &self,
        wanted: Option<u64>,
        liked: Option<u64>,
        waits: impl FnOnce(&Arc<Waiting<L::Engine>>),
    ) -> Done<Box<Item<L::Engine>>> {
        let waiting = {
            let mut state = lock(&self.state);
            let wanted = wanted.filter(|number| state.alive.contains(number));
            if let Some(item) = state.idle(wanted, liked) {
                return Ok(item);
            }
            let bound = self.sharing.by_transaction;
            if wanted.is_none() && (!bound || state.total < self.sharing.size) {
                state.total += 1;
                drop(state);
                return self.open();
            }
            let waiting = Arc::new(Waiting {
                slot: Mutex::new(Slot::Nothing),
                filled: Condvar::new(),
            });
            waits(&waiting);
            state.queue.push_back((wanted, Arc::clone(&waiting)));
            waiting
        };
        self.wait(&waiting)
    }

    fn wait(&self, waiting: &Arc<Waiting<L::Engine>>) -> Done<Box<Item<L::Engine>>> {
        let end = Instant::now() + self.sharing.patience;
        let mut slot = lock(&waiting.slot);
        loop {
            match std::mem::replace(&mut *slot, Slot::Cancelled) {
                Slot::Engine(item) => return Ok(item),
                Slot::Room => {
                    drop(slot);
                    return self.open();
                }
                Slot::Cancelled => {
                    drop(slot);
                    self.forget(waiting);
                    let why = "canceling statement due to user request";
                    return Err(Failure::error("57014", why));
                }
                Slot::Nothing => {}
            }
            let now = Instant::now();
            if now >= end {
                drop(slot);
                self.forget(waiting);
                return Err(self.none_free());
            }
            *slot = Slot::Nothing;
            let woken = waiting.filled.wait_timeout(slot, end - now);
            slot = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn none_free(&self) -> Failure {
        let message = format!(
            "no session became free within {} s: all {} are within transactions of other clients",
            self.sharing.patience.as_secs_f64(),
            self.sharing.size
        );
        let mut failure = Failure::error("53300", message);
        let hint = "End transactions sooner, or raise --pool-size.";
        failure.fields.hint = Some(hint.to_owned());
        failure
    }

    /// One that waits no more.
    fn forget(&self, waiting: &Arc<Waiting<L::Engine>>) {
        let mut state = lock(&self.state);
        state
            .queue
            .retain(|(_, other)| !Arc::ptr_eq(other, waiting));
    }

    /// Opens one that is counted already.
    fn open(&self) -> Done<Box<Item<L::Engine>>> {
        // Also where that panics, there is room for another.
        let mut room = Room {
            engines: self,
            taken: false,
        };
        let engine = self.lender.open()?;
        room.taken = true;
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        state.alive.insert(number);
        Ok(Box::new(Item {
            number,
            engine,
            statements: HashMap::new(),
            texts: VecDeque::new(),
        }))
    }

    /// Gives an engine back, which others can use: to the first one that waits for it.
    pub(crate) fn give(&self, mut item: Box<Item<L::Engine>>) {
        let mut state = lock(&self.state);
        let mut at = 0;
        while let Some((wanted, waiting)) = state.queue.get(at) {
            if wanted.is_some_and(|number| number != item.number) {
                at += 1;
                continue;
            }
            let waiting = Arc::clone(waiting);
            state.queue.remove(at);
            match waiting.fill(Slot::Engine(item)) {
                Some(Slot::Engine(back)) => item = back,
                _ => return,
            }
        }
        if state.idle.len() < self.sharing.size {
            state.idle.push(item);
            return;
        }
        drop(state);
        self.end(item);
    }

    /// Ends an engine, which makes room for another.
    pub(crate) fn end(&self, item: Box<Item<L::Engine>>) {
        lock(&self.state).alive.remove(&item.number);
        let _room = Room {
            engines: self,
            taken: false,
        };
        drop(item);
    }

    /// There is one less: who waits may open one.
    fn made_room(&self) {
        let mut state = lock(&self.state);
        state.total -= 1;
        if !self.sharing.by_transaction {
            return;
        }
        let mut at = 0;
        while let Some((wanted, waiting)) = state.queue.get(at) {
            if wanted.is_some_and(|number| state.alive.contains(&number)) {
                at += 1;
                continue;
            }
            if state.total >= self.sharing.size {
                return;
            }
            let waiting = Arc::clone(waiting);
            state.queue.remove(at);
            if waiting.fill(Slot::Room).is_none() {
                state.total += 1;
            }
        }
    }

    /// How many engines there are, are idle, and how many clients wait.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let state = lock(&self.state);
        (state.total, state.idle.len(), state.queue.len())
    }
}

impl<E: Engine> State<E> {
    fn idle(&mut self, wanted: Option<u64>, liked: Option<u64>) -> Option<Box<Item<E>>> {
        let of = |number: Option<u64>| self.idle.iter().position(|i| Some(i.number) == number);
        let at = match wanted {
            Some(_) => of(wanted)?,
            // The last one was used last, and has most of what it needs at hand.
            None => of(liked).or_else(|| self.idle.len().checked_sub(1))?,
        };
        Some(self.idle.remove(at))
    }
}

/// What is counted, and may come to nothing.
struct Room<'a, L: Lender> {
    engines: &'a Engines<L>,
    taken: bool,
}

impl<L: Lender> Drop for Room<'_, L> {
    fn drop(&mut self) {
        if !self.taken {
            self.engines.made_room();
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
