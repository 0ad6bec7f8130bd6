//! The server functions against `spec/vectors/sdb.json`, against NULLs and against nonsense.

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use louver_untrusted::server::*;
use num_bigint::BigUint;
use num_traits::Num;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const VECTORS: &str = include_str!("../../../spec/vectors/sdb.json");

fn nat(value: &Value) -> BigUint {
    let digits = value.as_str().unwrap().strip_prefix("0x").unwrap();
    BigUint::from_str_radix(digits, 16).unwrap()
}

struct Set(Value);

impl Set {
    fn all() -> Vec<Self> {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        vec![
            Self(vectors["small"].clone()),
            Self(vectors["full"].clone()),
        ]
    }

    fn rows(&self) -> usize {
        self.0["rows"].as_array().unwrap().len()
    }

    fn column(&self, name: &str) -> BinaryArray {
        let rows = self.0["rows"].as_array().unwrap().iter();
        BinaryArray::from_iter_values(rows.map(|row| nat(&row[name]).to_bytes_be()))
    }

    fn constant(&self, value: &[u8]) -> BinaryArray {
        BinaryArray::from_iter_values(vec![value; self.rows()])
    }

    fn update(&self, name: &str) -> BinaryArray {
        let update = &self.0[name];
        let (p, q) = (nat(&update["p"]), nat(&update["q"]));
        self.constant(&encode_update(&p.to_bytes_be(), &q.to_bytes_be()).unwrap())
    }

    fn n(&self) -> BinaryArray {
        self.constant(&nat(&self.0["n"]).to_bytes_be())
    }

    #[track_caller]
    fn expect(&self, got: &ArrayRef, name: &str) {
        let width = nat(&self.0["n"]).to_bytes_be().len();
        for (got, wanted) in got.as_binary::<i32>().iter().zip(self.column(name).iter()) {
            let (got, wanted) = (got.unwrap(), wanted.unwrap());
            assert_eq!(got.len(), width);
            assert_eq!(BigUint::from_bytes_be(got), BigUint::from_bytes_be(wanted));
        }
    }
}

#[test]
fn known_answers() {
    for set in Set::all() {
        let (n, a, b, s) = (
            set.n(),
            set.column("a_e"),
            set.column("b_e"),
            set.column("s_e"),
        );
        set.expect(&sdb_mul(&a, &b, &n).unwrap(), "product_e");
        let (ka, kb) = (
            set.update("update_A_to_target"),
            set.update("update_negB_to_target"),
        );
        let difference = sdb_add(&a, &b, &s, &ka, &kb, &n).unwrap();
        set.expect(&difference, "difference_e");
        let powers = sdb_add_kept(&a, &b, &s, &s, &ka, &kb, &n).unwrap();
        set.expect(&powers, "difference_e");
        let product = sdb_mul(&set.column("rand_e"), &difference, &n).unwrap();
        let open = set.update("update_RC_to_zero");
        let z = sdb_key_update(&product, &s, &open, &n).unwrap();
        set.expect(&z, "comparison_z");
        let signs = sdb_compare(&z, &n).unwrap();
        let wanted = [0, 0, -1, 1, 0, -1, 1, 0, 1, 1];
        assert_eq!(signs.as_primitive::<Int8Type>().values(), &wanted);
        let k = set.update("update_A_to_sum");
        let moved = sdb_key_update(&a, &s, &k, &n).unwrap();
        set.expect(&moved, "a_sum_e");
        let item = Arc::new(Field::new("l", DataType::Binary, true));
        let lists = ListArray::new(item, OffsetBuffer::from_lengths([set.rows()]), moved, None);
        let sum = sdb_sum(&lists, &n.slice(0, 1)).unwrap();
        let sum = BigUint::from_bytes_be(sum.as_binary::<i32>().value(0));
        assert_eq!(sum, nat(&set.0["sum_e"]));
        let p = set.constant(&nat(&set.0["cartesian"]["p_A"]).to_bytes_be());
        let lifted = sdb_cartprod(&a, &set.column("s2_e"), &p, &n).unwrap();
        set.expect(&lifted, "cartesian_a_e");
    }
}

#[test]
fn kept_powers_give_the_same() {
    let set = Set::all().remove(0);
    let (n, a, b, s) = (
        set.n(),
        set.column("a_e"),
        set.column("b_e"),
        set.column("s_e"),
    );
    let (ka, kb) = (
        &set.0["update_A_to_target"],
        &set.0["update_negB_to_target"],
    );
    let exponents = [
        nat(&ka["p"]).to_bytes_be(),
        vec![],
        vec![1],
        nat(&kb["p"]).to_bytes_be(),
    ];
    let flat = vec![exponents.clone(); set.rows()].concat();
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(&flat));
    let item = Arc::new(Field::new("l", DataType::Binary, true));
    let offsets = OffsetBuffer::from_lengths(vec![4; set.rows()]);
    let ps = ListArray::new(item, offsets, values, None);
    let powers = sdb_powers(&s, &ps, &n).unwrap();
    let powers = powers.as_list::<i32>();
    let column = |i: usize| {
        let of = |row: usize| powers.value(row).as_binary::<i32>().value(i).to_vec();
        BinaryArray::from_iter_values((0..set.rows()).map(of))
    };
    for (i, p) in exponents.iter().enumerate() {
        let single = sdb_power(&s, &set.constant(p), &n).unwrap();
        assert_eq!(single.as_binary::<i32>(), &column(i));
    }
    let k = |v: &Value| set.constant(&encode_update(&[1], &nat(&v["q"]).to_bytes_be()).unwrap());
    let sum = sdb_add_kept(&a, &b, &column(0), &column(3), &k(ka), &k(kb), &n).unwrap();
    set.expect(&sum, "difference_e");
}

