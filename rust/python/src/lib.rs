//! `louver._rust`: what Python sees of the Rust crates. Binds, computes nothing.

mod errors;
mod ffi;
mod keyring;

use pyo3::prelude::*;

#[pymodule]
fn _rust(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add_class::<keyring::KeyRing>()?;
    Ok(())
}
