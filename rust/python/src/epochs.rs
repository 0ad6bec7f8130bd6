//! `Epochs`: what a database knows of the epochs of its row ids.

use crate::errors::trusted;
use louver_trusted::EpochBits;
use pyo3::prelude::*;

/// The random bits of epochs, by number.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct Epochs(pub(crate) louver_trusted::Epochs);

#[pymethods]
impl Epochs {
    /// Epochs with their bits; others below `legacy_below` are of an earlier release.
    #[new]
    fn new(legacy_below: u32, known: Vec<(u32, EpochBits)>) -> PyResult<Self> {
        let epochs = louver_trusted::Epochs::new(legacy_below, known);
        epochs.map(Self).map_err(trusted)
    }
}
