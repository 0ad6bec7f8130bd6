//! Numbers of a server, and their text as Prometheus reads it.

use crate::observed::{Way, TIMES};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What statements are counted by: the first words of their kinds, and all others.
const KINDS: [&str; 12] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "BEGIN", "COMMIT", "ROLLBACK", "SET",
    "FETCH", "other",
];
const WAYS: [&str; 2] = ["planned", "direct"];

/// What happens to the statements of a server. What is counted is never undone.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By kind: those that were done, and those that failed.
    statements: [[AtomicU64; 2]; KINDS.len()],
    ways: [AtomicU64; WAYS.len()],
    times: [AtomicU64; TIMES.len() + 1],
    total_us: AtomicU64,
    /// Bytes of clients' messages.
    received_bytes: AtomicU64,
    /// Bytes of answers.
    sent_bytes: AtomicU64,
}

impl Metrics {
    pub(crate) fn ran(&self, kind: &str, is_done: bool, way: Way, took: Duration) {
        let word = kind.split(' ').next().unwrap_or_default();
        let at = KINDS.iter().position(|own| *own == word);
        let add = |counter: &AtomicU64, by| counter.fetch_add(by, Ordering::Relaxed);
        add(
            &self.statements[at.unwrap_or(KINDS.len() - 1)][usize::from(!is_done)],
            1,
        );
        add(&self.ways[usize::from(way == Way::Direct)], 1);
        let class = TIMES.iter().position(|limit| took <= *limit);
        add(&self.times[class.unwrap_or(TIMES.len())], 1);
        add(
            &self.total_us,
            took.as_micros().try_into().unwrap_or(u64::MAX),
        );
    }

    /// How many statements have ended.
    pub fn statements(&self) -> u64 {
        self.ways.iter().map(read).sum()
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// How many of them failed.
    pub fn failed(&self) -> u64 {
        self.statements.iter().map(|[_, failed]| read(failed)).sum()
    }

    /// How many of them were run without the planner.
    pub fn direct(&self) -> u64 {
        read(&self.ways[1])
    }

    /// The numbers as text.
    pub(crate) fn write(&self, out: &mut String) {
        head(
            out,
            "statements_total",
            "counter",
            "Statements that have ended.",
        );
        for (kind, counters) in KINDS.iter().zip(&self.statements) {
            for (outcome, counter) in ["done", "failed"].iter().zip(counters) {
                let labels = format!("{{kind=\"{kind}\",outcome=\"{outcome}\"}}");
                sample(out, "statements_total", &labels, read(counter));
            }
        }
        head(
            out,
            "ways_total",
            "counter",
            "Statements by how they were run.",
        );
        for (way, counter) in WAYS.iter().zip(&self.ways) {
            sample(
                out,
                "ways_total",
                &format!("{{way=\"{way}\"}}"),
                read(counter),
            );
        }
        let name = "statement_seconds";
        head(out, name, "histogram", "How long statements took.");
        let mut total = 0;
        for (limit, counter) in TIMES.iter().zip(&self.times) {
            total += read(counter);
            let labels = format!("{{le=\"{}\"}}", limit.as_secs_f64());
            sample(out, "statement_seconds_bucket", &labels, total);
        }
        total += self.times.last().map_or(0, read);
        sample(out, "statement_seconds_bucket", "{le=\"+Inf\"}", total);
        let seconds = read(&self.total_us) as f64 / 1e6;
        let _ = writeln!(out, "louver_statement_seconds_sum {seconds}");
        sample(out, "statement_seconds_count", "", total);
        number(
            out,
            "received_bytes_total",
            "counter",
            "Bytes of clients.",
            read(&self.received_bytes),
        );
        number(
            out,
            "sent_bytes_total",
            "counter",
            "Bytes to clients.",
            read(&self.sent_bytes),
        );
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// A number with its own head.
pub(crate) fn number(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    head(out, name, kind, help);
    sample(out, name, "", value);
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        out,
        "# HELP louver_{name} {help}\n# TYPE louver_{name} {kind}"
    );
}

fn sample(out: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(out, "louver_{name}{labels} {value}");
}
