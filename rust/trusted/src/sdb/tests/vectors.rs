//! `spec/vectors/sdb.json`: answers of an independent big-integer script.

use super::super::math;
use super::super::secret::Secret;
use super::super::space::{Parts, SdbSpace};
use crate::keys::RootSecret;
use num_bigint::{BigInt, BigUint};
use num_traits::Num;
use serde_json::Value;

const VECTORS: &str = include_str!("../../../../../spec/vectors/sdb.json");

fn int(value: &Value) -> BigInt {
    match value {
        Value::Number(n) => BigInt::from(n.as_i64().unwrap()),
        other => {
            let text = other.as_str().unwrap().replace("0x", "");
            BigInt::from_str_radix(&text, 16).unwrap()
        }
    }
}

fn nat(value: &Value) -> BigUint {
    int(value).magnitude().clone()
}

fn key(value: &Value) -> (BigUint, BigUint) {
    (nat(&value["m"]), nat(&value["x"]))
}

struct Set {
    all: Value,
    n: BigUint,
    phi: BigUint,
    g: BigUint,
}

fn sets() -> Vec<Set> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let set = |name: &str| {
        let all = vectors[name].clone();
        let (p1, p2) = (nat(&all["p1"]), nat(&all["p2"]));
        Set {
            n: nat(&all["n"]),
            phi: (&p1 - 1u8) * (&p2 - 1u8),
            g: nat(&all["g"]),
            all,
        }
    };
    vec![set("small"), set("full")]
}

impl Set {
    fn item(&self, key: &(BigUint, BigUint), r: &Value) -> BigUint {
        math::item_key(&key.0, &key.1, &nat(r), &self.g, &self.phi, &self.n)
    }

    fn update(&self, source: &(BigUint, BigUint), target: (&BigUint, &BigUint)) -> [BigUint; 2] {
        let ones = key(&self.all["S"]);
        let source = (&source.0, &source.1);
        let (p, q) =
            math::paper_update(source, target, (&ones.0, &ones.1), &self.phi, &self.n).unwrap();
        [p, q]
    }
}

fn pq(value: &Value) -> [BigUint; 2] {
    [nat(&value["p"]), nat(&value["q"])]
}

#[test]
fn values_seal_and_open() {
    for set in sets() {
        let columns = &set.all["columns"];
        let plain = [
            ("A", "a", "a_e"),
            ("B", "b", "b_e"),
            ("R", "rand", "rand_e"),
        ];
        for row in set.all["rows"].as_array().unwrap() {
            for (column, value, sealed) in plain {
                let item = set.item(&key(&columns[column]), &row["r"]);
                let got = math::seal(&int(&row[value]), &item, &set.n).unwrap();
                assert_eq!(got, nat(&row[sealed]));
                assert_eq!(math::open(&got, &item, &set.n), int(&row[value]));
            }
            let unit = BigInt::from(1);
            for (ones, r, sealed) in [("S", "r", "s_e"), ("S2", "r2", "s2_e")] {
                let item = set.item(&key(&set.all[ones]), &row[r]);
                assert_eq!(math::seal(&unit, &item, &set.n).unwrap(), nat(&row[sealed]));
            }
        }
    }
}

#[test]
fn offsets_give_the_exponents() {
    for set in sets() {
        let x_s = BigInt::from(nat(&set.all["S"]["x"]));
        for column in set.all["columns"].as_object().unwrap().values() {
            let x = math::residue(&(int(&column["offset"]) * &x_s), &set.phi);
            assert_eq!(x, nat(&column["x"]));
        }
    }
}

#[test]
fn updates_of_the_paper() {
    for set in sets() {
        let columns = &set.all["columns"];
        let (a, b, r) = (key(&columns["A"]), key(&columns["B"]), key(&columns["R"]));
        let target = key(&set.all["target"]);
        let to = (&target.0, &target.1);
        assert_eq!(set.update(&a, to), pq(&set.all["update_A_to_target"]));
        let minus = ((&set.n - 1u8) * &b.0 % &set.n, b.1);
        assert_eq!(
            set.update(&minus, to),
            pq(&set.all["update_negB_to_target"])
        );
        let product = (&r.0 * &target.0 % &set.n, (&r.1 + &target.1) % &set.phi);
        let (unit, zero) = (BigUint::from(1u8), BigUint::ZERO);
        let open = set.update(&product, (&unit, &zero));
        assert_eq!(open, pq(&set.all["update_RC_to_zero"]));
    }
}

#[test]
fn updates_by_offset() {
    for set in sets() {
        let a = &set.all["columns"]["A"];
        let p = math::power(&int(&a["offset"]), &BigInt::ZERO).unwrap();
        let ones = [(nat(&set.all["S"]["m"]), p.clone())];
        let target = nat(&set.all["sum_target_m"]);
        let q = math::factor(&nat(&a["m"]), &target, &ones, &set.n).unwrap();
        assert_eq!([p, q], pq(&set.all["update_A_to_sum"]));
        assert!(math::power(&BigInt::ZERO, &int(&a["offset"])).is_none());
    }
}

/// The batched path: powers of `g^x_S` by offsets, fixed-base tables, the kernel.
#[test]
fn batches_seal_the_same() {
    for set in sets() {
        let parts = Parts {
            ones_base: set.g.modpow(&nat(&set.all["S"]["x"]), &set.n),
            n: set.n.clone(),
        };
        let root = RootSecret::from_bytes(&[1; 32]).unwrap();
        let space = SdbSpace::from_parts(root, parts, Vec::new()).unwrap();
        let rows = set.all["rows"].as_array().unwrap();
        let exponents: Vec<[u8; 16]> = rows
            .iter()
            .map(|row| {
                let bytes = nat(&row["r"]).to_bytes_be();
                let mut wide = [0; 16];
                wide[16 - bytes.len()..].copy_from_slice(&bytes);
                wide
            })
            .collect();
        for (column, value, sealed) in [("A", "a", "a_e"), ("B", "b", "b_e")] {
            let key = &set.all["columns"][column];
            let factor = Secret::natural(space.invert(&nat(&key["m"])));
            let offset = -int(&key["offset"]);
            let table = space.table(&factor, &offset, 100).unwrap();
            let plain: Vec<Vec<u8>> = rows
                .iter()
                .map(|row| space.fixed(&math::residue(&int(&row[value]), &set.n)))
                .collect();
            let k = &space.kernel;
            let plain = k.load(&plain.concat()).unwrap();
            let got = k.store(&table.pow_mul(k, &exponents, &plain));
            let wanted: Vec<Vec<u8>> = rows
                .iter()
                .map(|row| space.fixed(&nat(&row[sealed])))
                .collect();
            assert_eq!(got, wanted.concat());
        }
    }
}
