//! How the statements of a client at the front door run: as it is known of them, or by Python,
//! which then says how they run from now on.

use crate::proxy_client::Client;
use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_statements::{outcome, Direct, Handle, Known};
use crate::proxy_transactions::Transaction;
use crate::proxy_writes::Ran;
use crate::reserve::Reserve;
use louver_proxy::{Done, Engine, Failure, Kind, Outcome, Statement, Values};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Of so many statements of a transaction it is looked for what runs them, when it has ended.
const MOST_RAN: usize = 128;

/// What touches no ENC column may be known before it first runs; others are planned with their
/// first run, and what opens their rows is known with the second. Behind so many looks they become
/// fewer and fewer.
pub(crate) const RUNS: u32 = 4;

impl Client {
    pub(crate) fn is_valid(&self, known: &Known) -> bool {
        known.generation == self.generation && (self.status == b'I' || self.within.is_some())
    }

    /// Whether a statement's way was tried.
    pub(crate) fn is_known(&self, statement: &Statement<Handle>) -> bool {
        let known = statement.handle.known();
        known.way.is_some() && self.is_valid(&known)
    }

    /// What a statement gave without Python; None where that is to run it.
    pub(crate) fn run_direct(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Option<Done<Outcome>> {
        match self.within {
            Some(_) => self.run_within(statement, values, formats),
            None => self.run_known(statement, values, formats),
        }
    }

    /// What a statement gave that is known; None where Python is to run it.
    pub(crate) fn run_known(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Option<Done<Outcome>> {
        let moments = statement.handle.moments();
        let timed;
        let values = if moments.types.is_empty() || !self.is_known(statement) {
            values
        } else {
            timed = self.with_moments(moments, values)?;
            &timed
        };
        let mut known = statement.handle.known();
        let valid = self.is_valid(&known);
        let mut within = self.within.as_mut();
        let ran = match known.way.as_ref().filter(|_| valid)? {
            Direct::Read(read) => {
                let done = read.get().run(values, formats, within);
                self.shown.add(read.get().disclosed());
                return done;
            }
            Direct::Pass(pass) => return pass.get().run(values, formats, within),
            Direct::Begin(begin) => {
                (within.is_none() && !self.listens).then_some(())?;
                let begin = begin.get();
                self.within = Some(Transaction::new(&statement.handle, begin));
                return Some(Ok(Outcome::Done { tag: begin.tag() }));
            }
            Direct::Write(write) => {
                let ran = match &mut within {
                    Some(transaction) => write.get().run_within(values, formats, transaction),
                    None => write.get().run(values, formats),
                };
                self.shown.add(write.get().disclosed());
                for numbers in write.get().sequences() {
                    if !self.drawn.iter().any(|known| known.id() == numbers.id()) {
                        self.drawn.push(numbers.clone());
                    }
                }
                ran
            }
            Direct::Change(change) => change.get().run(values, formats, within),
        };
        match ran {
            Ran::Done(done) => {
                self.wrote |= self.within.is_none();
                Some(done)
            }
            Ran::Other => None,
            Ran::Stale => {
                known.generation = self.generation.wrapping_sub(1);
                known.renew(self.generation);
                None
            }
            Ran::Unsure => Some(self.unsure()),
        }
    }

    /// Before a statement: what is known of it in this generation; and before a transaction numbers
    /// of sequences, of which it can get no others.
    pub(crate) fn get_ready(&mut self, statement: &Statement<Handle>) {
        if statement.kind == Kind::Begins && self.status() == b'I' {
            self.get_numbers();
        }
        self.renew_way(statement);
    }

    fn get_numbers(&mut self) {
        let low = self.drawn.iter().filter(|numbers| numbers.is_low());
        let low: Vec<u64> = low.map(SequenceNumbers::id).collect();
        if !low.is_empty() {
            self.wrote = true;
            let given = (Vec::<Py<Reserve>>::new(), false, low, false);
            let _ = Python::attach(|py| {
                self.call_apart(py, |object| object.call_method1("provide", given).map(drop))
            });
        }
    }

    /// Has Python provide what the way of a statement lacks; whether it did.
    pub(crate) fn provided(&mut self, statement: &Statement<Handle>) -> bool {
        if self.within.as_ref().is_some_and(Transaction::is_lost) {
            return false;
        }
        let given = {
            let known = statement.handle.known();
            let valid = self.is_valid(&known);
            let lacking = match known.way.as_ref().filter(|_| valid) {
                Some(Direct::Read(read)) => read.get().lacking(),
                Some(Direct::Write(write)) => write.get().lacking(),
                Some(Direct::Change(change)) => change.get().lacking(),
                _ => return false,
            };
            if !lacking.is_any() {
                return false;
            }
            let within = self.within.is_some();
            // Before Python draws, it takes back what is not drawn here.
            self.wrote |= !lacking.sequences.is_empty();
            Python::attach(|py| {
                let reserves = lacking.reserves(py);
                (reserves, lacking.numbers, lacking.sequences, within)
            })
        };
        let done = Python::attach(|py| {
            self.call_apart(py, |object| {
                object.call_method1("provide", given)?.extract()
            })
        });
        done.unwrap_or(false)
    }

    /// The server was lost while it committed.
    pub(crate) fn unsure(&mut self) -> Done<Outcome> {
        Python::attach(|py| {
            self.call(py, |object| object.call_method0("unsure").map(drop))?;
            Err(Failure::error("08006", "the connection was lost"))
        })
    }

    /// Python has run a statement that its way left to it: what that shows is recorded.
    pub(crate) fn recorded(statement: &Statement<Handle>) {
        match &statement.handle.known().way {
            Some(Direct::Read(read)) => read.get().recorded(),
            Some(Direct::Write(write)) => write.get().recorded(),
            Some(Direct::Pass(pass)) => pass.get().looked(),
            Some(Direct::Change(_) | Direct::Begin(_)) | None => {}
        }
    }

    /// After a run of Python's: how the statement runs from now on, or those of a transaction that
    /// has ended.
    pub(crate) fn learn(&mut self, statement: &Statement<Handle>) {
        if self.status == b'T' {
            let fits = matches!(statement.kind, Kind::Other | Kind::Begins);
            let learns = fits && self.ran.len() < MOST_RAN;
            if learns && !self.ran.iter().any(|known| known.is(&statement.handle)) {
                self.ran.push(statement.handle.clone());
            }
            return;
        }
        if self.status != b'I' {
            return;
        }
        for handle in std::mem::take(&mut self.ran) {
            self.learn_way(&handle);
        }
        if matches!(statement.kind, Kind::Other) {
            self.learn_way(&statement.handle);
        }
    }

    /// What has run a statement before the catalog, or a setting, became another one is made anew,
    /// and so is that of one with parameters that has not run yet.
    pub(crate) fn renew_way(&mut self, statement: &Statement<Handle>) {
        let is_shape = statement.handle.literals().is_some();
        let has_values = is_shape || !statement.parameters.is_empty();
        let learns = statement.kind == Kind::Other && has_values;
        self.renew(&statement.handle, learns);
    }

    /// The same of a statement that `learns` before it first runs, or does not.
    pub(crate) fn renew(&mut self, handle: &Handle, learns: bool) {
        let is_to_be = {
            let known = handle.known();
            let is_new = known.runs == 0 && learns;
            known.generation != self.generation && (known.way.is_some() || is_new)
        };
        if is_to_be && self.status == b'I' {
            self.learn_way(handle);
        }
    }

    fn learn_way(&mut self, handle: &Handle) {
        let mut known = handle.known();
        known.renew(self.generation);
        if known.way.is_some() {
            return;
        }
        known.runs += 1;
        if known.runs > RUNS && !known.runs.is_power_of_two() {
            return;
        }
        known.way = Python::attach(|py| {
            self.tell_time(py);
            let object = handle.object().bind(py);
            let way = self.object.call_method1(py, "way", (object,)).ok()?;
            way.extract::<Option<Direct>>(py).ok()?
        });
    }

    /// Python runs a statement.
    pub(crate) fn run_planned(
        &mut self,
        handle: &Handle,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome> {
        Python::attach(|py| {
            let given: Vec<Option<Bound<'_, PyBytes>>> = values
                .values
                .iter()
                .map(|value| value.as_ref().map(|bytes| PyBytes::new(py, bytes)))
                .collect();
            let object = handle.object().bind(py).clone();
            if let Some(literals) = handle.literals() {
                let given = (object, literals.text.as_str(), given, formats.to_vec());
                return self.call(py, |client| {
                    outcome(&client.call_method1("run_shape", given)?)
                });
            }
            let given = (object, given, values.formats.clone(), formats.to_vec());
            self.call(py, |client| outcome(&client.call_method1("run", given)?))
        })
    }
}
