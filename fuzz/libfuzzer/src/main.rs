//! One fuzz target under libFuzzer; `LOUVER_FUZZ_TARGET` names it. With `LOUVER_FUZZ_SEEDS` it
//! writes the seeds of all targets into that folder instead.

#![no_main]

use libfuzzer_sys::fuzz_target;
use louver_fuzz_targets::{target, write_seeds, Counting, Target};
use std::env::{var, var_os};
use std::path::Path;
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = var("LOUVER_FUZZ_TARGET").unwrap_or_default();
    target(&name).expect("LOUVER_FUZZ_TARGET names a target")
});

fn begin() {
    if let Some(folder) = var_os("LOUVER_FUZZ_SEEDS") {
        write_seeds(Path::new(&folder)).expect("a folder that can be written");
        std::process::exit(0);
    }
    // Preparing a target is not counted as a cost of its first input.
    (TARGET.seeds)().iter().for_each(|seed| (TARGET.run)(seed));
}

fuzz_target!(init: begin(), |data: &[u8]| TARGET.check(data));
