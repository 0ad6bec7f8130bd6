//! Errors of the crates as Python exceptions.

use louver_trusted::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    louver._rust,
    VerifyError,
    pyo3::exceptions::PyException,
    "Something stored was altered, moved, or sealed under another key."
);
create_exception!(
    louver._rust,
    KeyFileError,
    pyo3::exceptions::PyException,
    "A key file is missing, damaged or open to others; args are (path, cause, fix)."
);

create_exception!(
    louver._rust,
    WidenError,
    pyo3::exceptions::PyException,
    "A value lies outside of the form in which its column's tiles are sealed."
);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("VerifyError", py.get_type::<VerifyError>())?;
    module.add("WidenError", py.get_type::<WidenError>())?;
    module.add("KeyFileError", py.get_type::<KeyFileError>())
}

pub(crate) fn trusted(error: Error) -> PyErr {
    match error {
        Error::KeyFile { path, cause, fix } => KeyFileError::new_err((path, cause, fix)),
        Error::Verify(text) => VerifyError::new_err(text),
        Error::Widen(text) => WidenError::new_err(text),
        Error::Value(text) => PyValueError::new_err(text),
        Error::System(text) => PyOSError::new_err(text),
    }
}
