//! What is fuzzed: for each decoder of untrusted bytes one function that takes any bytes
//! (`docs/fuzzing.md`). libFuzzer runs these functions, and so does a test that replays the
//! corpora. A function must not panic, must not allocate beyond its bound, and must end.

mod evaluation;
mod functions;
mod input;
mod key_file;
mod lake_file;
mod memory;
mod numbers;
mod postgres;
mod proxy;
mod replies;
mod row_set;
mod sealed;
mod segment;
mod share;
mod tile;
mod token;
mod value;

pub use memory::{peak_bytes, Counting};

use std::path::Path;

/// A decoder under test.
pub struct Target {
    /// The name of the target and of its corpus.
    pub name: &'static str,
    /// Decodes, and checks what must hold of bytes that are accepted.
    pub run: fn(&[u8]),
    /// Well-formed inputs, from which mutation starts.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes of memory that each byte of input may cost.
    pub factor: usize,
    /// Bytes of memory that any input may cost.
    pub constant: usize,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Self {
        Self {
            name,
            run,
            seeds,
            factor: 256,
            constant: 1 << 20,
        }
    }

    const fn within(self, factor: usize, constant: usize) -> Self {
        Self {
            factor,
            constant,
            ..self
        }
    }

    /// Runs the target and checks the memory that it took.
    ///
    /// # Panics
    /// If the target panics, or takes more memory than its bound.
    pub fn check(&self, data: &[u8]) {
        let most = self.constant + self.factor * data.len();
        let bytes = peak_bytes(|| (self.run)(data));
        let (name, length) = (self.name, data.len());
        assert!(
            bytes <= most,
            "{name}: {bytes} bytes of memory for {length} of input"
        );
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::new("row_set", row_set::run, row_set::seeds),
    Target::new("share", share::run, share::seeds),
    Target::new("evaluation", evaluation::run, evaluation::seeds).within(256, 4 << 20),
    Target::new("replies", replies::run, replies::seeds),
    Target::new("token", token::run, token::seeds).within(256, 4 << 20),
    Target::new("segment", segment::run, segment::seeds).within(256, 4 << 20),
    Target::new("value", value::run, value::seeds),
    Target::new("sealed", sealed::run, sealed::seeds),
    Target::new("tile", tile::run, tile::seeds).within(1024, 4 << 20),
    Target::new("key_file", key_file::run, key_file::seeds),
    Target::new("lake_file", lake_file::run, lake_file::seeds).within(256, 16 << 20),
    Target::new("functions", functions::run, functions::seeds).within(4096, 4 << 20),
    Target::new("numbers", numbers::run, numbers::seeds).within(4096, 4 << 20),
    Target::new("postgres", postgres::run, postgres::seeds).within(4096, 4 << 20),
    Target::new("proxy", proxy::run, proxy::seeds),
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Writes the seeds of all targets: a folder for each.
///
/// # Errors
/// Those of the file system.
pub fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for target in TARGETS {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (at, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{at}")), seed)?;
        }
    }
    Ok(())
}
