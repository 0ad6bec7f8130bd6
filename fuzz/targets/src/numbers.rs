//! Large numbers that servers return: shares of the SDB scheme, packed sums, and the hints by
//! which their primes are recomputed.

use crate::input::{joined, Input};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, Int64Array};
use arrow_schema::{DataType, Field};
use louver_trusted::sdb::{NumberType, SdbKey, SdbSpace};
use louver_trusted::{fuzz, Epochs, KeyRing, PaillierSpace};
use num_bigint::BigInt;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Small ones: the decoders are the same, and much faster.
const BITS: u32 = 512;

struct Spaces {
    ring: KeyRing,
    sdb: SdbSpace,
    key: SdbKey,
    paillier: PaillierSpace,
}

static SPACES: LazyLock<Spaces> = LazyLock::new(|| {
    let ring = fuzz::ring();
    let sdb = ring.sdb(None, BITS).expect("primes");
    let paillier = ring.paillier(None, BITS).expect("primes");
    let key = sdb.column_key(1, 2, 3, 0);
    Spaces {
        ring,
        sdb,
        key,
        paillier,
    }
});

static EPOCHS: LazyLock<Epochs> =
    LazyLock::new(|| Epochs::new(0, vec![(0, [7; 16])]).expect("one epoch"));

pub(crate) fn run(data: &[u8]) {
    let spaces = &*SPACES;
    let mut input = Input(data);
    let which = input.byte();
    match which % 3 {
        0 => {
            let pieces = input.pieces(2);
            let shares = BinaryArray::from_iter_values(&pieces);
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=pieces.len() as i64));
            let ids = BTreeMap::from([(0, ids)]);
            let bounds = (&BigInt::from(-100), &BigInt::from(100));
            let _ = spaces
                .sdb
                .open(&spaces.key, &EPOCHS, &shares, &ids, &kind(), bounds);
        }
        1 => {
            let pieces = input.pieces(2);
            let sums = BinaryArray::from_iter_values(&pieces);
            let rows = vec![u64::from(which); pieces.len()];
            if let Ok(totals) = spaces.paillier.open(&sums, &rows) {
                assert_eq!(totals.len(), pieces.len());
            }
        }
        _ => {
            drop(spaces.ring.sdb(Some(input.0), BITS));
            drop(spaces.ring.paillier(Some(input.0), BITS));
        }
    }
}

fn kind() -> NumberType {
    NumberType::new(&Field::new("a", DataType::Int64, true)).expect("a whole number")
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let spaces = &*SPACES;
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, -9]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let field = Field::new("a", DataType::Int64, true);
    let shares = spaces.sdb.seal((1, 2, 3), &EPOCHS, &kind(), &numbers, &ids);
    let shares = shares.expect("two rows");
    let shares: Vec<&[u8]> = shares.as_binary::<i32>().iter().flatten().collect();
    let sums = spaces.paillier.seal(&[(field, numbers.clone())], 2);
    let sums = sums.expect("two rows");
    let sums: Vec<&[u8]> = sums.as_binary::<i32>().iter().flatten().collect();
    vec![
        joined(&[0], &shares),
        joined(&[1], &sums),
        [&[2], spaces.sdb.hint()].concat(),
    ]
}
