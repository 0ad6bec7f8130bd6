//! `louver._rust.fss`: the client's side of private questions (`spec/fss.md`).

use crate::errors::trusted;
use louver_trusted::fss;
use louver_trusted::fss_many::OwfPoint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// One point: which record is wanted. with `at` None, of no record; the shares look the same.
#[pyclass(frozen, module = "louver._rust.fss")]
struct Point(Kind);

enum Kind {
    Tree(fss::Point),
    Owf(OwfPoint),
}

#[pymethods]
impl Point {
    #[new]
    #[pyo3(signature = (bits, at, parties=2, scheme="tree"))]
    fn new(
        py: Python<'_>,
        bits: u32,
        at: Option<u64>,
        parties: u8,
        scheme: &str,
    ) -> PyResult<Self> {
        let kind = match (scheme, parties) {
            ("tree", 2) => fss::Point::new(bits, at).map(Kind::Tree),
            ("owf", _) => py
                .detach(|| OwfPoint::new(bits, at, parties))
                .map(Kind::Owf),
            _ => {
                return Err(PyValueError::new_err(
                    "the scheme is tree (two parties) or owf",
                ))
            }
        };
        Ok(Self(kind.map_err(trusted)?))
    }

    /// One share for each provider.
    fn shares<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        match &self.0 {
            Kind::Tree(point) => to_bytes(py, point.shares()),
            Kind::Owf(point) => to_bytes(py, point.shares()),
        }
    }

    /// The record of the joined answers, or None; VerifyError where a provider lied.
    fn open<'py>(
        &self,
        py: Python<'py>,
        replies: Vec<Bound<'py, PyBytes>>,
        level: u32,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let replies = slices(&replies);
        let record = match &self.0 {
            Kind::Tree(point) => point.open(&replies, level),
            Kind::Owf(point) => point.open(&replies, level),
        };
        let record = record.map_err(trusted)?;
        Ok(record.map(|record| PyBytes::new(py, &record)))
    }

    fn __repr__(&self) -> &'static str {
        "Point(redacted)"
    }
}

/// An interval, both ends included: what of its records is added. None, None adds nothing.
#[pyclass(frozen, module = "louver._rust.fss")]
struct Sum(fss::Sum);

/// One point: what of its records is added. None adds nothing.
#[pyclass(frozen, module = "louver._rust.fss")]
struct PointSum(fss::PointSum);

/// One end, up to two to the power of bits: what of the records below it is added.
#[pyclass(frozen, module = "louver._rust.fss")]
struct Below(fss::Below);

macro_rules! additive {
    ($($kind:ident($($name:ident: $type:ty),*) = $value:expr, $hidden:literal;)*) => {$(
        #[pymethods]
        impl $kind {
            #[new]
            fn new($($name: $type),*) -> PyResult<Self> {
                let value: PyResult<_> = $value;
                Ok(Self(value?))
            }

            /// One share for each provider.
            fn shares<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
                to_bytes(py, self.0.shares())
            }

            /// The joined sums; VerifyError where a provider lied.
            fn open(&self, replies: Vec<Bound<'_, PyBytes>>) -> PyResult<Vec<i64>> {
                self.0.open(&slices(&replies)).map_err(trusted)
            }

            fn __repr__(&self) -> &'static str {
                $hidden
            }
        }
    )*};
}

additive! {
    Sum(bits: u32, low: Option<u64>, high: Option<u64>) = match (low, high) {
        (None, None) => fss::Sum::new(bits, None).map_err(trusted),
        (Some(low), Some(high)) => fss::Sum::new(bits, Some((low, high))).map_err(trusted),
        _ => Err(PyValueError::new_err("both ends are given, or none")),
    }, "Sum(redacted)";
    PointSum(bits: u32, at: Option<u64>) = {
        fss::PointSum::new(bits, at).map_err(trusted)
    }, "PointSum(redacted)";
    Below(bits: u32, end: u128) = {
        fss::Below::new(bits, end).map_err(trusted)
    }, "Below(redacted)";
}

/// Several point functions of one payload: which rows are gathered.
#[pyclass(frozen, module = "louver._rust.fss")]
struct Sample(fss::Sample);

#[pymethods]
impl Sample {
    #[new]
    fn new(functions: Vec<(u32, Option<u64>)>) -> PyResult<Self> {
        fss::Sample::new(&functions).map(Self).map_err(trusted)
    }

    /// Of each function, one share for each provider.
    fn shares<'py>(&self, py: Python<'py>) -> Vec<Vec<Bound<'py, PyBytes>>> {
        let shares = self.0.shares().iter();
        shares.map(|pair| to_bytes(py, pair)).collect()
    }

    /// All records that were gathered, or None; VerifyError where a provider lied.
    fn open<'py>(
        &self,
        py: Python<'py>,
        replies: Vec<Bound<'_, PyBytes>>,
        width: usize,
        slots: usize,
        seeds: Vec<u64>,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let opened = self.0.open(&slices(&replies), width, slots, &seeds);
        Ok(opened
            .map_err(trusted)?
            .map(|records| to_bytes(py, &records)))
    }

    fn __repr__(&self) -> &'static str {
        "Sample(redacted)"
    }
}

fn to_bytes<'py>(py: Python<'py>, shares: &[Vec<u8>]) -> Vec<Bound<'py, PyBytes>> {
    shares.iter().map(|share| PyBytes::new(py, share)).collect()
}

fn slices<'a>(replies: &'a [Bound<'_, PyBytes>]) -> Vec<&'a [u8]> {
    replies.iter().map(|reply| reply.as_bytes()).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Point>()?;
    module.add_class::<Sum>()?;
    module.add_class::<PointSum>()?;
    module.add_class::<Below>()?;
    module.add_class::<Sample>()?;
    crate::fss_many::register(module)
}
