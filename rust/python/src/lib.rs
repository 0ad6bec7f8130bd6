//! `louver._rust`: what Python sees of the Rust crates. Binds, computes nothing.

mod attack;
mod codes;
mod copies;
mod copy_parts;
mod eds;
mod epochs;
mod errors;
mod ffi;
mod fss;
mod fss_many;
mod fss_server;
mod key_values;
mod keyring;
mod look_ups;
mod math;
mod paillier;
mod parquet;
mod postgres;
mod postgres_failures;
mod postgres_replies;
mod postgres_values;
mod proxy;
mod proxy_client;
mod proxy_constants;
mod proxy_done;
mod proxy_exchanges;
mod proxy_finish;
mod proxy_found_rows;
mod proxy_growth;
mod proxy_guest;
mod proxy_moments;
mod proxy_passes;
mod proxy_reads;
mod proxy_relays;
mod proxy_returning;
mod proxy_rows;
mod proxy_running;
mod proxy_sequences;
mod proxy_shapes;
mod proxy_shown;
mod proxy_sources;
mod proxy_statements;
mod proxy_terms;
mod proxy_texts;
mod proxy_transactions;
mod proxy_values;
mod proxy_within;
mod proxy_writes;
mod raw;
mod raw_messages;
mod raw_times;
mod raw_values;
mod recipe;
mod reserve;
mod sdb;
mod sealed_rows;
mod server;
mod sums;
mod text;
mod tiles;

use pyo3::prelude::*;

#[pymodule]
fn _rust(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add_class::<keyring::KeyRing>()?;
    module.add_class::<epochs::Epochs>()?;
    module.add_class::<sdb::SdbSpace>()?;
    module.add_class::<sdb::SdbKey>()?;
    module.add_class::<sdb::SdbUpdate>()?;
    module.add_class::<paillier::PaillierSpace>()?;
    module.add("RANDOM_BITS", louver_trusted::sdb::RANDOM_BITS)?;
    eds::register(module)?;
    submodule(module, "server", server::register)?;
    submodule(module, "attack", attack::register)?;
    submodule(module, "sums", sums::register)?;
    submodule(module, "codes", codes::register)?;
    submodule(module, "text", text::register)?;
    submodule(module, "tiles", tiles::register)?;
    submodule(module, "recipe", recipe::register)?;
    submodule(module, "fss", fss::register)?;
    submodule(module, "look_ups", look_ups::register)?;
    submodule(module, "parquet", parquet::register)?;
    submodule(module, "postgres", postgres::register)?;
    submodule(module, "proxy", proxy::register)?;
    submodule(module, "sdb_math", math::register)
}

/// Adds a submodule that `import louver._rust.<name>` finds too.
fn submodule(
    parent: &Bound<'_, PyModule>,
    name: &str,
    register: impl FnOnce(&Bound<'_, PyModule>) -> PyResult<()>,
) -> PyResult<()> {
    let py = parent.py();
    let child = PyModule::new(py, &format!("louver._rust.{name}"))?;
    register(&child)?;
    parent.add(name, &child)?;
    let modules = py.import("sys")?.getattr("modules")?;
    modules.set_item(format!("louver._rust.{name}"), &child)
}
