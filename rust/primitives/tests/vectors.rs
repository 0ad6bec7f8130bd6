//! Known answers of the SDB scheme (spec/vectors/sdb.json), on both backends.

use louver_primitives::{wide, Backend, Column, FixedBase, Kernel, Modulus};
use serde_json::Value;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/sdb.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A hex integer as big-endian bytes.
fn be(v: &Value) -> Vec<u8> {
    let hex = v.as_str().unwrap().trim_start_matches("0x");
    let hex = format!("{}{hex}", "0".repeat(hex.len() % 2));
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

struct Case {
    vectors: Value,
    kernel: Kernel,
}

impl Case {
    fn each(f: impl Fn(&Case)) {
        for section in ["small", "full"] {
            let vectors = vectors()[section].clone();
            let modulus = Modulus::from_be_bytes(&be(&vectors["n"])).unwrap();
            for backend in [Backend::Portable, Backend::Ifma] {
                let kernel = Kernel::with_backend(modulus.clone(), backend);
                f(&Case {
                    vectors: vectors.clone(),
                    kernel,
                });
            }
        }
    }

    fn raw(&self, name: &str) -> Vec<Vec<u8>> {
        self.vectors["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| be(&row[name]))
            .collect()
    }

    fn column(&self, name: &str) -> Column {
        self.kernel
            .load_rows(self.raw(name).iter().map(Vec::as_slice))
            .unwrap()
    }

    /// `q * x * s^p`: one key update.
    fn update(&self, name: &str, x: &Column, s: &Column) -> Column {
        let (k, update) = (&self.kernel, &self.vectors[name]);
        let power = k.pow(s, &be(&update["p"]));
        k.scale(&k.mul(x, &power), &k.scalar(&be(&update["q"])).unwrap())
    }

    fn expect(&self, got: &Column, name: &str) {
        let k = &self.kernel;
        assert_eq!(
            k.store(got),
            k.store(&self.column(name)),
            "{name} {:?}",
            k.backend()
        );
    }
}

#[test]
fn products_and_differences() {
    Case::each(|c| {
        let k = &c.kernel;
        let (a, b, s) = (c.column("a_e"), c.column("b_e"), c.column("s_e"));
        c.expect(&k.mul(&a, &b), "product_e");
        let left = c.update("update_A_to_target", &a, &s);
        let right = c.update("update_negB_to_target", &b, &s);
        c.expect(&k.add(&left, &right), "difference_e");
    });
}

#[test]
fn sums() {
    Case::each(|c| {
        let k = &c.kernel;
        let summed = c.update("update_A_to_sum", &c.column("a_e"), &c.column("s_e"));
        c.expect(&summed, "a_sum_e");
        assert_eq!(
            wide::reduce(&k.sum(&summed), &k.modulus().to_be_bytes()),
            wide::reduce(&be(&c.vectors["sum_e"]), &k.modulus().to_be_bytes())
        );
    });
}

#[test]
fn several_exponents_at_once() {
    Case::each(|c| {
        let (k, s) = (&c.kernel, c.column("s_e"));
        let names = [
            "update_A_to_target",
            "update_negB_to_target",
            "update_A_to_sum",
        ];
        let exponents = names.map(|name| be(&c.vectors[name]["p"]));
        let shared: Vec<&[u8]> = exponents.iter().map(Vec::as_slice).collect();
        for (got, e) in k.pow_many(&s, &shared).iter().zip(&exponents) {
            assert_eq!(k.store(got), k.store(&k.pow(&s, e)));
        }
    });
}

/// Encryption and opening of a column: `v_e = v * (m * (g^x)^r)^-1`.
#[test]
fn opening() {
    Case::each(|c| {
        let (k, n) = (&c.kernel, be(&c.vectors["n"]));
        let key = &c.vectors["columns"]["A"];
        let base = wide::pow_mod(&be(&c.vectors["g"]), &be(&key["x"]), &n).unwrap();
        let table = FixedBase::new(k, &base, &be(&key["m"])).unwrap();
        let exponents: Vec<[u8; 16]> = c
            .raw("r")
            .iter()
            .map(|r| {
                let mut e = [0; 16];
                e[16 - r.len()..].copy_from_slice(r);
                e
            })
            .collect();
        let opened = k.store(&table.pow_mul(k, &exponents, &c.column("a_e")));
        let rows = c.vectors["rows"].as_array().unwrap();
        for (got, row) in opened.chunks_exact(n.len()).zip(rows) {
            let plain = row["a"].as_i64().unwrap();
            let magnitude = plain.unsigned_abs().to_be_bytes();
            let expect = match plain {
                0.. => wide::reduce(&magnitude, &n),
                _ => wide::sub_mod(&[], &magnitude, &n),
            };
            assert_eq!(Some(got.to_vec()), expect);
        }
    });
}