#[test]
fn order_is_the_order_of_the_signed_numbers() {
    let n = BigUint::from(3u8) << 126u32 | BigUint::from(1u8);
    let values = [-5i32, -1, 0, 1, 7].map(|v| {
        let magnitude = BigUint::from(v.unsigned_abs());
        if v < 0 { &n - magnitude } else { magnitude }.to_bytes_be()
    });
    let column = BinaryArray::from_iter_values(&values);
    let n = BinaryArray::from_iter_values(vec![n.to_bytes_be(); 5]);
    let order = sdb_order(&column, &n).unwrap();
    let order: Vec<&[u8]> = order.as_binary::<i32>().iter().flatten().collect();
    assert!(order.is_sorted() && order.windows(2).all(|w| w[0] != w[1]));
    let signs = sdb_compare(&column, &n).unwrap();
    assert_eq!(
        signs.as_primitive::<Int8Type>().values(),
        &[-1, -1, 0, 1, 1]
    );
}

#[test]
fn nulls_and_layouts() {
    let n = [0xff; 16];
    let ns = BinaryArray::from_iter_values([n; 3]);
    let a = BinaryArray::from(vec![Some(&[2u8][..]), None, Some(&[3])]);
    let b = BinaryViewArray::from(vec![Some(&[5u8][..]), Some(&[5]), Some(&[0, 0, 5])]);
    let product = sdb_mul(&a, &b, &ns).unwrap();
    let product: Vec<Option<u8>> = product
        .as_binary::<i32>()
        .iter()
        .map(|v| v.map(|v| v[15]))
        .collect();
    assert_eq!(product, [Some(10), None, Some(15)]);
    let large = LargeBinaryArray::from(vec![None, None, None]);
    assert_eq!(sdb_mul(&a, &large, &ns).unwrap().null_count(), 3);
    assert_eq!(sdb_compare(&large, &ns).unwrap().null_count(), 3);
    let none = BinaryArray::from_iter_values(Vec::<Vec<u8>>::new());
    assert_eq!(sdb_mul(&none, &none, &none).unwrap().len(), 0);
    let item = Arc::new(Field::new("l", DataType::Binary, true));
    let values: ArrayRef = Arc::new(a);
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([0, 3, 0]), values, None);
    let sums = sdb_sum(&lists, &ns).unwrap();
    assert!(sums.is_null(0) && sums.is_valid(1) && sums.is_null(2));
    assert_eq!(sums.as_binary::<i32>().value(1)[15], 5);
}

#[test]
fn nonsense_is_an_error() {
    let n = BinaryArray::from_iter_values([[0xff; 16]; 2]);
    let a = BinaryArray::from_iter_values([[1], [2]]);
    let numbers = Int64Array::from(vec![1, 2]);
    assert!(sdb_mul(&a, &numbers, &n).is_err());
    assert!(sdb_mul(&a, &a.slice(0, 1), &n).is_err());
    assert!(sdb_sum(&a, &n).is_err());
    assert!(sdb_compare(&BinaryArray::from_iter_values([[0xff; 16]; 2]), &n).is_err());
    assert!(sdb_compare(&BinaryArray::from_iter_values([[0; 17]; 2]), &n).is_err());
    let two = BinaryArray::from_iter_values([vec![0xff; 16], vec![0xfd; 16]]);
    assert!(sdb_mul(&a, &a, &two).is_err());
    let wire = encode_update(&[1], &[0xff; 16]).unwrap();
    let wire = BinaryArray::from_iter_values([&wire, &wire]);
    assert!(sdb_key_update(&a, &a, &wire, &n).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        a in any::<Vec<u8>>(),
        k in any::<Vec<u8>>(),
        n in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let column = |v: &[u8]| BinaryArray::from_iter_values([v, v]);
        let (a, k, n) = (column(&a), column(&k), column(&n));
        let _ = sdb_key_update(&a, &a, &k, &n);
        let _ = sdb_compare(&a, &n);
        let _ = sdb_order(&a, &n);
        let _ = sdb_linear(&a, &a, &k, &k, &n);
        let _ = sdb_compare_kept(&a, &a, &k, &k, &n);
        let _ = sdb_power(&a, &a, &n);
    }

    #[test]
    fn no_list_makes_it_panic(
        values in prop::collection::vec(any::<Vec<u8>>(), 0..12),
        ids in prop::collection::vec(any::<Option<i64>>(), 0..12),
        n in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let item = |kind: DataType| Arc::new(Field::new("l", kind, true));
        let n = BinaryArray::from_iter_values([&n]);
        let lengths = OffsetBuffer::from_lengths([values.len()]);
        let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(&values));
        let lists = ListArray::new(item(DataType::Binary), lengths, values, None);
        let _ = hom_sum(&lists, &n);
        prop_assert!(row_set(&lists).is_err());
        let lengths = OffsetBuffer::from_lengths([ids.len()]);
        let usable = ids.iter().all(|id| id.is_some_and(|id| (0..1 << 61).contains(&id)));
        let ids: ArrayRef = Arc::new(Int64Array::from(ids));
        let lists = ListArray::new(item(DataType::Int64), lengths, ids, None);
        prop_assert_eq!(row_set(&lists).is_ok(), usable);
        prop_assert!(hom_sum(&lists, &n).is_err());
    }
}
