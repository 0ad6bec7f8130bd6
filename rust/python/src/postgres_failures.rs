//! What fails with a PostgreSQL server, as exceptions of `louver._rust.postgres`.

use louver_postgres::{Error, ServerError};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    louver._rust.postgres,
    ServerError_,
    pyo3::exceptions::PyException,
    "The server refused a statement; args are one dict of the fields of its error."
);
create_exception!(
    louver._rust.postgres,
    ConnectionLost,
    pyo3::exceptions::PyException,
    "There is no connection any more; args are what is known of why."
);
create_exception!(
    louver._rust.postgres,
    ProtocolError,
    pyo3::exceptions::PyException,
    "The server sent what the protocol does not allow."
);
create_exception!(
    louver._rust.postgres,
    TlsError,
    pyo3::exceptions::PyException,
    "There is no TLS with the server, or it is not who it should be; args say why."
);
create_exception!(
    louver._rust.postgres,
    Refused,
    pyo3::exceptions::PyException,
    "The client does not do what the server asks for; args say what."
);

pub(crate) fn fields<'py>(py: Python<'py>, error: &ServerError) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let texts = [
        ("severity", &error.severity),
        ("code", &error.code),
        ("message", &error.message),
        ("detail", &error.detail),
        ("hint", &error.hint),
        ("schema", &error.schema),
        ("table", &error.table),
        ("column", &error.column),
        ("datatype", &error.datatype),
        ("constraint", &error.constraint),
        ("context", &error.context),
    ];
    for (name, text) in texts {
        dict.set_item(name, text)?;
    }
    dict.set_item("position", error.position)?;
    dict.set_item("statement", error.statement)?;
    Ok(dict)
}

pub(crate) fn raised(error: Error) -> PyErr {
    match error {
        Error::Server(said) => Python::attach(|py| match fields(py, &said) {
            Ok(dict) => ServerError_::new_err(dict.unbind()),
            Err(error) => error,
        }),
        Error::Lost(why) => ConnectionLost::new_err(why.to_string()),
        Error::Protocol(text) => ProtocolError::new_err(text),
        Error::Tls(text) => TlsError::new_err(text),
        Error::Refused(text) => Refused::new_err(text),
        Error::Value(text) => PyValueError::new_err(text),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ServerError", py.get_type::<ServerError_>())?;
    module.add("ConnectionLost", py.get_type::<ConnectionLost>())?;
    module.add("ProtocolError", py.get_type::<ProtocolError>())?;
    module.add("TlsError", py.get_type::<TlsError>())?;
    module.add("Refused", py.get_type::<Refused>())
}
